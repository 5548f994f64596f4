// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/asymmetric_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::asymmetric_fence {

namespace {
bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }
}  // namespace

bool enrol() { return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED); }

bool heavy() { return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED); }

}  // namespace orrery::asymmetric_fence
