// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

namespace orrery {

struct alignas(16) DoubleWord {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};
static_assert(std::endian::native == std::endian::little,
              "halves of a 16-byte word are named for little-endian");

// 16-byte compare-and-swap of two neighbouring 64-bit atomics, sequentially consistent, one instruction
// (cmpxchg16b): both halves change or neither does, whatever happens to the process. libatomic's 16-byte
// operations are not used: GCC calls out to them, and they may take locks that are private to a process.
inline bool double_word_cas(void* at, DoubleWord expected, DoubleWord desired) {
#if defined(__SIZEOF_INT128__) && defined(__x86_64__)
  __extension__ using Word = unsigned __int128;
  return __sync_bool_compare_and_swap(static_cast<Word*>(at), std::bit_cast<Word>(expected),
                                      std::bit_cast<Word>(desired));
#else
#error "a 16-byte compare-and-swap is required"
#endif
}

}  // namespace orrery
