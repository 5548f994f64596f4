// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/wait.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace orrery::job {

// What this process may run on: hwloc's view of its affinity mask and cgroup.
struct AllowedCores {
  std::uint32_t cores = 1;       // physical cores with at least one allowed hardware thread
  std::uint32_t threads = 1;     // allowed hardware threads
  std::uint32_t numa_nodes = 1;  // with allowed memory
  double cpu_quota = 0;          // CPUs' worth of time that the cgroup grants; 0 = no limit
  // PEs that can run at once: the threads, or fewer when the quota is smaller; at least 1.
  std::uint32_t usable() const;
};

// Asks hwloc and the cgroup. Some milliseconds: once per job, not per operation.
AllowedCores allowed_cores();

// CPUs that the process which started this one may run on; 0: not known. A launcher that binds gives each PE
// its share of them, so that a PE's own say nothing of how many PEs can run at once.
std::uint32_t parent_threads();

// CPUs' worth of time in the text of a cgroup's cpu.max; 0 when there is no limit or it is not one.
double parse_cpu_max(std::string_view text);

// The budget for `pes` processes on `cores` usable cores (0 = unknown: the default of WaitBudget).
WaitBudget wait_budget_for(std::uint32_t pes, std::uint32_t cores);

// Binds the calling thread to the allowed core number `index` (counted round), and the memory that it
// touches first to the NUMA node of that core. Survives exec. Errors: system (logged).
Status bind_to_core(std::uint32_t index);

// Asks the kernel to place [address, address + bytes) on the NUMA node of the calling thread's CPUs. Does
// nothing on a machine with one node. Errors: system.
Status bind_memory_here(void* address, std::size_t bytes);

}  // namespace orrery::job
