// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/patient_yield.hpp"
#include "emu/base/wait.hpp"
#include "lib/shmem/life.hpp"
#include "lib/shmem/team.hpp"

#include <atomic>
#include <cstdint>

namespace orrery::shmem {

// Moves along what needs this PE, and lets others have the processor.
void give_way();

// Returns when done() is true. Ends the job when a PE has ended meanwhile, which it may be waiting for.
template <typename Done>
void wait_until(const char* call, Done done) {
  if (done()) return;
  const WaitBudget budget{.spins = 100, .yields = 0};
  PatientYield yield;
  std::int64_t look_at = 0;
  while (!spin_then_yield(budget, done)) {
    (void)dmapp_progress();
    yield();
    const std::int64_t now = monotonic_ns();
    if (look_at == 0) look_at = now + kLookNs;
    if (now < look_at) continue;
    look_at = now + kLookNs;
    if (pe_that_is_gone() < 0) continue;
    // What it did before it ended counts.
    if (done()) return;
    fail_if_a_pe_is_gone(call);
  }
}

// Waits until a sync word of the set was raised once more. A team counts how often its words were; an active
// set has no place to count, and leaves its words at 0.
inline void take(const Set& set, std::uint64_t* word) {
  constexpr const char* kCall = "a collective";
  if (set.taken != nullptr) {
    const auto index = static_cast<std::size_t>(word - reinterpret_cast<std::uint64_t*>(set.words));
    const std::uint64_t turn = ++reinterpret_cast<std::uint64_t*>(set.taken)[index];
    // Acquire: what was written before it was raised is seen.
    wait_until(kCall, [word, turn] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= turn; });
    return;
  }
  wait_until(kCall, [word] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) != 0; });
  __atomic_fetch_sub(word, 1, __ATOMIC_ACQ_REL);
}

}  // namespace orrery::shmem
