// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/access.hpp"
#include "lib/shmem/profiling.hpp"

#include "include/shmem/shmem.h"

// Atomic operations. A word of 4 or 8 bytes is one AMO of DMAPP's.
namespace shmem = orrery::shmem;
using shmem::amo_of;
using shmem::pe_of;

// Calls with and without context: RET, name, parameters behind the context, what they do with `call` and
// `on` (the PE).
#define ORRERY_CALL(RET, NAME, PARAMETERS, DO)                            \
  RET shmem_##NAME(ORRERY_LIST PARAMETERS, int pe) {                      \
    constexpr const char* call = "shmem_" #NAME;                          \
    const int on = pe;                                                    \
    DO;                                                                   \
  }                                                                       \
  RET shmem_ctx_##NAME(shmem_ctx_t ctx, ORRERY_LIST PARAMETERS, int pe) { \
    constexpr const char* call = "shmem_ctx_" #NAME;                      \
    const int on = pe_of(call, ctx, pe);                                  \
    DO;                                                                   \
  }
#define ORRERY_LIST(...) __VA_ARGS__

#define ORRERY_WIDE(T, N, A)                                                                           \
  ORRERY_CALL(T, N##_atomic_fetch, (const T* source),                                                  \
              return shmem::fetch_amo(call, source, on, amo_of<uint64_or_32<T>>(DMAPP_AMO_OR, 0)))     \
  ORRERY_CALL(void, N##_atomic_set, (T * dest, T value),                                               \
              shmem::amo(call, dest, on, amo_of<T>(DMAPP_AMO_SWAP, value)))                            \
  ORRERY_CALL(T, N##_atomic_swap, (T * dest, T value),                                                 \
              return shmem::fetch_amo(call, dest, on, amo_of<T>(DMAPP_AMO_SWAP, value)))               \
  ORRERY_CALL(void, N##_atomic_fetch_nbi, (T * fetch, const T* source),                                \
              shmem::fetch_amo_nbi(call, fetch, source, on, amo_of<uint64_or_32<T>>(DMAPP_AMO_OR, 0))) \
  ORRERY_CALL(void, N##_atomic_swap_nbi, (T * fetch, T * dest, T value),                               \
              shmem::fetch_amo_nbi(call, fetch, dest, on, amo_of<T>(DMAPP_AMO_SWAP, value)))

#define ORRERY_ADD(T, N, A)                                                                              \
  ORRERY_CALL(T, N##_atomic_compare_swap, (T * dest, T cond, T value),                                   \
              return shmem::fetch_amo(call, dest, on, amo_of<T>(DMAPP_AMO_CSWAP, cond, value)))          \
  ORRERY_CALL(T, N##_atomic_fetch_inc, (T * dest),                                                       \
              return shmem::fetch_amo(call, dest, on, amo_of<T>(DMAPP_AMO_ADD, 1)))                      \
  ORRERY_CALL(void, N##_atomic_inc, (T * dest), shmem::amo(call, dest, on, amo_of<T>(DMAPP_AMO_ADD, 1))) \
  ORRERY_CALL(T, N##_atomic_fetch_add, (T * dest, T value),                                              \
              return shmem::fetch_amo(call, dest, on, amo_of<T>(DMAPP_AMO_ADD, value)))                  \
  ORRERY_CALL(void, N##_atomic_add, (T * dest, T value),                                                 \
              shmem::amo(call, dest, on, amo_of<T>(DMAPP_AMO_ADD, value)))                               \
  ORRERY_CALL(void, N##_atomic_compare_swap_nbi, (T * fetch, T * dest, T cond, T value),                 \
              shmem::fetch_amo_nbi(call, fetch, dest, on, amo_of<T>(DMAPP_AMO_CSWAP, cond, value)))      \
  ORRERY_CALL(void, N##_atomic_fetch_inc_nbi, (T * fetch, T * dest),                                     \
              shmem::fetch_amo_nbi(call, fetch, dest, on, amo_of<T>(DMAPP_AMO_ADD, 1)))                  \
  ORRERY_CALL(void, N##_atomic_fetch_add_nbi, (T * fetch, T * dest, T value),                            \
              shmem::fetch_amo_nbi(call, fetch, dest, on, amo_of<T>(DMAPP_AMO_ADD, value)))

#define ORRERY_BITS_OF(T, N, OP, WHAT)                                           \
  ORRERY_CALL(void, N##_atomic_##OP, (T * dest, T value),                        \
              shmem::amo(call, dest, on, amo_of<T>(WHAT, value)))                \
  ORRERY_CALL(T, N##_atomic_fetch_##OP, (T * dest, T value),                     \
              return shmem::fetch_amo(call, dest, on, amo_of<T>(WHAT, value)))   \
  ORRERY_CALL(void, N##_atomic_fetch_##OP##_nbi, (T * fetch, T * dest, T value), \
              shmem::fetch_amo_nbi(call, fetch, dest, on, amo_of<T>(WHAT, value)))
#define ORRERY_BITS(T, N, A)               \
  ORRERY_BITS_OF(T, N, and, DMAPP_AMO_AND) \
  ORRERY_BITS_OF(T, N, or, DMAPP_AMO_OR)   \
  ORRERY_BITS_OF(T, N, xor, DMAPP_AMO_XOR)

// Names of earlier versions.
#define ORRERY_OLD_WIDE(T, N, A)                                                                \
  T shmem_##N##_fetch(const T* source, int pe) { return shmem_##N##_atomic_fetch(source, pe); } \
  void shmem_##N##_set(T* dest, T value, int pe) { shmem_##N##_atomic_set(dest, value, pe); }   \
  T shmem_##N##_swap(T* dest, T value, int pe) { return shmem_##N##_atomic_swap(dest, value, pe); }
#define ORRERY_OLD(T, N, A)                                                                              \
  T shmem_##N##_cswap(T* dest, T cond, T value, int pe) {                                                \
    return shmem_##N##_atomic_compare_swap(dest, cond, value, pe);                                       \
  }                                                                                                      \
  T shmem_##N##_finc(T* dest, int pe) { return shmem_##N##_atomic_fetch_inc(dest, pe); }                 \
  void shmem_##N##_inc(T* dest, int pe) { shmem_##N##_atomic_inc(dest, pe); }                            \
  T shmem_##N##_fadd(T* dest, T value, int pe) { return shmem_##N##_atomic_fetch_add(dest, value, pe); } \
  void shmem_##N##_add(T* dest, T value, int pe) { shmem_##N##_atomic_add(dest, value, pe); }

namespace {
// The integer that is as wide: 0 or-ed to a word is a fetch of any type.
template <typename T>
using uint64_or_32 = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
}  // namespace

extern "C" {

SHMEM_NAMES_AMO_(ORRERY_PROFILED)

SHMEM_AMO_WIDE_TYPES_(ORRERY_WIDE, 0)
SHMEM_AMO_TYPES_(ORRERY_ADD, 0)
SHMEM_BITWISE_TYPES_(ORRERY_BITS, 0)
SHMEM_AMO_WIDE_TYPES_(ORRERY_OLD_WIDE, 0)
SHMEM_AMO_TYPES_(ORRERY_OLD, 0)

// Without a type it is of long; C++ has an overload of that name.
long orrery_shmem_swap(long* dest, long value, int pe) __asm__("shmem_swap");
long orrery_shmem_swap(long* dest, long value, int pe) { return shmem_long_atomic_swap(dest, value, pe); }

}  // extern "C"
