// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/poll_count.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orrery::nic {
namespace {

constexpr std::int64_t kStart = 1'000'000'000;

TEST(PollPhase, ThePutOffGrowsWithTheTimePolledUpToABound) {
  PollPhase phase;
  std::int64_t until = kStart;
  for (std::int64_t now = kStart; now < kStart + 100'000'000; now += 50'000) {
    const std::int64_t delay = phase.put_off(now);
    if (delay != 0) {
      EXPECT_LE(delay, std::max(PollPhase::kPauseNs, now - kStart)) << now;
      EXPECT_LE(delay, PollPhase::kMostNs) << now;
      until = now + delay;
    }
    // The service thread's turn never comes while the program polls.
    EXPECT_GT(until, now);
  }
  EXPECT_GE(until, kStart + 100'000'000 + PollPhase::kMostNs / 2 - 50'000);
}

TEST(PollPhase, IsAskedForRarely) {
  PollPhase phase;
  int calls = 0;
  for (std::int64_t now = kStart; now < kStart + 100'000'000; now += 1'000) calls += phase.put_off(now) != 0;
  EXPECT_LE(calls, 60);
}

TEST(PollPhase, APauseBeginsItAnew) {
  PollPhase phase;
  std::int64_t now = kStart;
  for (; now < kStart + 50'000'000; now += 10'000) (void)phase.put_off(now);
  now += PollPhase::kPauseNs;
  EXPECT_EQ(phase.put_off(now), PollPhase::kPauseNs);
  EXPECT_EQ(phase.put_off(now + 1), 0);
}

}  // namespace
}  // namespace orrery::nic
