// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/asymmetric_fence.hpp"

#include <atomic>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::asymmetric_fence {

namespace {
bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }
std::atomic<bool> g_enrolled{false};
}  // namespace

bool enrol() {
  if (!membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)) return false;
  g_enrolled.store(true, std::memory_order_release);
  return true;
}

bool enrolled() { return g_enrolled.load(std::memory_order_acquire); }

bool heavy() { return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED); }

}  // namespace orrery::asymmetric_fence
