// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"

#include <cstdint>
#include <optional>

namespace orrery {

// sched_yield(2). False when it took so long that it gave another program a whole slice of the core, as each
// further one would. A thread that has slept comes before such a program.
bool yield_briefly();

// A limit that is nearer than this (nanoseconds) is slept for at once: a yield may take as long.
inline constexpr std::int64_t kTooSoonToYieldNs = 1'000'000;

// As spin_then_yield(), before a sleep that has a limit: looks once when `deadline_ns` (of monotonic_ns();
// none = for ever) is near, and yields no more when a yield gave away a slice of the core.
template <typename Done, typename Yield>
bool look_before_sleep(const WaitBudget& budget, Done done, std::optional<std::int64_t> deadline_ns,
                       Yield yield) {
  if (done()) return true;
  if (deadline_ns && *deadline_ns - monotonic_ns() < kTooSoonToYieldNs) return false;
  for (std::uint32_t i = 0; i < budget.spins; ++i) {
    cpu_relax();
    if (done()) return true;
  }
  for (std::uint32_t i = 0; i < budget.yields; ++i) {
    const bool others_poll = yield();
    if (done()) return true;
    if (!others_poll) return false;
  }
  return false;
}

template <typename Done>
bool look_before_sleep(const WaitBudget& budget, Done done, std::optional<std::int64_t> deadline_ns) {
  return look_before_sleep(budget, done, deadline_ns, yield_briefly);
}

}  // namespace orrery
