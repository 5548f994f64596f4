// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/looks.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::clock {
namespace {

using Then = Looks::Then;
constexpr std::int64_t kCost = 25'000;

// How many looks at that many sources in turn come before one waits.
int looks_before_wait(Looks& looks, std::vector<int>& sources) {
  for (int i = 0; i < 100'000; ++i) {
    if (looks.look(&sources[static_cast<std::size_t>(i) % sources.size()]) == Then::waits) return i;
  }
  return -1;
}

TEST(Looks, EachCostsTheSameUntilTheyAreAWait) {
  Looks looks(kCost);
  int source = 0;
  std::int64_t passed = 0;
  for (int i = 1; i <= 64; ++i) {
    const Then then = looks.look(&source);
    ASSERT_NE(then, Then::waits) << i;
    if (then == Then::catches_up) passed += looks.take_owed();
    ASSERT_EQ(passed + looks.owed(), i * kCost);
  }
  EXPECT_EQ(looks.look(&source), Then::waits);
}

TEST(Looks, AProgramWithManySourcesLooksAtEachOfThemSeveralTimesFirst) {
  for (const int count : {1, 3, 16, 100, 300}) {
    Looks looks(kCost);
    std::vector<int> sources(static_cast<std::size_t>(count));
    EXPECT_GE(looks_before_wait(looks, sources), 3 * count) << count;
  }
}

TEST(Looks, AfterNewsEverySourceIsLookedAtForNothing) {
  Looks looks(kCost);
  std::vector<int> sources(40);
  ASSERT_GT(looks_before_wait(looks, sources), 0);
  looks.news();
  for (int& source : sources) EXPECT_EQ(looks.look(&source), Then::goes_on);
  EXPECT_EQ(looks.owed(), 0);
}

TEST(Looks, AfterNewsWhatIsLookedAtInEveryEighthRoundIsFoundForNothing) {
  Looks looks(kCost);
  std::vector<int> sources(4);
  ASSERT_GT(looks_before_wait(looks, sources), 0);
  looks.news();
  for (int round = 0; round < 8; ++round) {
    for (int& source : sources) EXPECT_EQ(looks.look(&source), Then::goes_on);
  }
  EXPECT_EQ(looks.owed(), 0);
}

TEST(Looks, AFreeSourceCostsNothingAndIsAWaitAllTheSame) {
  Looks looks(kCost);
  std::vector<int> sources(2);
  for (int i = 0; i < 128; ++i) ASSERT_NE(looks.look(free_source(sources.data())), Then::waits) << i;
  EXPECT_EQ(looks.owed(), 0);
  EXPECT_EQ(looks.look(free_source(sources.data())), Then::waits);
}

// An engine looks at it in every eighth round, from wherever its launcher let it go.
TEST(Looks, InWhichRoundsAFreeSourceIsLookedAtMakesNoDifference) {
  std::vector<std::int64_t> first;
  for (int phase = 0; phase < 8; ++phase) {
    Looks looks(kCost);
    std::vector<int> sources(3), wire_up(2);
    std::vector<std::int64_t> found;
    for (const bool news : {false, true}) {
      news ? looks.news() : looks.done();
      for (int round = 0; round < 60; ++round) {
        for (int& source : sources) {
          const Then then = looks.look(&source);
          found.push_back(static_cast<std::int64_t>(then));
          found.push_back(looks.owed());
          if (then == Then::catches_up) (void)looks.take_owed();
        }
        if ((round + phase) % 8 != 0) continue;
        for (int& source : wire_up) EXPECT_EQ(looks.look(free_source(&source)), Then::goes_on);
      }
    }
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << "phase " << phase;
  }
}

TEST(Looks, WhatStirsAProgramThatDoesNotWaitIsNoNews) {
  Looks looks(kCost);
  int source = 0;
  (void)looks.look(&source);
  looks.stirred();
  (void)looks.look(&source);
  EXPECT_EQ(looks.owed(), 2 * kCost);
}

TEST(Looks, SomethingElseEndsTheRow) {
  Looks looks(kCost);
  std::vector<int> sources(1);
  ASSERT_GT(looks_before_wait(looks, sources), 0);
  looks.done();
  EXPECT_EQ(looks.in_a_row(), 0u);
  EXPECT_NE(looks.look(sources.data()), Then::waits);
}

TEST(Looks, ALoopThatReadsTheClockIsWatchedForAsLongAsItDoes) {
  Looks looks(kCost);
  int source = 0;
  (void)looks.look(&source);
  EXPECT_FALSE(looks.is_watched());
  looks.clock_read();
  (void)looks.look(&source);
  EXPECT_TRUE(looks.is_watched());
  for (int i = 0; i < 100; ++i) (void)looks.look(&source);
  EXPECT_FALSE(looks.is_watched()) << "the clock was read before the loop, not in it";
}

}  // namespace
}  // namespace orrery::clock
