// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>

namespace orrery {

// The pointer, of which the processor does not know the address before it knows `value`: what is loaded
// through it is fetched after what made the value. Costs one cycle. No matter of what is seen, which atomics
// order, but of which process a line is fetched from, and how often. Any thread.
template <typename T>
[[gnu::always_inline]] inline T* not_before(std::uint64_t value, T* pointer) {
#if defined(__x86_64__)
  // Not `xor`, which processors know to be zero whatever the register holds.
  asm("andl $0, %k0" : "+r"(value) : : "cc");
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + value);
#else
  (void)value;
  return pointer;
#endif
}

}  // namespace orrery
