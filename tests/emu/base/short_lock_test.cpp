// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/short_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace orrery {
namespace {

TEST(ShortLock, LetsOneInAtATime) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 2'000;
  ShortLock lock;
  int inside = 0;
  int count = 0;
  bool alone = true;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        const std::lock_guard guard(lock);
        alone = alone && ++inside == 1;
        ++count;
        // Now and then the others have to wait for a holder that does not run.
        if (i % 100 == 0) yield_cpu();
        --inside;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(alone);
  EXPECT_EQ(count, kThreads * kRounds);
}

TEST(ShortLock, ATryFailsWhileItIsHeldAndOnlyThen) {
  ShortLock lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

// A wait that outlasts spinning and yielding ends all the same.
TEST(ShortLock, AWaiterThatSleepsGetsIn) {
  ShortLock lock;
  std::atomic<bool> inside{false};
  lock.lock();
  std::thread waiter([&] {
    lock.lock();
    inside = true;
    lock.unlock();
  });
  const std::int64_t until = monotonic_ns() + 2'000'000;
  while (monotonic_ns() < until) yield_cpu();
  EXPECT_FALSE(inside);
  lock.unlock();
  waiter.join();
  EXPECT_TRUE(inside);
}

// The state of a thread of ours: 'S' while it sleeps.
char state_of(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_ends = text.rfind(')');
  return name_ends == std::string::npos || name_ends + 2 >= text.size() ? '?' : text[name_ends + 2];
}

TEST(ShortLock, WhoLetsGoWakesAWaiterThatSleeps) {
  constexpr std::int64_t kForEver = 3'600'000'000'000;
  ShortLock lock(kForEver);
  std::atomic<pid_t> id{0};
  lock.lock();
  std::thread waiter([&] {
    id = static_cast<pid_t>(syscall(SYS_gettid));
    lock.lock();
    lock.unlock();
  });
  while (lock.sleepers_for_test() == 0 || state_of(id) != 'S') yield_cpu();
  lock.unlock();
  waiter.join();  // an hour later, if it is not woken
  EXPECT_EQ(lock.sleepers_for_test(), 0u);
}

}  // namespace
}  // namespace orrery
