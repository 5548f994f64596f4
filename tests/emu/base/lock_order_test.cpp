// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/lock_order.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

namespace orrery {

enum class Rank { lanes, queues, log };
constexpr const char* name_of(Rank rank) {
  return rank == Rank::lanes ? "the lanes" : rank == Rank::queues ? "the queues" : "the log";
}

namespace {

template <Rank kRank>
using Lock = lock_order::Checked<std::mutex, kRank>;

struct Locks {
  Lock<Rank::lanes> lanes;
  Lock<Rank::queues> queues, more_queues;
  Lock<Rank::log> log;
};

TEST(LockOrder, DownwardsIsFree) {
  Locks locks;
  for (int i = 0; i < 3; ++i) {
    const std::lock_guard a(locks.lanes);
    const std::lock_guard b(locks.queues);
    const std::lock_guard c(locks.log);
  }
  // In any order let go, and taken again.
  locks.lanes.lock();
  locks.queues.lock();
  locks.lanes.unlock();
  locks.log.lock();
  locks.queues.unlock();
  locks.log.unlock();
  locks.lanes.lock();
  locks.lanes.unlock();
}

TEST(LockOrder, AThreadHasItsOwn) {
  Locks locks;
  const std::lock_guard a(locks.log);
  std::thread([&] { const std::lock_guard b(locks.lanes); }).join();
}

TEST(LockOrder, ATryNeverWaits) {
  Locks locks;
  const std::lock_guard a(locks.log);
  ASSERT_TRUE(locks.lanes.try_lock());
  locks.lanes.unlock();
}

TEST(LockOrderDeathTest, UpwardsAbortsWithBothNames) {
  Locks locks;
  EXPECT_DEATH(
      {
        const std::lock_guard a(locks.log);
        const std::lock_guard b(locks.lanes);
      },
      "the lock of the lanes is taken while that of the log is held");
  EXPECT_DEATH(
      {
        const std::lock_guard a(locks.queues);
        const std::lock_guard b(locks.more_queues);
      },
      "the lock of the queues is taken while that of the queues is held");
  EXPECT_DEATH(locks.log.unlock(), "does not hold it");
}

}  // namespace
}  // namespace orrery
