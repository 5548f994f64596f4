// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/short_lock.hpp"

namespace orrery {

void ShortLock::wait() {
  constexpr WaitBudget kBeforeSleep{.spins = 100, .yields = 1};
  if (spin_then_yield(kBeforeSleep, [this] { return try_lock(); })) return;
  // Relaxed, as unlock() reads it: a sleeper that is missed there ends its sleep itself.
  sleepers_.fetch_add(1, std::memory_order_relaxed);
  while (!try_lock()) futex_wait_for(held_, 1, nap_ns_);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void ShortLock::wake() { futex_wake(held_, 1); }

}  // namespace orrery
