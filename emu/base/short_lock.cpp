// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/short_lock.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace orrery {

void ShortLock::wait() {
  constexpr WaitBudget kBeforeNaps{.spins = 100, .yields = 50};
  constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 50'000};
  // The system call itself: nanosleep() is a place where a thread may be cancelled, and follows a modelled
  // clock.
  while (!spin_then_yield(kBeforeNaps, [this] { return try_lock(); })) syscall(SYS_nanosleep, &kNap, nullptr);
}

}  // namespace orrery
