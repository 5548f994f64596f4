// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

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
#if defined(__SANITIZE_THREAD__) && defined(__x86_64__)
  // The checker's own 16-byte operations take a lock that is private to the process. It is told of this one.
  __tsan_release(at);
  bool swapped = false;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(swapped), "+m"(*static_cast<DoubleWord*>(at)), "+a"(expected.low),
                 "+d"(expected.high)
               : "b"(desired.low), "c"(desired.high)
               : "memory");
  __tsan_acquire(at);
  return swapped;
#elif defined(__SIZEOF_INT128__) && defined(__x86_64__)
  __extension__ using Word = unsigned __int128;
  return __sync_bool_compare_and_swap(static_cast<Word*>(at), std::bit_cast<Word>(expected),
                                      std::bit_cast<Word>(desired));
#else
#error "a 16-byte compare-and-swap is required"
#endif
}

// Whether double_word_store() is one access: what the vendors promise of processors that have AVX. Not under
// the checker for data races, which takes it for a plain one. False until this variable is initialized.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
inline const bool g_double_word_stores = __builtin_cpu_supports("avx") != 0;
#else
inline constexpr bool g_double_word_stores = false;
#endif

// Stores two neighbouring 64-bit atomics at once, with release: a thread that loads one of them with acquire
// sees the other, and all earlier stores. REQUIRES: g_double_word_stores; `at` is aligned to 16.
inline void double_word_store(void* at, DoubleWord value) {
  std::atomic_thread_fence(std::memory_order_release);
#if defined(__x86_64__)
  _mm_store_si128(static_cast<__m128i*>(at),
                  _mm_set_epi64x(static_cast<long long>(value.high), static_cast<long long>(value.low)));
#else
  *static_cast<DoubleWord*>(at) = value;
#endif
  // The compiler leaves stores that follow where they are.
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace orrery
