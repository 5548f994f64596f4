// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"

#include <atomic>

namespace orrery {

// A lock for what mostly takes a fraction of a microsecond and is hardly ever contended: one locked
// instruction for a pair of lock() and unlock(), where std::mutex takes two and three calls. Who waits spins,
// then yields, then naps until it finds it free: nobody wakes it, so a wait that outlasts the spinning ends
// up to 100 us late, and a holder that was preempted gets the core back. Not recursive, not fair, not for
// signal handlers. Usage: const std::lock_guard lock(short_lock_);
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
