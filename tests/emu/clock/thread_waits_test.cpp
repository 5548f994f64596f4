// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/thread_waits.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace orrery::clock {
namespace {

TEST(ThreadWaits, AThreadIsAwakeFromItsWakeOnUntilItWaitsAgain) {
  ThreadWaits waits;
  const int here = 0, there = 0;
  waits.begin(&here);
  EXPECT_EQ(waits.awake(), 0u);
  waits.wake(&there, true);  // no thread waits there
  EXPECT_EQ(waits.awake(), 0u);
  std::thread([&] { waits.wake(&here, false); }).join();
  EXPECT_EQ(waits.awake(), 1u);
  waits.wake(&here, false);  // it is awake already
  EXPECT_EQ(waits.awake(), 1u);
  waits.end(&here);
  EXPECT_EQ(waits.awake(), 1u);
  waits.begin(&here);
  EXPECT_EQ(waits.awake(), 0u);
  waits.end(&here);  // by something that is not known here
  EXPECT_EQ(waits.awake(), 1u);
  waits.sleeps_again();
  waits.sleeps_again();
  EXPECT_EQ(waits.awake(), 0u);
}

TEST(ThreadWaits, OneOrAllOfAPlaceAreWoken) {
  ThreadWaits waits;
  const int here = 0, there = 0;
  for (int i = 0; i < 3; ++i) std::thread([&] { waits.begin(&here); }).join();
  waits.begin(&there);
  waits.wake(&here, false);
  EXPECT_EQ(waits.awake(), 1u);
  waits.wake(&here, true);
  EXPECT_EQ(waits.awake(), 3u);
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      waits.end(&here);
      waits.sleeps_again();
    }).join();
  }
  EXPECT_EQ(waits.awake(), 0u);
  waits.wake(&there, true);
  EXPECT_EQ(waits.awake(), 1u);
  waits.end(&there);
  waits.sleeps_again();
}

TEST(ThreadWaits, OnesThatAreGivenUpDoNotCountWhenTheyWaitAgain) {
  ThreadWaits waits;
  const int here = 0;
  waits.begin(&here);
  waits.wake(&here, true);
  waits.end(&here);
  waits.give_up();
  EXPECT_EQ(waits.awake(), 0u);
  std::thread([&] {
    waits.begin(&here);
    waits.wake(&here, true);
    waits.end(&here);
  }).join();
  EXPECT_EQ(waits.awake(), 1u);
  waits.sleeps_again();  // of an earlier round
  EXPECT_EQ(waits.awake(), 1u);
}

}  // namespace
}  // namespace orrery::clock
