// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"

#include <atomic>

namespace orrery {

// A lock for what takes a fraction of a microsecond and is hardly ever contended: one locked instruction for
// a pair of lock() and unlock(), where std::mutex takes two and three calls. Who waits spins, then yields,
// then sleeps in short naps, so a holder that was preempted gets the core back. Not recursive, not fair.
// Usage: const std::lock_guard lock(short_lock_);
class ShortLock {
 public:
  void lock() {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  bool try_lock() {
    return !held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  void wait();

  std::atomic<bool> held_{false};
};

}  // namespace orrery
