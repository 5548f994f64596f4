// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"
#include "lib/shmem/job.hpp"

#include <atomic>
#include <cstdint>

namespace orrery::shmem {

// Moves along what needs this PE, and lets others have the processor.
void give_way();

// Returns when done() is true.
template <typename Done>
void wait_until(Done done) {
  if (done()) return;
  const WaitBudget budget{.spins = 100, .yields = 0};
  while (!spin_then_yield(budget, done)) give_way();
}

// The sync words' wait: until the word is not 0, then one less.
inline void take(std::uint64_t* word) {
  // Acquire: what was written before it was raised is seen.
  wait_until([word] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) != 0; });
  __atomic_fetch_sub(word, 1, __ATOMIC_ACQ_REL);
}

}  // namespace orrery::shmem
