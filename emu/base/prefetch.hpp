// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

namespace orrery {

// Fetches the cache line of `at` for writing, so that a store that follows finds it here. A hint: any address
// will do, and a processor that does not know the instruction passes over it. (The compiler's own hint
// fetches it to read where the instruction set is the portable one, and another process then keeps it until
// the write.)
inline void prefetch_to_write(const void* at) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
#endif
}

// The same for reading.
inline void prefetch_to_read(const void* at) { __builtin_prefetch(at, 0); }

}  // namespace orrery
