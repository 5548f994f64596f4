/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "shmem_types.h"

/* Order and completion, waiting for memory, signals, locks. */

#ifdef __cplusplus
extern "C" {
#endif

void shmem_fence(void);
void shmem_quiet(void);
void shmem_ctx_fence(shmem_ctx_t ctx);
void shmem_ctx_quiet(shmem_ctx_t ctx);

#define SHMEM_DECLARE_(T, N, A)                                                                             \
  void shmem_##N##_wait_until(volatile T* ivar, int cmp, T cmp_value);                                      \
  void shmem_##N##_wait_until_all(volatile T* ivars, size_t nelems, const int* status, int cmp,             \
                                  T cmp_value);                                                             \
  size_t shmem_##N##_wait_until_any(volatile T* ivars, size_t nelems, const int* status, int cmp,           \
                                    T cmp_value);                                                           \
  size_t shmem_##N##_wait_until_some(volatile T* ivars, size_t nelems, size_t* indices, const int* status,  \
                                     int cmp, T cmp_value);                                                 \
  void shmem_##N##_wait_until_all_vector(volatile T* ivars, size_t nelems, const int* status, int cmp,      \
                                         const T* cmp_values);                                              \
  size_t shmem_##N##_wait_until_any_vector(volatile T* ivars, size_t nelems, const int* status, int cmp,    \
                                           const T* cmp_values);                                            \
  size_t shmem_##N##_wait_until_some_vector(volatile T* ivars, size_t nelems, size_t* indices,              \
                                            const int* status, int cmp, const T* cmp_values);               \
  int shmem_##N##_test(volatile T* ivar, int cmp, T cmp_value);                                             \
  int shmem_##N##_test_all(volatile T* ivars, size_t nelems, const int* status, int cmp, T cmp_value);      \
  size_t shmem_##N##_test_any(volatile T* ivars, size_t nelems, const int* status, int cmp, T cmp_value);   \
  size_t shmem_##N##_test_some(volatile T* ivars, size_t nelems, size_t* indices, const int* status,        \
                               int cmp, T cmp_value);                                                       \
  int shmem_##N##_test_all_vector(volatile T* ivars, size_t nelems, const int* status, int cmp,             \
                                  const T* cmp_values);                                                     \
  size_t shmem_##N##_test_any_vector(volatile T* ivars, size_t nelems, const int* status, int cmp,          \
                                     const T* cmp_values);                                                  \
  size_t shmem_##N##_test_some_vector(volatile T* ivars, size_t nelems, size_t* indices, const int* status, \
                                      int cmp, const T* cmp_values);
SHMEM_WAIT_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_

uint64_t shmem_signal_fetch(const uint64_t* sig_addr);
uint64_t shmem_signal_wait_until(uint64_t* sig_addr, int cmp, uint64_t cmp_value);

void shmem_set_lock(long* lock);
void shmem_clear_lock(long* lock);
/* 0: the lock was taken; 1: it is held. */
int shmem_test_lock(long* lock);

#ifdef __cplusplus
}
#endif
