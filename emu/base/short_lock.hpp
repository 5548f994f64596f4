// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"

#include <atomic>
#include <cstdint>

namespace orrery {

// A lock for what mostly takes a fraction of a microsecond and is hardly ever contended: one locked
// instruction for a pair of lock() and unlock(), where std::mutex takes two and three calls. A waiter spins,
// yields once, then sleeps. So a holder that a waiter preempted gets the core back, even where the scheduler
// prefers the thread that yields. unlock() wakes a sleeper that it sees; a thread that goes to sleep at that
// very moment may be missed, and looks again after `nap_ns`. Not recursive, not fair, not for signal
// handlers. Usage: const std::lock_guard lock(short_lock_);
class ShortLock {
 public:
  static constexpr std::int64_t kNapNs = 50'000;
  explicit ShortLock(std::int64_t nap_ns = kNapNs) : nap_ns_(nap_ns) {}
  ShortLock(const ShortLock&) = delete;
  ShortLock& operator=(const ShortLock&) = delete;

  void lock() {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  bool try_lock() {
    return held_.load(std::memory_order_relaxed) == 0 && held_.exchange(1, std::memory_order_acquire) == 0;
  }
  void unlock() {
    held_.store(0, std::memory_order_release);
    if (sleepers_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }

  // How many threads sleep, or are about to.
  std::uint32_t sleepers_for_test() const { return sleepers_.load(std::memory_order_relaxed); }

 private:
  void wait();
  void wake();

  FutexWord held_{0};  // 1: a thread has it
  FutexWord sleepers_{0};
  const std::int64_t nap_ns_;
};

}  // namespace orrery
