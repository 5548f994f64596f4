// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

// Waiting across processes. std::atomic::wait is not used: libstdc++ 12 waits on private futexes.
namespace orrery {

using FutexWord = std::atomic<std::uint32_t>;

// Nanoseconds of CLOCK_MONOTONIC. (Real time: the runtime's own waits never follow a modelled clock.)
std::int64_t monotonic_ns();

// A counter of the processor that never stops and goes a billion times a second or more often, where there is
// one: for rough ages, at a fraction of the price of a clock. Elsewhere nanoseconds.
inline std::uint64_t rough_ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(monotonic_ns());
#endif
}

// Sleeps while `word` holds `expected`, until woken or until `deadline_ns` of monotonic_ns() (none = for
// ever). Returns false only when the deadline passed. May return true early. Works across processes.
bool futex_wait(FutexWord& word, std::uint32_t expected, std::optional<std::int64_t> deadline_ns);

// The same for `ns` from now, without a look at the clock.
bool futex_wait_for(FutexWord& word, std::uint32_t expected, std::int64_t ns);

// Wakes up to `count` sleepers on `word`, in any process. One system call.
void futex_wake(FutexWord& word, int count);

// How long to spin and yield before sleeping: {0, few} when PEs share cores, larger when each has one.
struct WaitBudget {
  std::uint32_t spins = 100;
  std::uint32_t yields = 100;
};

// Says that this thread is the runtime's own, not the program's: it keeps real time whatever clock the
// program has.
void mark_runtime_thread();
bool is_runtime_thread();

// sched_yield(2).
void yield_cpu();

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins, then yields, within `budget` until `done()` is true. Returns whether it became true.
template <typename Done>
bool spin_then_yield(const WaitBudget& budget, Done done) {
  for (std::uint32_t i = 0; i < budget.spins; ++i) {
    if (done()) return true;
    cpu_relax();
  }
  for (std::uint32_t i = 0; i < budget.yields; ++i) {
    if (done()) return true;
    yield_cpu();
  }
  return done();
}

}  // namespace orrery
