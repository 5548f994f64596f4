// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <csetjmp>
#include <cstddef>

namespace orrery::memory {

// Runs `body(argument)`, which touches memory of this process that may not be there (registered and then
// unmapped, protected by its owner, or of a file that was cut short). True when it ran to its end; false when
// a page was missing, and then whatever it had stored so far stays. REQUIRES: an AddressSpace exists (its
// handlers of faults serve this); `body` holds nothing that needs destruction, takes no lock and calls no
// code of the program. Any thread; a thread that blocks SIGSEGV or SIGBUS gets them unblocked. Not nested.
bool run_guarded(void (*body)(void*), void* argument);

// Copies to or from memory of this process whatever its protection, as a device does whose pages were pinned
// before their owner protected them (mprotect). The kernel copies: a word may be seen half written. False
// where there is no page, where it is of a file that ends before it, and without /proc; a store also where
// the page is shared and read-only. What lies before such a page is copied. Any thread; opens and closes a
// descriptor.
bool store_protected(std::byte* to, const std::byte* from, std::size_t bytes);
bool load_protected(std::byte* to, const std::byte* from, std::size_t bytes);

// The calling thread's way out of a guarded run, or null. For the fault handler.
sigjmp_buf* guarded_exit();

}  // namespace orrery::memory
