// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/asymmetric_fence.hpp"

#include "emu/base/log.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>

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

bool heavy() {
  if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) return true;
  if (!enrolled()) return false;
  // The kernel may be out of memory for the one; the other needs none, and takes milliseconds.
  if (membarrier(MEMBARRIER_CMD_GLOBAL)) return true;
  static std::atomic<bool> told{false};
  if (!told.exchange(true, std::memory_order_relaxed))
    log::warn("membarrier(2) was allowed before and is not any more: {}; what peers do may be seen late",
              std::strerror(errno));
  return false;
}

}  // namespace orrery::asymmetric_fence
