// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/waiters.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace orrery::clock {
namespace {

constexpr std::int64_t kLong = 20'000'000'000;  // ns

bool wait_for(Waiters& waiters, std::int64_t deadline, std::int32_t tid) {
  // The first wait of a thread ends at once: it may have missed something.
  thread_local bool first = true;
  if (std::exchange(first, false))
    (void)waiters.wait(
        Waiters::kNoDeadline, tid, 1000, [] {}, [] { return false; });
  return waiters.wait(
      deadline, tid, kLong, [] {}, [] { return true; });
}

void wait_for_deadlines(Waiters& waiters, std::int64_t first) {
  while (waiters.first_deadline() != first) std::this_thread::yield();
}

TEST(Waiters, LookOneAfterAnotherInTheOrderOfTheirIds) {
  Waiters waiters;
  std::vector<std::int32_t> looked;
  std::vector<std::thread> threads;
  for (const std::int32_t tid : {3, 1, 2}) {
    threads.emplace_back([&, tid] {
      ASSERT_TRUE(wait_for(waiters, -tid, tid));
      looked.push_back(tid);  // no other one is awake
      waiters.come_back();
    });
    // The last one is not the first to be due.
    if (tid != 2) wait_for_deadlines(waiters, -3);
  }
  wait_for_deadlines(waiters, -3);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (const std::uint64_t round = waiters.begin_round(); waiters.let_next(round, 0, true);) {
    while (!waiters.is_back()) waiters.await_back(1'000'000);
  }
  waiters.rouse();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(looked, (std::vector<std::int32_t>{1, 2, 3}));
}

TEST(Waiters, OneLooksOnceARoundAndAtItsDeadline) {
  Waiters waiters;
  int looks = 0;
  std::thread one([&] {
    ASSERT_TRUE(wait_for(waiters, 100, 1));
    ++looks;
    ASSERT_TRUE(wait_for(waiters, 200, 1));
    ++looks;
    waiters.come_back();
  });
  wait_for_deadlines(waiters, 100);
  EXPECT_FALSE(waiters.let_next(waiters.begin_round(), 99, false));
  for (const std::int64_t now : {100, 200}) {
    const std::uint64_t round = waiters.begin_round();
    ASSERT_TRUE(waiters.let_next(round, now, false));
    while (!waiters.is_back()) waiters.await_back(1'000'000);
    EXPECT_EQ(looks, now / 100);
    EXPECT_FALSE(waiters.let_next(round, kLong, true));
  }
  one.join();
}

TEST(Waiters, ALookThatWasGivenUpIsNotTakenForALaterOne) {
  Waiters waiters;
  std::atomic<bool> may_end{false};
  std::thread slow([&] {
    ASSERT_TRUE(wait_for(waiters, 1, 1));
    while (!may_end) std::this_thread::yield();
    waiters.come_back();
  });
  wait_for_deadlines(waiters, 1);
  ASSERT_TRUE(waiters.let_next(waiters.begin_round(), 1, false));
  waiters.give_up();
  std::atomic<bool> second_may{false};
  std::thread second([&] {
    ASSERT_TRUE(wait_for(waiters, 2, 2));
    while (!second_may) std::this_thread::yield();
    waiters.come_back();
  });
  wait_for_deadlines(waiters, 2);
  ASSERT_TRUE(waiters.let_next(waiters.begin_round(), 2, false));
  may_end = true;
  slow.join();
  EXPECT_FALSE(waiters.is_back());
  second_may = true;
  second.join();
  EXPECT_TRUE(waiters.is_back());
}

TEST(Waiters, AreRousedAtOnceAndNobodyWaitsForThem) {
  Waiters waiters;
  std::thread one([&] { EXPECT_TRUE(wait_for(waiters, Waiters::kNoDeadline, 1)); });
  std::atomic<bool> ended{false};
  std::thread rouser([&] {
    while (!ended) waiters.rouse();
  });
  one.join();
  ended = true;
  rouser.join();
  EXPECT_TRUE(waiters.is_back());
  EXPECT_FALSE(waiters.any());
}

}  // namespace
}  // namespace orrery::clock
