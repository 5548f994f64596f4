/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "shmem.h"

/* Extensions that public programs call, under their names. */

#ifdef __cplusplus
extern "C" {
#endif

/* shmem_malloc_with_hints returns without a barrier: other PEs' memory may be used behind the next one. */
#define SHMEMX_MALLOC_NO_BARRIER (1L << 8)
/* The PEs of this host. */
#define SHMEMX_TEAM_NODE SHMEM_TEAM_SHARED

/* Change a signal without data: an AMO that is complete behind shmem_quiet. */
void shmemx_signal_set(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe);
void shmemx_signal_add(uint64_t* sig_addr, uint64_t signal, int pe);
/* Seconds of a clock that never goes back. */
double shmemx_wtime(void);
/* How a program's own threads name themselves. Accepted: no call needs it. */
void shmemx_register_gettid(uint64_t (*gettid_fn)(void));

/* nblocks blocks of bsize elements each; the strides count elements from block to block. Complete as
 * shmem_iput and shmem_iget are. */
#define SHMEM_DECLARE_OF_(NAME, T)                                                                         \
  void shmemx_##NAME(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, \
                     int pe);                                                                              \
  void shmemx_ctx_##NAME(shmem_ctx_t ctx, T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,          \
                         size_t bsize, size_t nblocks, int pe);
#define SHMEM_DECLARE_(T, N, A) SHMEM_DECLARE_OF_(N##_ibput, T) SHMEM_DECLARE_OF_(N##_ibget, T)
SHMEM_RMA_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_
#define SHMEM_DECLARE_(B, A) SHMEM_DECLARE_OF_(ibput##B, void) SHMEM_DECLARE_OF_(ibget##B, void)
SHMEM_WIDTHS_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_
#undef SHMEM_DECLARE_OF_

/* The sums of the sources of the team's members up to this one: with it (inscan), or without it (exscan: 0 in
 * the first member). dest may be source. 0; not 0: the team is SHMEM_TEAM_INVALID. */
#define SHMEM_DECLARE_(T, N, A)                                                            \
  int shmemx_##N##_sum_inscan(shmem_team_t team, T* dest, const T* source, size_t nelems); \
  int shmemx_##N##_sum_exscan(shmem_team_t team, T* dest, const T* source, size_t nelems);
SHMEM_REDUCE_ARITH_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_

/* A counter of each PE, which goes up by 1 when a put to its PE, or a get from it, has come to its end.
 * shmemx_ct_create and _free are collective. */
typedef struct shmemx_ct_object {
  long count;
} * shmemx_ct_t;
void shmemx_ct_create(shmemx_ct_t* ct);
void shmemx_ct_free(shmemx_ct_t* ct);
/* Of this PE's own counter. */
long shmemx_ct_get(shmemx_ct_t ct);
void shmemx_ct_set(shmemx_ct_t ct, long value);
/* Returns when this PE's counter is at least wait_for. */
void shmemx_ct_wait(shmemx_ct_t ct, long wait_for);
void shmemx_putmem_ct(shmemx_ct_t ct, void* dest, const void* source, size_t len, int pe);
void shmemx_getmem_ct(shmemx_ct_t ct, void* dest, const void* source, size_t len, int pe);

#ifdef __cplusplus
}
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define SHMEMX_CASE_(T, N, OP) , T* : shmemx_##N##_##OP, const T* : shmemx_##N##_##OP
#define SHMEMX_CTX_CASE_(T, N, OP) , T* : shmemx_ctx_##N##_##OP, const T* : shmemx_ctx_##N##_##OP
#define SHMEMX_BY_CTX_(OP, first, second, ...)                                                      \
  _Generic((first), shmem_ctx_t                                                                     \
           : _Generic((second), default                                                             \
                      : shmem_not_for_this_type SHMEM_RMA_BASIC_(SHMEMX_CTX_CASE_, OP)),            \
             default                                                                                \
           : _Generic((first), default                                                              \
                      : shmem_not_for_this_type SHMEM_RMA_BASIC_(SHMEMX_CASE_, OP)))(first, second, \
                                                                                     __VA_ARGS__)
#define shmemx_ibput(...) SHMEMX_BY_CTX_(ibput, __VA_ARGS__)
#define shmemx_ibget(...) SHMEMX_BY_CTX_(ibget, __VA_ARGS__)
#define SHMEMX_BY_TEAM_(OP, team, dest, ...) \
  _Generic((dest), default                   \
           : shmem_not_for_this_type SHMEM_ARITH_SELECT_(SHMEMX_CASE_, OP))(team, dest, __VA_ARGS__)
#define shmemx_sum_inscan(...) SHMEMX_BY_TEAM_(sum_inscan, __VA_ARGS__)
#define shmemx_sum_exscan(...) SHMEMX_BY_TEAM_(sum_exscan, __VA_ARGS__)
#endif
