// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdio>
#include <string>

// What bench/ratios measures. The measuring processes print one line a repetition and row,
//   ROW <name> <ours> <limit>
// and the parent takes medians and compares.
namespace bench {

// How long one repetition measures ours, and the raw limit beside it.
constexpr double kTestMs = 30;
constexpr double kRawMs = 10;

// Prints one row; of two PEs that measured together, the first does.
inline void row(int rank, const std::string& name, double ours, double limit) {
  if (rank != 0) return;
  std::printf("ROW %s %.3f %.3f\n", name.c_str(), ours, limit);
  std::fflush(stdout);
}

// Two PEs, direct path.
void measure_direct(int repetitions);
// Two PEs, frames only, the target polling.
void measure_frames(int repetitions);
// Two PEs: AMOs and FMA Launch, from one to the other's idle memory.
void measure_units(int repetitions);
// Eight PEs: a window over all of them.
void measure_scatter(int repetitions);
// Two PEs, direct path: short messages and datagrams.
void measure_messages(int repetitions);
// Eight PEs: barriers.
void measure_barrier(int repetitions);
// Two PEs, and eight: reductions by the collective engine.
void measure_collective(int repetitions);
void measure_collective_8(int repetitions);
// Two PEs: the NIC's counters, what they trigger, a registration of the whole address space.
void measure_counters(int repetitions);
// Eight PEs: puts by as many threads of one of them, beside one thread of each.
void measure_threads(int repetitions);
// Two PEs, and eight: DMAPP, beside uGNI on the same NIC.
void measure_dmapp(int repetitions);
void measure_dmapp_8(int repetitions);
// Two PEs, and eight: OpenSHMEM, beside DMAPP in one process.
void measure_shmem(int repetitions);
void measure_shmem_8(int repetitions);
// Two PEs: matched puts and long lists. Eight: a triggered allreduce.
void measure_portals(int repetitions);
void measure_portals_8(int repetitions);
// Two PEs: CCI's messages and RMA. One, and a process that it makes: both asleep.
void measure_cci(int repetitions);
void measure_cci_asleep(int repetitions);

}  // namespace bench
