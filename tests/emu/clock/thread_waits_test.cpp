// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/thread_waits.hpp"

#include "emu/clock/thread_start.hpp"

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
  waits.give_up(true);
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

// The calling thread, which begins now.
void begins(std::uint64_t awake) { state_of_thread() = {.awake = awake, .is_new = true}; }

TEST(ThreadWaits, OneThatIsCreatedIsAwakeUntilItWaitsOrEnds) {
  ThreadWaits waits;
  const int here = 0;
  const std::uint64_t first = waits.create(), second = waits.create(), none = waits.create();
  EXPECT_EQ(waits.awake(), 3u);
  EXPECT_EQ(waits.spells(), 1u);
  waits.create_failed(none);
  EXPECT_EQ(waits.awake(), 2u);
  EXPECT_TRUE(waits.only_new());
  EXPECT_FALSE(waits.is_new());
  std::thread([&] {
    begins(first);
    EXPECT_TRUE(waits.is_new());
    waits.begin(&here);
    EXPECT_EQ(waits.awake(), 1u);
    EXPECT_TRUE(waits.is_new());
    waits.wake(&here, true);  // by another one
    waits.end(&here);
    EXPECT_EQ(waits.awake(), 2u);
    EXPECT_TRUE(waits.only_new());
    waits.sleeps_again();
  }).join();
  EXPECT_EQ(waits.awake(), 1u);
  std::thread([&] {
    begins(second);
    waits.sleeps_again();  // its end
  }).join();
  EXPECT_EQ(waits.awake(), 0u);
}

TEST(ThreadWaits, OneThatIsCreatedIsNewUntilItComesIntoTheClock) {
  ThreadWaits waits;
  const int here = 0;
  std::thread([&] {
    begins(waits.create());
    waits.comes_in();
    EXPECT_EQ(waits.awake(), 1u);
    EXPECT_FALSE(waits.only_new());
    EXPECT_FALSE(waits.is_new());
    waits.begin(&here);
    EXPECT_EQ(waits.awake(), 0u);
    EXPECT_TRUE(waits.only_new());
  }).join();
  // One that is new, and one that is not, wait at one place: which of them is woken is not known yet.
  std::thread fresh([&] {
    begins(waits.create());
    waits.begin(&here);
    waits.wake(&here, false);
    EXPECT_EQ(waits.awake(), 1u);
    EXPECT_FALSE(waits.only_new());
    waits.end(&here);
    EXPECT_EQ(waits.awake(), 1u);
    EXPECT_TRUE(waits.only_new());
    waits.sleeps_again();
  });
  fresh.join();
  EXPECT_EQ(waits.awake(), 0u);
}

TEST(ThreadWaits, ANewOneThatIsGivenUpIsNotTakenForNewAgain) {
  ThreadWaits waits;
  const std::uint64_t created = waits.create();
  waits.give_up(false);
  waits.create_failed(created);  // of an earlier round
  EXPECT_EQ(waits.awake(), 0u);
  std::thread([&] {
    begins(created);
    EXPECT_FALSE(waits.is_new());
    waits.sleeps_again();
    EXPECT_FALSE(waits.is_new());
  }).join();
  EXPECT_EQ(waits.awake(), 0u);
}

TEST(ThreadWaits, ANewOneThatIsGivenUpWhileItIsBusyIsLateWhenItPosts) {
  for (const bool busy : {false, true}) {
    for (const bool waits_first : {false, true}) {
      ThreadWaits waits;
      std::thread([&] {
        begins(waits.create());
        EXPECT_FALSE(waits.is_late());
        waits.give_up(busy);
        if (waits_first) {
          EXPECT_FALSE(waits.is_new());
        }
        waits.comes_in();
        EXPECT_EQ(waits.is_late(), busy);
        EXPECT_FALSE(waits.is_late());
      }).join();
    }
  }
}

TEST(ThreadWaits, OneThatIsAwakeMayLookBeforeItWaitsButNotForEver) {
  ThreadWaits waits;
  std::thread([&] {
    begins(waits.create());
    waits.looks_in_vain();
    EXPECT_EQ(waits.awake(), 1u);
    for (int looks = 0; looks < 100; ++looks) waits.looks_in_vain();
    EXPECT_EQ(waits.awake(), 0u);
  }).join();
}

}  // namespace
}  // namespace orrery::clock
