/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "shmem_types.h"

/*
 * The names of all functions, for the profiling interface: each table calls X(name) for every function
 * shmem_<name> of a part of the interface.
 */
/* clang-format off */
#define SHMEM_BOTH_(X, NAME) X(NAME) X(ctx_##NAME)

#define SHMEM_NAMES_MOVES_(X, P, S) \
  SHMEM_BOTH_(X, P##put##S) SHMEM_BOTH_(X, P##get##S) \
  SHMEM_BOTH_(X, P##put##S##_nbi) SHMEM_BOTH_(X, P##get##S##_nbi)
#define SHMEM_NAMES_STRIDED_(X, P, S) SHMEM_BOTH_(X, P##iput##S) SHMEM_BOTH_(X, P##iget##S)
#define SHMEM_NAMES_SIGNAL_OF_(X, P, S) SHMEM_BOTH_(X, P##put##S##_signal) SHMEM_BOTH_(X, \
  P##put##S##_signal_nbi)

#define SHMEM_NAMES_RMA_TYPE_(T, N, X) \
  SHMEM_NAMES_MOVES_(X, N##_, ) SHMEM_NAMES_STRIDED_(X, N##_, ) SHMEM_BOTH_(X, N##_p) SHMEM_BOTH_(X, \
  N##_g)
#define SHMEM_NAMES_RMA_WIDTH_(B, X) SHMEM_NAMES_MOVES_(X, , B) SHMEM_NAMES_STRIDED_(X, , B)
#define SHMEM_NAMES_RMA_(X) \
  SHMEM_RMA_TYPES_(SHMEM_NAMES_RMA_TYPE_, X) SHMEM_WIDTHS_(SHMEM_NAMES_RMA_WIDTH_, X) \
  SHMEM_NAMES_MOVES_(X, , mem)

#define SHMEM_NAMES_SIGNAL_TYPE_(T, N, X) SHMEM_NAMES_SIGNAL_OF_(X, N##_, )
#define SHMEM_NAMES_SIGNAL_WIDTH_(B, X) SHMEM_NAMES_SIGNAL_OF_(X, , B)
#define SHMEM_NAMES_SIGNAL_(X) \
  SHMEM_RMA_TYPES_(SHMEM_NAMES_SIGNAL_TYPE_, X) SHMEM_WIDTHS_(SHMEM_NAMES_SIGNAL_WIDTH_, X) \
  SHMEM_NAMES_SIGNAL_OF_(X, , mem) X(signal_fetch)

#define SHMEM_NAMES_AMO_WIDE_(T, N, X) \
  SHMEM_BOTH_(X, N##_atomic_fetch) SHMEM_BOTH_(X, N##_atomic_set) SHMEM_BOTH_(X, N##_atomic_swap) \
  SHMEM_BOTH_(X, N##_atomic_fetch_nbi) SHMEM_BOTH_(X, N##_atomic_swap_nbi) X(N##_fetch) X(N##_set) \
  X(N##_swap)
#define SHMEM_NAMES_AMO_ADD_(T, N, X) \
  SHMEM_BOTH_(X, N##_atomic_compare_swap) SHMEM_BOTH_(X, N##_atomic_fetch_inc) SHMEM_BOTH_(X, \
  N##_atomic_inc) \
  SHMEM_BOTH_(X, N##_atomic_fetch_add) SHMEM_BOTH_(X, N##_atomic_add) \
  SHMEM_BOTH_(X, N##_atomic_compare_swap_nbi) SHMEM_BOTH_(X, N##_atomic_fetch_inc_nbi) \
  SHMEM_BOTH_(X, N##_atomic_fetch_add_nbi) X(N##_cswap) X(N##_finc) X(N##_inc) X(N##_fadd) X(N##_add)
#define SHMEM_NAMES_AMO_BITS_OF_(X, N, OP) \
  SHMEM_BOTH_(X, N##_atomic_##OP) SHMEM_BOTH_(X, N##_atomic_fetch_##OP) SHMEM_BOTH_(X, \
  N##_atomic_fetch_##OP##_nbi)
#define SHMEM_NAMES_AMO_BITS_(T, N, X) \
  SHMEM_NAMES_AMO_BITS_OF_(X, N, and) SHMEM_NAMES_AMO_BITS_OF_(X, N, or) SHMEM_NAMES_AMO_BITS_OF_(X, \
  N, xor)
#define SHMEM_NAMES_AMO_(X) \
  SHMEM_AMO_WIDE_TYPES_(SHMEM_NAMES_AMO_WIDE_, X) SHMEM_AMO_TYPES_(SHMEM_NAMES_AMO_ADD_, X) \
  SHMEM_BITWISE_TYPES_(SHMEM_NAMES_AMO_BITS_, X)

#define SHMEM_NAMES_MANY_OF_(X, N, S) \
  X(N##_wait_until_all##S) X(N##_wait_until_any##S) X(N##_wait_until_some##S) X(N##_test_all##S) \
  X(N##_test_any##S) X(N##_test_some##S)
#define SHMEM_NAMES_WAIT_TYPE_(T, N, X) \
  X(N##_wait_until) X(N##_wait) X(N##_test) SHMEM_NAMES_MANY_OF_(X, N, ) SHMEM_NAMES_MANY_OF_(X, N, \
  _vector)
#define SHMEM_NAMES_SYNC_(X) \
  SHMEM_WAIT_TYPES_(SHMEM_NAMES_WAIT_TYPE_, X) X(wait) X(signal_wait_until) X(fence) X(quiet) \
  X(ctx_fence) X(ctx_quiet)
#define SHMEM_NAMES_LOCK_(X) X(set_lock) X(clear_lock) X(test_lock)

#define SHMEM_NAMES_TEAM_OF_(X, P, S) \
  X(P##broadcast##S) X(P##collect##S) X(P##fcollect##S) X(P##alltoall##S) X(P##alltoalls##S)
#define SHMEM_NAMES_TEAM_TYPE_(T, N, X) SHMEM_NAMES_TEAM_OF_(X, N##_, )
#define SHMEM_NAMES_COLLECTIVE_(X) \
  SHMEM_RMA_TYPES_(SHMEM_NAMES_TEAM_TYPE_, X) SHMEM_NAMES_TEAM_OF_(X, , mem) \
  SHMEM_NAMES_TEAM_OF_(X, , 32) SHMEM_NAMES_TEAM_OF_(X, , 64) X(barrier_all) X(sync_all) X(barrier) \
  X(team_sync)
/* X(name, op): functions shmem_<name>_<op>_reduce and _to_all. */
#define SHMEM_NAMES_AND_(T, N, X) X(N##_and_reduce)
#define SHMEM_NAMES_OR_(T, N, X) X(N##_or_reduce)
#define SHMEM_NAMES_XOR_(T, N, X) X(N##_xor_reduce)
#define SHMEM_NAMES_MIN_(T, N, X) X(N##_min_reduce)
#define SHMEM_NAMES_MAX_(T, N, X) X(N##_max_reduce)
#define SHMEM_NAMES_SUM_(T, N, X) X(N##_sum_reduce)
#define SHMEM_NAMES_PROD_(T, N, X) X(N##_prod_reduce)
#define SHMEM_NAMES_BITS_TO_ALL_(T, N, X) X(N##_and_to_all) X(N##_or_to_all) X(N##_xor_to_all)
#define SHMEM_NAMES_MINMAX_TO_ALL_(T, N, X) X(N##_min_to_all) X(N##_max_to_all)
#define SHMEM_NAMES_ARITH_TO_ALL_(T, N, X) X(N##_sum_to_all) X(N##_prod_to_all)
#define SHMEM_NAMES_REDUCE_(X) \
  SHMEM_REDUCE_BITWISE_TYPES_(SHMEM_NAMES_AND_, X) SHMEM_REDUCE_BITWISE_TYPES_(SHMEM_NAMES_OR_, X) \
  SHMEM_REDUCE_BITWISE_TYPES_(SHMEM_NAMES_XOR_, X) SHMEM_REDUCE_MINMAX_TYPES_(SHMEM_NAMES_MIN_, X) \
  SHMEM_REDUCE_MINMAX_TYPES_(SHMEM_NAMES_MAX_, X) SHMEM_REDUCE_ARITH_TYPES_(SHMEM_NAMES_SUM_, X) \
  SHMEM_REDUCE_ARITH_TYPES_(SHMEM_NAMES_PROD_, X) SHMEM_TO_ALL_BITWISE_(SHMEM_NAMES_BITS_TO_ALL_, X) \
  SHMEM_TO_ALL_MINMAX_(SHMEM_NAMES_MINMAX_TO_ALL_, X) SHMEM_TO_ALL_ARITH_(SHMEM_NAMES_ARITH_TO_ALL_, X)

#define SHMEM_NAMES_JOB_(X) \
  X(init) X(init_thread) X(query_thread) X(finalize) X(my_pe) X(n_pes) X(num_pes) \
  X(pe_accessible) X(addr_accessible) X(ptr) X(info_get_version) X(info_get_name) X(clear_cache_inv) \
  X(set_cache_inv) X(clear_cache_line_inv) X(set_cache_line_inv) X(udcflush) X(udcflush_line) X(pcontrol)
#define SHMEM_NAMES_MEMORY_(X) X(malloc) X(malloc_with_hints) X(calloc) X(align) X(realloc) X(free)
#define SHMEM_NAMES_TEAM_(X) \
  X(team_my_pe) X(team_n_pes) X(team_get_config) X(team_translate_pe) X(team_split_strided) \
  X(team_split_2d) X(team_destroy) X(team_ptr) X(ctx_create) X(team_create_ctx) X(ctx_destroy) X(ctx_get_team)
/* clang-format on */
