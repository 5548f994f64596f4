// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/patient_wait.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

class LookBeforeSleep : public ::testing::Test {
 protected:
  bool look(std::optional<std::int64_t> deadline_ns, int good_yields = 1000) {
    const auto never = [&] {
      ++looks_;
      return false;
    };
    const auto yield = [&] { return ++yields_ <= good_yields; };
    return look_before_sleep({.spins = 3, .yields = 100}, never, deadline_ns, yield);
  }
  int looks_ = 0;
  int yields_ = 0;
};

TEST_F(LookBeforeSleep, GivesUpAfterItsBudget) {
  EXPECT_FALSE(look(std::nullopt));
  EXPECT_EQ(looks_, 1 + 3 + 100);
  EXPECT_FALSE(look(monotonic_ns() + 60'000'000'000));
  EXPECT_EQ(looks_, 2 * (1 + 3 + 100));
}

TEST_F(LookBeforeSleep, EndsWithWhatItWaitsFor) {
  int looks = 0;
  EXPECT_TRUE(look_before_sleep(
      {.spins = 10, .yields = 0}, [&] { return ++looks == 6; }, std::nullopt));
  EXPECT_EQ(looks, 6);
}

// Each further yield would give a program that computes another slice of the core.
TEST_F(LookBeforeSleep, YieldsNoMoreWhenAYieldGaveAwayASlice) {
  EXPECT_FALSE(look(std::nullopt, 1));
  EXPECT_EQ(yields_, 2);
  EXPECT_EQ(looks_, 1 + 3 + 2);
}

// A wait of a millisecond takes a millisecond, and one of none nothing, however busy the cores are.
TEST_F(LookBeforeSleep, LooksOnceWhenItsLimitIsNear) {
  EXPECT_FALSE(look(0));
  EXPECT_FALSE(look(monotonic_ns() + kTooSoonToYieldNs / 2));
  EXPECT_EQ(looks_, 2);
  EXPECT_EQ(yields_, 0);
}

}  // namespace
}  // namespace orrery
