// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/paced_clock.hpp"

#include <gtest/gtest.h>

#include <random>

// What pacing learns, without a clock: how late a task was is what it takes, less the lead it was begun by.
namespace orrery::clock {
namespace {

constexpr std::int64_t kNs = 1000;  // ps

TEST(Lead, BecomesTheMedianOfWhatTasksTake) {
  // Mostly 120 ns, a fifth of them 400 ns: the mean would be 176.
  std::mt19937_64 random(1);
  Lead lead;
  std::int64_t early = 0, late = 0, least = INT64_MAX, most = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t takes =
        (random() % 5 == 0 ? 400 : 100 + static_cast<std::int64_t>(random() % 41)) * kNs;
    const std::int64_t late_ps = takes - lead.ps();
    if (i >= 1000) {
      ++(late_ps > 0 ? late : early);
      least = std::min(least, lead.ps());
      most = std::max(most, lead.ps());
    }
    lead.learn(late_ps);
  }
  // The median of all of them is 124 or 125 ns; a step is 1 ns.
  EXPECT_GT(least, 110 * kNs);
  EXPECT_LT(most, 141 * kNs);
  EXPECT_NEAR(static_cast<double>(late) / static_cast<double>(early), 1, 0.05);
}

TEST(Lead, IsMovedByATaskThatWasHeldUpNoMoreThanByAnyOther) {
  Lead lead;
  for (int i = 0; i < 300; ++i) lead.learn(100 * kNs - lead.ps());
  const std::int64_t before = lead.ps();
  lead.learn(10'000'000 * kNs);
  EXPECT_EQ(lead.ps() - before, 1 * kNs);
}

TEST(Lead, FollowsWhatTasksComeToTake) {
  Lead lead;
  for (const std::int64_t takes : {300, 50, 700}) {
    for (int i = 0; i < 1000; ++i) lead.learn(takes * kNs - lead.ps());
    EXPECT_NEAR(static_cast<double>(lead.ps()), static_cast<double>(takes * kNs), 1.0 * kNs);
  }
}

TEST(Lead, IsNeverNegativeAndAMicrosecondAtMost) {
  Lead lead;
  for (int i = 0; i < 10; ++i) lead.learn(-kNs);
  EXPECT_EQ(lead.ps(), 0);
  for (int i = 0; i < 3000; ++i) lead.learn(1'000'000 * kNs);
  EXPECT_EQ(lead.ps(), 1'000 * kNs);
  // And comes back from there.
  lead.learn(-kNs);
  EXPECT_EQ(lead.ps(), 999 * kNs);
}

TEST(Lateness, IsReportedByItsMedianItsNinetyNinthAndItsWorst) {
  Lateness lateness;
  EXPECT_EQ(lateness.report(), "nothing was timed");
  for (std::int64_t i = 100; i >= 1; --i) lateness.add(i * kNs);
  EXPECT_EQ(lateness.report(),
            "100 points in time, achieved after asked by p50 50 ns, p99 99 ns, worst 100 ns");
}

}  // namespace
}  // namespace orrery::clock
