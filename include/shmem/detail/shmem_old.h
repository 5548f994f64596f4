/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "shmem_types.h"

/* Names of earlier versions, which programs still use. Each does what its successor does. */

#ifdef __cplusplus
extern "C" {
#endif

void start_pes(int npes);
int _my_pe(void);
int my_pe(void);
int _num_pes(void);
int num_pes(void);
int shmem_num_pes(void);
void* shmalloc(size_t size);
void shfree(void* ptr);
void* shrealloc(void* ptr, size_t size);
void* shmemalign(size_t alignment, size_t size);

#define SHMEM_DECLARE_(T, N, A)                   \
  T shmem_##N##_fetch(const T* source, int pe);   \
  void shmem_##N##_set(T* dest, T value, int pe); \
  T shmem_##N##_swap(T* dest, T value, int pe);
SHMEM_AMO_WIDE_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_
#define SHMEM_DECLARE_(T, N, A)                          \
  T shmem_##N##_cswap(T* dest, T cond, T value, int pe); \
  T shmem_##N##_finc(T* dest, int pe);                   \
  void shmem_##N##_inc(T* dest, int pe);                 \
  T shmem_##N##_fadd(T* dest, T value, int pe);          \
  void shmem_##N##_add(T* dest, T value, int pe);
SHMEM_AMO_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_

/* Wait until the value is another than cmp_value. */
#define SHMEM_DECLARE_(T, N, A) void shmem_##N##_wait(volatile T* ivar, T cmp_value);
SHMEM_WAIT_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_
void shmem_wait(volatile long* ivar, long cmp_value);

/* Here the processor's caches are coherent: these do nothing. */
void shmem_clear_cache_inv(void);
void shmem_set_cache_inv(void);
void shmem_clear_cache_line_inv(void* dest);
void shmem_set_cache_line_inv(void* dest);
void shmem_udcflush(void);
void shmem_udcflush_line(void* dest);

#ifdef __cplusplus
}
#endif
