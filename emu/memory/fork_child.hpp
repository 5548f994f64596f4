// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/memory/process_state.hpp"

#include <cstdint>

namespace orrery::memory {

// What fork(2) needs, because adopted extents are not inherited: the child maps private memory at their
// addresses and fills it from the file before the program's code can see the gap, while the parent's forking
// thread waits.

// Registers the handlers of pthread_atfork, once per process: a program that has this code twice, in an
// archive and in liborrery.so, has g_handler_page and the following once.
void register_fork_handlers();
extern bool g_has_fork_handlers;

// In a child: puts private memory where the extents were. Idempotent. Runs in the SIGSEGV handler too:
// touches nothing but its stack, HandlerPage and `state`.
void map_extents_in_child(ProcessState& state);

// In a child: whether `address` was in an extent that map_extents_in_child has mapped.
bool child_has(const ProcessState& state, std::uint64_t address);

}  // namespace orrery::memory
