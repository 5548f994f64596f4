// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/biased_lock.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace orrery {
namespace {

using Held = BiasedLock::Held;

void bind_here(BiasedLock& lock) {
  const std::lock_guard held(lock);
  lock.bind();
}

// Without the call (older kernels, seccomp) no lock is ever bound, and every thread takes it wholly, which
// OneThatIsBoundToNobodyIsTakenWholly tests: what binding adds is not there to be tested.
bool can_bind() { return asymmetric_fence::enrol() && asymmetric_fence::heavy(); }

TEST(BiasedLock, OneThatIsBoundToNobodyIsTakenWholly) {
  BiasedLock lock;
  const Held held = lock.try_enter();
  EXPECT_EQ(held, Held::wholly);
  EXPECT_TRUE(lock.taken());
  EXPECT_EQ(lock.try_enter(), Held::no);
  EXPECT_FALSE(lock.try_lock());
  lock.leave(held);
  EXPECT_FALSE(lock.taken());
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

// Skipped where a lock cannot be bound to a thread: there every one is taken as a foreign one, as above.
TEST(BiasedLock, ItsThreadTakesItLightlyAndOnce) {
  if (!can_bind()) ORRERY_SKIP("membarrier") << "the kernel offers no membarrier(2) of this kind here";
  BiasedLock lock;
  bind_here(lock);
  EXPECT_FALSE(lock.is_foreign());
  const Held held = lock.try_enter();
  EXPECT_EQ(held, Held::lightly);
  EXPECT_TRUE(lock.taken());
  EXPECT_EQ(lock.try_enter(), Held::no);
  EXPECT_FALSE(lock.try_lock());
  std::thread([&] {
    EXPECT_TRUE(lock.is_foreign());
    EXPECT_FALSE(lock.try_lock());
    EXPECT_EQ(lock.try_enter(), Held::no);
  }).join();
  lock.leave(held);
  EXPECT_FALSE(lock.taken());
  EXPECT_EQ(lock.try_enter(), Held::lightly);
  lock.leave(Held::lightly);
}

// Skipped where a lock cannot be bound to a thread: there every one is taken as a foreign one, as above.
TEST(BiasedLock, AVisitorLeavesItBoundAndACompanionDoesNot) {
  if (!can_bind()) ORRERY_SKIP("membarrier") << "the kernel offers no membarrier(2) of this kind here";
  BiasedLock lock;
  bind_here(lock);
  std::thread([&] { const std::lock_guard held(lock); }).join();
  EXPECT_EQ(lock.try_enter(), Held::lightly);
  lock.leave(Held::lightly);
  std::thread([&] {
    EXPECT_EQ(lock.try_enter(), Held::wholly);
    lock.bind();  // once in its life
    lock.leave(Held::wholly);
  }).join();
  EXPECT_FALSE(lock.is_foreign());
  EXPECT_EQ(lock.try_enter(), Held::wholly);
  lock.bind();
  lock.leave(Held::wholly);
  EXPECT_EQ(lock.try_enter(), Held::wholly);
  lock.leave(Held::wholly);
}

// Property: a thread that has it is alone with what it guards, whichever way it was taken; nothing is lost.
TEST(BiasedLock, KeepsItsThreadVisitorsAndCompanionsApart) {
  (void)can_bind();
  for (const bool unbinds : {false, true}) {
    BiasedLock lock;
    bind_here(lock);
    std::uint64_t guarded = 0;  // guarded by lock
    std::atomic<std::uint64_t> done{0};
    std::atomic<bool> stop{false};
    std::thread other([&] {
      std::uint64_t mine = 0;
      for (int i = 0; i < 2000; ++i) {
        if (unbinds && i == 1000) {
          const Held held = lock.try_enter();
          if (held == Held::no) continue;
          ++guarded;
          lock.leave(held);
        } else {
          const std::lock_guard held(lock);
          ++guarded;
        }
        ++mine;
      }
      done.fetch_add(mine);
      stop.store(true);
    });
    std::uint64_t mine = 0;
    while (!stop.load(std::memory_order_relaxed)) {
      const Held held = lock.try_enter();
      if (held == Held::no) {
        yield_cpu();
        continue;
      }
      ++guarded;
      lock.leave(held);
      ++mine;
    }
    other.join();
    EXPECT_EQ(guarded, mine + done.load());
  }
}

}  // namespace
}  // namespace orrery
