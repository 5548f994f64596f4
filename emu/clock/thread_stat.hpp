// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>

namespace orrery::clock {

// State, as in proc(5), and processor time of one thread of a process; state '?' when there is none.
struct ThreadStat {
  char state = '?';
  std::uint64_t ticks = 0;
};
ThreadStat thread_stat(int pid, int tid);

}  // namespace orrery::clock
