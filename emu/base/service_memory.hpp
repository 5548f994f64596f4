// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstddef>

// Memory of the service threads' own. A service thread moves pages of the program's heap, and a thread of the
// program may hold a lock of that heap while it waits for the move, or is stopped: so a service thread takes
// nothing from there, and gives nothing back to there.
//   1. A service thread's blocks come from private mappings of its own, made by raw system calls, which are
//      never shared with peers. Any thread may free them.
//   2. What a service thread frees and was taken from the heap is put aside; a thread of the program frees it
//      at its next allocation in the runtime.
//   3. Nothing here takes a lock.
// service_new.cpp has the runtime's operators new and delete call these.
namespace orrery::service_memory {

// From now on the calling thread is a service thread. What it had before in a process that forked stays where
// it is.
void begin();

// A block of at least `bytes` for a service thread, aligned to `alignment` (a power of two); null: the caller
// is no service thread, or the system gives no more memory. In the former case frees what was put aside.
void* take(std::size_t bytes, std::size_t alignment) noexcept;

// Takes back a block of take(), and on a service thread any other block. False: the caller frees it.
bool give_back(void* block) noexcept;

}  // namespace orrery::service_memory
