// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"
#include "emu/memory/process_state.hpp"

#include <cerrno>
#include <cstdint>
#include <optional>

#include <sys/types.h>

namespace orrery::memory {

// Makes a system call that writes to this process's memory: calls `call` again for as long as it fails with
// EFAULT and a chunk was being switched while it ran. A call that took part of its data returns a short count
// instead, which every caller must expect. Returns what `call` returned last; errno is its. Any thread that
// does not switch; blocks while a chunk is switched.
template <typename Call>
ssize_t retry_call(Call call) {
  for (;;) {
    ProcessState* const state = current_state();
    const std::uint32_t before = state == nullptr ? 0 : state->sequence.load(std::memory_order_acquire);
    const ssize_t result = call();
    if (result >= 0 || errno != EFAULT || state == nullptr || state->in_child()) [[likely]]
      return result;
    const std::uint32_t after = state->sequence.load(std::memory_order_acquire);
    if (after == before && (after & 1) == 0) {
      errno = EFAULT;
      return -1;
    }
    if ((after & 1) != 0) futex_wait(state->sequence, after, std::nullopt);
  }
}

}  // namespace orrery::memory
