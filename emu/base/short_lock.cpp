// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/short_lock.hpp"

#include <time.h>

namespace orrery {

void ShortLock::wait() {
  constexpr WaitBudget kBeforeNaps{.spins = 100, .yields = 50};
  constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 50'000};
  while (!spin_then_yield(kBeforeNaps, [this] { return try_lock(); })) nanosleep(&kNap, nullptr);
}

}  // namespace orrery
