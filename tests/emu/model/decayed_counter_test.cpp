// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/decayed_counter.hpp"

#include <gtest/gtest.h>

namespace orrery::model {
namespace {

constexpr std::int64_t kEpoch = kHalfLife.count();

TEST(DecayedCounter, HalfIsForgottenEveryHalfLife) {
  DecayedCounter c{};
  count_bytes(c, 0, 8 << 10);
  // All of it came in the epoch before: a steady rate of as much.
  EXPECT_EQ(level_of(c, kEpoch), 4u << 10);
  EXPECT_EQ(level_of(c, 2 * kEpoch), 2u << 10);
  EXPECT_EQ(level_of(c, 11 * kEpoch), 4u);
  EXPECT_EQ(level_of(c, 15 * kEpoch), 0u);
  // Looking changes nothing; counting nothing later keeps what is left.
  EXPECT_EQ(count_bytes(c, 2 * kEpoch, 0), 2u << 10);
  EXPECT_EQ(level_of(c, 3 * kEpoch), 1u << 10);
}

TEST(DecayedCounter, ASteadyRateIsItsOwnLevelWhereverInTheEpochOneLooks) {
  for (const std::uint64_t bytes : {8u, 64u, 100u, 16'384u}) {
    DecayedCounter c{};
    const std::int64_t step = kEpoch / 1000;
    std::int64_t now = 0;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t level = count_bytes(c, now += step, bytes);
      const double wanted = 1000.0 * static_cast<double>(bytes);
      if (i > 10'000) {
        ASSERT_NEAR(static_cast<double>(level), wanted, 0.02 * wanted) << i;
      }
    }
  }
}

TEST(DecayedCounter, ACallerALittleLateAddsToTheEpochThatItFinds) {
  DecayedCounter c{};
  count_bytes(c, 10 * kEpoch, 800);
  count_bytes(c, 9 * kEpoch, 800);
  EXPECT_EQ(level_of(c, 11 * kEpoch), 800u);
}

TEST(DecayedCounter, WhatIsHoursOldIsForgottenThoughTheEpochCameRound) {
  DecayedCounter c{};
  constexpr std::int64_t kRound = std::int64_t{1} << 32;
  count_bytes(c, 5 * kEpoch, 1 << 20);
  // The low bits say "later" up to half way round, and "earlier" from there on.
  for (const std::int64_t later : {kRound / 2 - 1, kRound / 2, kRound - (1 << 21), kRound + 100})
    EXPECT_EQ(level_of(c, (5 + later) * kEpoch), 0u) << later;
  // Counting there begins afresh.
  count_bytes(c, (5 + kRound - (1 << 21)) * kEpoch, 80);
  EXPECT_EQ(level_of(c, (6 + kRound - (1 << 21)) * kEpoch), 40u);
}

TEST(DecayedCounter, SumsStopAtFourGibibytes) {
  DecayedCounter c{};
  for (int i = 0; i < 3; ++i) count_bytes(c, 0, std::uint64_t{1} << 40);
  EXPECT_EQ(level_of(c, 0), std::uint64_t{UINT32_MAX});
  // One half-life later half is left.
  EXPECT_EQ(level_of(c, kEpoch), std::uint64_t{UINT32_MAX} / 2);
}

}  // namespace
}  // namespace orrery::model
