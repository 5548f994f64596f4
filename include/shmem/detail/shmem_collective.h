/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "shmem_types.h"

/* Collectives over teams (the result is 0; not 0: the team is SHMEM_TEAM_INVALID) and over active sets. */

#ifdef __cplusplus
extern "C" {
#endif

void shmem_barrier_all(void);
void shmem_sync_all(void);
void shmem_barrier(int PE_start, int logPE_stride, int PE_size, long* pSync);
void shmem_sync(int PE_start, int logPE_stride, int PE_size, long* pSync);
int shmem_team_sync(shmem_team_t team);

#define SHMEM_DECLARE_(T, N, A)                                                                        \
  int shmem_##N##_broadcast(shmem_team_t team, T* dest, const T* source, size_t nelems, int PE_root);  \
  int shmem_##N##_collect(shmem_team_t team, T* dest, const T* source, size_t nelems);                 \
  int shmem_##N##_fcollect(shmem_team_t team, T* dest, const T* source, size_t nelems);                \
  int shmem_##N##_alltoall(shmem_team_t team, T* dest, const T* source, size_t nelems);                \
  int shmem_##N##_alltoalls(shmem_team_t team, T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, \
                            size_t nelems);
SHMEM_RMA_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_
int shmem_broadcastmem(shmem_team_t team, void* dest, const void* source, size_t nelems, int PE_root);
int shmem_collectmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int shmem_fcollectmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int shmem_alltoallmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int shmem_alltoallsmem(shmem_team_t team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                       size_t nelems);

#define SHMEM_DECLARE_(T, N, OP) \
  int shmem_##N##_##OP##_reduce(shmem_team_t team, T* dest, const T* source, size_t nreduce);
SHMEM_REDUCE_BITWISE_TYPES_(SHMEM_DECLARE_, and)
SHMEM_REDUCE_BITWISE_TYPES_(SHMEM_DECLARE_, or)
SHMEM_REDUCE_BITWISE_TYPES_(SHMEM_DECLARE_, xor)
SHMEM_REDUCE_MINMAX_TYPES_(SHMEM_DECLARE_, min)
SHMEM_REDUCE_MINMAX_TYPES_(SHMEM_DECLARE_, max)
SHMEM_REDUCE_ARITH_TYPES_(SHMEM_DECLARE_, sum)
SHMEM_REDUCE_ARITH_TYPES_(SHMEM_DECLARE_, prod)
#undef SHMEM_DECLARE_

#define SHMEM_SET_TAIL_ int PE_start, int logPE_stride, int PE_size
#define SHMEM_DECLARE_(B)                                                                              \
  void shmem_broadcast##B(void* dest, const void* source, size_t nelems, int PE_root, SHMEM_SET_TAIL_, \
                          long* pSync);                                                                \
  void shmem_collect##B(void* dest, const void* source, size_t nelems, SHMEM_SET_TAIL_, long* pSync);  \
  void shmem_fcollect##B(void* dest, const void* source, size_t nelems, SHMEM_SET_TAIL_, long* pSync); \
  void shmem_alltoall##B(void* dest, const void* source, size_t nelems, SHMEM_SET_TAIL_, long* pSync); \
  void shmem_alltoalls##B(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                          SHMEM_SET_TAIL_, long* pSync);
SHMEM_DECLARE_(32)
SHMEM_DECLARE_(64)
#undef SHMEM_DECLARE_
#define SHMEM_DECLARE_(T, N, OP)                                                                  \
  void shmem_##N##_##OP##_to_all(T* dest, const T* source, int nreduce, SHMEM_SET_TAIL_, T* pWrk, \
                                 long* pSync);
SHMEM_TO_ALL_BITWISE_(SHMEM_DECLARE_, and)
SHMEM_TO_ALL_BITWISE_(SHMEM_DECLARE_, or)
SHMEM_TO_ALL_BITWISE_(SHMEM_DECLARE_, xor)
SHMEM_TO_ALL_MINMAX_(SHMEM_DECLARE_, min)
SHMEM_TO_ALL_MINMAX_(SHMEM_DECLARE_, max)
SHMEM_TO_ALL_ARITH_(SHMEM_DECLARE_, sum)
SHMEM_TO_ALL_ARITH_(SHMEM_DECLARE_, prod)
#undef SHMEM_DECLARE_
#undef SHMEM_SET_TAIL_

#ifdef __cplusplus
}
#endif
