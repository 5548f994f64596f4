// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/timer_wheel.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace orrery {
namespace {

constexpr std::int64_t kTick = TimerWheel::kTickNs;

struct Named : Timer {
  explicit Named(int name) : number(name) {}
  int number;
};

std::vector<int> due_by(TimerWheel& wheel, std::int64_t now) {
  std::vector<int> fired;
  wheel.advance(now, [&](Timer& timer) { fired.push_back(static_cast<Named&>(timer).number); });
  return fired;
}

TEST(TimerWheel, IsNeverEarlyAndAtMostATickLate) {
  TimerWheel wheel(5 * kTick + 17);
  Named timer(1);
  const std::int64_t deadline = 900 * kTick + 3;
  wheel.arm(timer, deadline);
  EXPECT_TRUE(timer.armed());
  EXPECT_TRUE(due_by(wheel, deadline - 1).empty());
  EXPECT_TRUE(due_by(wheel, 901 * kTick - 1).empty());
  EXPECT_EQ(due_by(wheel, deadline + kTick), std::vector<int>{1});
  EXPECT_FALSE(timer.armed());
}

TEST(TimerWheel, WhatHasPassedIsDueAtTheNextTick) {
  TimerWheel wheel(1000 * kTick);
  Named timer(1);
  wheel.arm(timer, 3 * kTick);
  EXPECT_EQ(wheel.next_ns(), 1001 * kTick);
  EXPECT_EQ(due_by(wheel, 1001 * kTick), std::vector<int>{1});
}

TEST(TimerWheel, DisarmedArmedAnewAndDestroyedTimersDoNotFire) {
  TimerWheel wheel(0);
  Named stays(1), moves(2), goes(3);
  auto dies = std::make_unique<Named>(4);
  for (Named* const each : {&stays, &moves, &goes, dies.get()}) wheel.arm(*each, 70 * kTick);
  wheel.arm(moves, 5000 * kTick);
  goes.disarm();
  dies.reset();
  EXPECT_EQ(due_by(wheel, 4000 * kTick), std::vector<int>{1});
  EXPECT_EQ(due_by(wheel, 5000 * kTick), std::vector<int>{2});
  EXPECT_EQ(wheel.next_ns(), std::nullopt);
}

TEST(TimerWheel, ACallMayArmAndDisarm) {
  TimerWheel wheel(0);
  Named first(1), second(2);
  wheel.arm(first, 10 * kTick);
  wheel.arm(second, 10 * kTick);
  int calls = 0;
  wheel.advance(10 * kTick, [&](Timer& timer) {
    ++calls;
    second.disarm();
    wheel.arm(timer, 12 * kTick);
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(due_by(wheel, 12 * kTick), std::vector<int>{1});
}

TEST(TimerWheel, LimitsBeyondTheLastLevelAreKept) {
  TimerWheel wheel(0);
  Named far(1);
  const std::int64_t deadline = std::int64_t{100} * 24 * 3600 * 1'000'000'000;
  wheel.arm(far, deadline);
  std::int64_t now = 0;
  int looks = 0;
  for (; far.armed(); ++looks) {
    const auto next = wheel.next_ns();
    ASSERT_TRUE(next.has_value());
    ASSERT_GT(*next, now);
    now = *next;
    if (!due_by(wheel, now).empty()) break;
  }
  EXPECT_GE(now, deadline);
  EXPECT_LT(now, deadline + kTick);
  EXPECT_LT(looks, 40);
}

// Random arms, disarms and steps of time of all sizes, against a table.
TEST(TimerWheel, FiresWhatATableSays) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    std::int64_t now = static_cast<std::int64_t>(random() >> 20);
    TimerWheel wheel(now);
    std::vector<std::unique_ptr<Named>> timers;
    for (int i = 0; i < 50; ++i) timers.push_back(std::make_unique<Named>(i));
    std::map<int, std::int64_t> deadline;
    const auto span = [&] { return static_cast<std::int64_t>(random() >> (14 + random() % 48)); };
    for (int step = 0; step < 300; ++step) {
      const int i = static_cast<int>(random() % 50);
      Named& timer = *timers[static_cast<std::size_t>(i)];
      if (random() % 4 == 0) {
        timer.disarm();
        deadline.erase(i);
      } else if (random() % 2 == 0) {
        const std::int64_t at = now + span();
        wheel.arm(timer, at);
        deadline[i] = at;
      } else {
        const auto next = wheel.next_ns();
        ASSERT_EQ(next.has_value(), !deadline.empty());
        now = random() % 2 == 0 && next.has_value() ? std::max(now, *next) : now + span();
        std::int64_t last = 0;
        wheel.advance(now, [&](Timer& due) {
          const int number = static_cast<Named&>(due).number;
          ASSERT_TRUE(deadline.contains(number)) << "seed " << seed;
          ASSERT_LE(deadline[number], now) << "seed " << seed;
          ASSERT_GE(deadline[number] / kTick + 1, last) << "seed " << seed;
          last = deadline[number] / kTick;
          deadline.erase(number);
        });
        for (const auto& [number, at] : deadline) {
          ASSERT_GT(at + kTick, now) << "seed " << seed;
          if (next.has_value()) {
            ASSERT_GE(at + kTick, *next) << "seed " << seed;
          }
        }
      }
      ASSERT_EQ(timer.armed(), deadline.contains(i)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace orrery
