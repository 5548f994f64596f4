/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "shmem_amo.h"
#include "shmem_collective.h"
#include "shmem_old.h"
#include "shmem_rma.h"
#include "shmem_sync.h"
#include "shmem_types.h"

/* The names without a type, by C11's generic selection on the type of the object. */

#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L

/* What is selected for a type that the call does not take: no such function exists. */
int shmem_not_for_this_type(void);

#define SHMEM_FIRST_(a, ...) a
#define SHMEM_SECOND_(a, b, ...) b
#define SHMEM_CASE_(T, N, OP) \
  , T* : shmem_##N##_##OP, const T* : shmem_##N##_##OP, volatile T* : shmem_##N##_##OP
#define SHMEM_CTX_CASE_(T, N, OP) , T* : shmem_ctx_##N##_##OP, const T* : shmem_ctx_##N##_##OP
/* TYPES is the table; the object is the first argument, or the second one behind a context or a team. */
#define SHMEM_SELECT_(TYPES, OP, object) \
  _Generic((object), default : shmem_not_for_this_type TYPES(SHMEM_CASE_, OP))
#define SHMEM_SELECT_CTX_(TYPES, OP, first, second)                          \
  _Generic((first), shmem_ctx_t                                              \
           : _Generic((second), default                                      \
                      : shmem_not_for_this_type TYPES(SHMEM_CTX_CASE_, OP)), \
             default                                                         \
           : _Generic((first), default                                       \
                      : shmem_not_for_this_type TYPES(SHMEM_CASE_, OP)))
#define SHMEM_BY_CTX_(TYPES, OP, ...) \
  SHMEM_SELECT_CTX_(TYPES, OP, SHMEM_FIRST_(__VA_ARGS__, 0), SHMEM_SECOND_(__VA_ARGS__, 0))(__VA_ARGS__)
#define SHMEM_BY_OBJECT_(TYPES, OP, ...) SHMEM_SELECT_(TYPES, OP, SHMEM_FIRST_(__VA_ARGS__, 0))(__VA_ARGS__)
#define SHMEM_BY_TEAM_(TYPES, OP, ...) SHMEM_SELECT_(TYPES, OP, SHMEM_SECOND_(__VA_ARGS__, 0))(__VA_ARGS__)

#define shmem_put(...) SHMEM_BY_CTX_(SHMEM_RMA_BASIC_, put, __VA_ARGS__)
#define shmem_get(...) SHMEM_BY_CTX_(SHMEM_RMA_BASIC_, get, __VA_ARGS__)
#define shmem_iput(...) SHMEM_BY_CTX_(SHMEM_RMA_BASIC_, iput, __VA_ARGS__)
#define shmem_iget(...) SHMEM_BY_CTX_(SHMEM_RMA_BASIC_, iget, __VA_ARGS__)
#define shmem_p(...) SHMEM_BY_CTX_(SHMEM_RMA_BASIC_, p, __VA_ARGS__)
#define shmem_g(...) SHMEM_BY_CTX_(SHMEM_RMA_BASIC_, g, __VA_ARGS__)
#define shmem_put_nbi(...) SHMEM_BY_CTX_(SHMEM_RMA_BASIC_, put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) SHMEM_BY_CTX_(SHMEM_RMA_BASIC_, get_nbi, __VA_ARGS__)
#define shmem_put_signal(...) SHMEM_BY_CTX_(SHMEM_RMA_BASIC_, put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) SHMEM_BY_CTX_(SHMEM_RMA_BASIC_, put_signal_nbi, __VA_ARGS__)

#define shmem_atomic_fetch(...) SHMEM_BY_CTX_(SHMEM_AMO_WIDE_BASIC_, atomic_fetch, __VA_ARGS__)
#define shmem_atomic_set(...) SHMEM_BY_CTX_(SHMEM_AMO_WIDE_BASIC_, atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) SHMEM_BY_CTX_(SHMEM_AMO_WIDE_BASIC_, atomic_swap, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) SHMEM_BY_CTX_(SHMEM_AMO_WIDE_BASIC_, atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) SHMEM_BY_CTX_(SHMEM_AMO_WIDE_BASIC_, atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap(...) SHMEM_BY_CTX_(SHMEM_AMO_BASIC_, atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) SHMEM_BY_CTX_(SHMEM_AMO_BASIC_, atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_inc(...) SHMEM_BY_CTX_(SHMEM_AMO_BASIC_, atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) SHMEM_BY_CTX_(SHMEM_AMO_BASIC_, atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_add(...) SHMEM_BY_CTX_(SHMEM_AMO_BASIC_, atomic_add, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) \
  SHMEM_BY_CTX_(SHMEM_AMO_BASIC_, atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) SHMEM_BY_CTX_(SHMEM_AMO_BASIC_, atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) SHMEM_BY_CTX_(SHMEM_AMO_BASIC_, atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_and(...) SHMEM_BY_CTX_(SHMEM_BITWISE_BASIC_, atomic_and, __VA_ARGS__)
#define shmem_atomic_or(...) SHMEM_BY_CTX_(SHMEM_BITWISE_BASIC_, atomic_or, __VA_ARGS__)
#define shmem_atomic_xor(...) SHMEM_BY_CTX_(SHMEM_BITWISE_BASIC_, atomic_xor, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) SHMEM_BY_CTX_(SHMEM_BITWISE_BASIC_, atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) SHMEM_BY_CTX_(SHMEM_BITWISE_BASIC_, atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) SHMEM_BY_CTX_(SHMEM_BITWISE_BASIC_, atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) SHMEM_BY_CTX_(SHMEM_BITWISE_BASIC_, atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) SHMEM_BY_CTX_(SHMEM_BITWISE_BASIC_, atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) SHMEM_BY_CTX_(SHMEM_BITWISE_BASIC_, atomic_fetch_xor_nbi, __VA_ARGS__)

#define shmem_wait_until(...) SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, wait_until, __VA_ARGS__)
#define shmem_test(...) SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, test, __VA_ARGS__)
#define shmem_wait_until_all(...) SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, wait_until_all, __VA_ARGS__)
#define shmem_wait_until_all_vector(...) \
  SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any(...) SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, wait_until_any, __VA_ARGS__)
#define shmem_wait_until_any_vector(...) \
  SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some(...) SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, wait_until_some, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) \
  SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, wait_until_some_vector, __VA_ARGS__)
#define shmem_test_all(...) SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, test_all, __VA_ARGS__)
#define shmem_test_all_vector(...) SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, test_all_vector, __VA_ARGS__)
#define shmem_test_any(...) SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, test_any, __VA_ARGS__)
#define shmem_test_any_vector(...) SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, test_any_vector, __VA_ARGS__)
#define shmem_test_some(...) SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, test_some, __VA_ARGS__)
#define shmem_test_some_vector(...) SHMEM_BY_OBJECT_(SHMEM_WAIT_BASIC_, test_some_vector, __VA_ARGS__)
#define shmem_fetch(...) SHMEM_BY_OBJECT_(SHMEM_AMO_WIDE_BASIC_, fetch, __VA_ARGS__)
#define shmem_set(...) SHMEM_BY_OBJECT_(SHMEM_AMO_WIDE_BASIC_, set, __VA_ARGS__)
#define shmem_swap(...) SHMEM_BY_OBJECT_(SHMEM_AMO_WIDE_BASIC_, swap, __VA_ARGS__)
#define shmem_cswap(...) SHMEM_BY_OBJECT_(SHMEM_AMO_BASIC_, cswap, __VA_ARGS__)
#define shmem_finc(...) SHMEM_BY_OBJECT_(SHMEM_AMO_BASIC_, finc, __VA_ARGS__)
#define shmem_inc(...) SHMEM_BY_OBJECT_(SHMEM_AMO_BASIC_, inc, __VA_ARGS__)
#define shmem_fadd(...) SHMEM_BY_OBJECT_(SHMEM_AMO_BASIC_, fadd, __VA_ARGS__)
#define shmem_add(...) SHMEM_BY_OBJECT_(SHMEM_AMO_BASIC_, add, __VA_ARGS__)

#define shmem_broadcast(...) SHMEM_BY_TEAM_(SHMEM_RMA_BASIC_, broadcast, __VA_ARGS__)
#define shmem_collect(...) SHMEM_BY_TEAM_(SHMEM_RMA_BASIC_, collect, __VA_ARGS__)
#define shmem_fcollect(...) SHMEM_BY_TEAM_(SHMEM_RMA_BASIC_, fcollect, __VA_ARGS__)
#define shmem_alltoall(...) SHMEM_BY_TEAM_(SHMEM_RMA_BASIC_, alltoall, __VA_ARGS__)
#define shmem_alltoalls(...) SHMEM_BY_TEAM_(SHMEM_RMA_BASIC_, alltoalls, __VA_ARGS__)
#define shmem_and_reduce(...) SHMEM_BY_TEAM_(SHMEM_REDUCE_BITWISE_SELECT_, and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...) SHMEM_BY_TEAM_(SHMEM_REDUCE_BITWISE_SELECT_, or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) SHMEM_BY_TEAM_(SHMEM_REDUCE_BITWISE_SELECT_, xor_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) SHMEM_BY_TEAM_(SHMEM_RMA_BASIC_, min_reduce, __VA_ARGS__)
#define shmem_max_reduce(...) SHMEM_BY_TEAM_(SHMEM_RMA_BASIC_, max_reduce, __VA_ARGS__)
#define SHMEM_ARITH_SELECT_(X, A) SHMEM_RMA_BASIC_(X, A) SHMEM_REDUCE_COMPLEX_(X, A)
#define shmem_sum_reduce(...) SHMEM_BY_TEAM_(SHMEM_ARITH_SELECT_, sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) SHMEM_BY_TEAM_(SHMEM_ARITH_SELECT_, prod_reduce, __VA_ARGS__)

/* Of a team, or of an active set. */
#define shmem_sync(...) \
  _Generic((SHMEM_FIRST_(__VA_ARGS__, 0)), shmem_team_t : shmem_team_sync, default : shmem_sync)(__VA_ARGS__)

#elif !defined(__cplusplus)

/* Before C11: of long alone. */
void shmem_wait_until(volatile long* ivar, int cmp, long cmp_value);
long shmem_swap(long* dest, long value, int pe);

#endif
