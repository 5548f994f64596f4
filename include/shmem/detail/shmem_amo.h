/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "shmem_types.h"

/* Atomic operations on a word of a PE, each a single request of the NIC. With a result (fetch_...) the
 * word's old value. */

#ifdef __cplusplus
extern "C" {
#endif

#define SHMEM_DECLARE_(T, N, A)                                                              \
  T shmem_##N##_atomic_fetch(const T* source, int pe);                                       \
  void shmem_##N##_atomic_set(T* dest, T value, int pe);                                     \
  T shmem_##N##_atomic_swap(T* dest, T value, int pe);                                       \
  void shmem_##N##_atomic_fetch_nbi(T* fetch, const T* source, int pe);                      \
  void shmem_##N##_atomic_swap_nbi(T* fetch, T* dest, T value, int pe);                      \
  T shmem_ctx_##N##_atomic_fetch(shmem_ctx_t ctx, const T* source, int pe);                  \
  void shmem_ctx_##N##_atomic_set(shmem_ctx_t ctx, T* dest, T value, int pe);                \
  T shmem_ctx_##N##_atomic_swap(shmem_ctx_t ctx, T* dest, T value, int pe);                  \
  void shmem_ctx_##N##_atomic_fetch_nbi(shmem_ctx_t ctx, T* fetch, const T* source, int pe); \
  void shmem_ctx_##N##_atomic_swap_nbi(shmem_ctx_t ctx, T* fetch, T* dest, T value, int pe);
SHMEM_AMO_WIDE_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_

#define SHMEM_DECLARE_(T, N, A)                                                                              \
  T shmem_##N##_atomic_compare_swap(T* dest, T cond, T value, int pe);                                       \
  T shmem_##N##_atomic_fetch_inc(T* dest, int pe);                                                           \
  void shmem_##N##_atomic_inc(T* dest, int pe);                                                              \
  T shmem_##N##_atomic_fetch_add(T* dest, T value, int pe);                                                  \
  void shmem_##N##_atomic_add(T* dest, T value, int pe);                                                     \
  void shmem_##N##_atomic_compare_swap_nbi(T* fetch, T* dest, T cond, T value, int pe);                      \
  void shmem_##N##_atomic_fetch_inc_nbi(T* fetch, T* dest, int pe);                                          \
  void shmem_##N##_atomic_fetch_add_nbi(T* fetch, T* dest, T value, int pe);                                 \
  T shmem_ctx_##N##_atomic_compare_swap(shmem_ctx_t ctx, T* dest, T cond, T value, int pe);                  \
  T shmem_ctx_##N##_atomic_fetch_inc(shmem_ctx_t ctx, T* dest, int pe);                                      \
  void shmem_ctx_##N##_atomic_inc(shmem_ctx_t ctx, T* dest, int pe);                                         \
  T shmem_ctx_##N##_atomic_fetch_add(shmem_ctx_t ctx, T* dest, T value, int pe);                             \
  void shmem_ctx_##N##_atomic_add(shmem_ctx_t ctx, T* dest, T value, int pe);                                \
  void shmem_ctx_##N##_atomic_compare_swap_nbi(shmem_ctx_t ctx, T* fetch, T* dest, T cond, T value, int pe); \
  void shmem_ctx_##N##_atomic_fetch_inc_nbi(shmem_ctx_t ctx, T* fetch, T* dest, int pe);                     \
  void shmem_ctx_##N##_atomic_fetch_add_nbi(shmem_ctx_t ctx, T* fetch, T* dest, T value, int pe);
SHMEM_AMO_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_

#define SHMEM_DECLARE_OP_(T, N, OP)                                               \
  void shmem_##N##_atomic_##OP(T* dest, T value, int pe);                         \
  T shmem_##N##_atomic_fetch_##OP(T* dest, T value, int pe);                      \
  void shmem_##N##_atomic_fetch_##OP##_nbi(T* fetch, T* dest, T value, int pe);   \
  void shmem_ctx_##N##_atomic_##OP(shmem_ctx_t ctx, T* dest, T value, int pe);    \
  T shmem_ctx_##N##_atomic_fetch_##OP(shmem_ctx_t ctx, T* dest, T value, int pe); \
  void shmem_ctx_##N##_atomic_fetch_##OP##_nbi(shmem_ctx_t ctx, T* fetch, T* dest, T value, int pe);
#define SHMEM_DECLARE_(T, N, A) \
  SHMEM_DECLARE_OP_(T, N, and) SHMEM_DECLARE_OP_(T, N, or) SHMEM_DECLARE_OP_(T, N, xor)
SHMEM_BITWISE_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_
#undef SHMEM_DECLARE_OP_

#ifdef __cplusplus
}
#endif
