// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/memory/map_query.hpp"
#include "emu/memory/range.hpp"

#include <cstdint>

namespace orrery::memory {

// Where threads keep what the kernel writes to: stacks, and thread control blocks with the rseq area, the
// robust list and the thread id that is cleared at exit. Works for threads of any making, with nothing
// interposed: get_robust_list(2) gives an address inside each thread's control block, which glibc puts at the
// upper end of the thread's stack.

// An address of the main thread's stack (/proc/self/stat, "startstack"); 0 if the kernel does not tell.
std::uint64_t main_stack_address();

// Where the heap of brk(2) begins (/proc/self/stat, "start_brk"); 0 if the kernel does not tell.
std::uint64_t heap_begin();

// Whether `range`, inside `mapping`, may hold a stack or control block of any thread of this process. Errs
// towards yes: all of the mapping below a control block counts. About 1 us per thread.
bool holds_thread_area(const Mapping& mapping, Range range, std::uint64_t main_stack);

// The same for the calling thread and the main stack only; no file is read.
bool holds_own_thread_area(const Mapping& mapping, Range range, std::uint64_t main_stack);

// Whether every thread but the caller lets SIGSEGV through: a fault that our handler should resolve kills one
// that blocks it. Waits some milliseconds for threads that do so in passing, as pthread_create does. About 30
// us per thread.
bool all_threads_take_faults();

}  // namespace orrery::memory
