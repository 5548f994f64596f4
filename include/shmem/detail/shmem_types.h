/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Types, constants, and the tables of types from which the typed names are made. */

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 5
#define SHMEM_MAX_NAME_LEN 256
#define SHMEM_VENDOR_STRING "Orrery OpenSHMEM"
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING

/* By these two, which Sandia OpenSHMEM defines, programs (shmem4py) know that 1.5 is there whole. */
#define SHMEM_DEF_H
#define SHMEM_FUNCTION_ATTRIBUTES

/* Levels of threads. */
#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

/* Comparisons of wait and test. */
#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_LE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_GE 5
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_GE SHMEM_CMP_GE

#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

/* Hints of shmem_malloc_with_hints; combined by |. */
#define SHMEM_MALLOC_ATOMICS_REMOTE (1L << 0)
#define SHMEM_MALLOC_SIGNAL_REMOTE (1L << 1)

/* Work arrays of collectives over active sets. All sync arrays are of one size. */
#define SHMEM_SYNC_VALUE 0L
#define SHMEM_SYNC_SIZE 128
#define SHMEM_BARRIER_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 8
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_ALLTOALL_SYNC_SIZE SHMEM_ALLTOALL_SYNC_SIZE
#define _SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_ALLTOALLS_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

/* A context orders and completes operations of its own. The objects themselves are the library's. */
typedef struct shmem_context_object {
  int reserved;
} * shmem_ctx_t;
#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)(intptr_t)1)
#define SHMEM_CTX_SERIALIZED (1L << 0)
#define SHMEM_CTX_PRIVATE (1L << 1)
#define SHMEM_CTX_NOSTORE (1L << 2)

/* A team is a set of PEs with numbers of their own. */
typedef struct shmem_team_object {
  int reserved;
} * shmem_team_t;
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)(intptr_t)1)
#define SHMEM_TEAM_SHARED ((shmem_team_t)(intptr_t)2)
#define SHMEM_TEAM_NUM_CONTEXTS (1L << 0)
typedef struct shmem_team_config {
  int num_contexts;
} shmem_team_config_t;

/* C's types of complex numbers, in C++ as well: std::complex<float> has the same layout. */
__extension__ typedef __complex__ float shmem_complexf_t_;
__extension__ typedef __complex__ double shmem_complexd_t_;
#define SHMEM_COMPLEXF_ shmem_complexf_t_
#define SHMEM_COMPLEXD_ shmem_complexd_t_

/*
 * Tables: each calls X(type, name, A) for every type of a set; A is whatever the caller wants to hand on.
 * Tables that end in BASIC_ have each type of the language once: for C11's generic selection and for C++'s
 * overloads, to which int32_t and int are the same.
 */
/* clang-format off */
#define SHMEM_FIXED_INTS_(X, A) \
  X(int8_t, int8, A)            \
  X(int16_t, int16, A)          \
  X(int32_t, int32, A)          \
  X(int64_t, int64, A)          \
  X(uint8_t, uint8, A) X(uint16_t, uint16, A) X(uint32_t, uint32, A) X(uint64_t, uint64, A) X(size_t, size, A)

#define SHMEM_RMA_BASIC_(X, A)                                                                            \
  X(float, float, A)                                                                                      \
  X(double, double, A)                                                                                    \
  X(long double, longdouble, A)                                                                           \
  X(char, char, A)                                                                                        \
  X(signed char, schar, A)                                                                                \
  X(short, short, A) X(int, int, A) X(long, long, A) X(long long, longlong, A) X(unsigned char, uchar, A) \
      X(unsigned short, ushort, A) X(unsigned int, uint, A) X(unsigned long, ulong, A)                    \
          X(unsigned long long, ulonglong, A)
#define SHMEM_RMA_TYPES_(X, A) SHMEM_RMA_BASIC_(X, A) SHMEM_FIXED_INTS_(X, A) X(ptrdiff_t, ptrdiff, A)

#define SHMEM_AMO_BASIC_(X, A) \
  X(int, int, A)               \
  X(long, long, A)             \
  X(long long, longlong, A)    \
  X(unsigned int, uint, A) X(unsigned long, ulong, A) X(unsigned long long, ulonglong, A)
#define SHMEM_AMO_FIXED_(X, A) \
  X(int32_t, int32, A)         \
  X(int64_t, int64, A)         \
  X(uint32_t, uint32, A) X(uint64_t, uint64, A) X(size_t, size, A) X(ptrdiff_t, ptrdiff, A)
#define SHMEM_AMO_TYPES_(X, A) SHMEM_AMO_BASIC_(X, A) SHMEM_AMO_FIXED_(X, A)
#define SHMEM_AMO_FLOATS_(X, A) X(float, float, A) X(double, double, A)
#define SHMEM_AMO_WIDE_TYPES_(X, A) SHMEM_AMO_TYPES_(X, A) SHMEM_AMO_FLOATS_(X, A)
#define SHMEM_AMO_WIDE_BASIC_(X, A) SHMEM_AMO_BASIC_(X, A) SHMEM_AMO_FLOATS_(X, A)
#define SHMEM_BITWISE_TYPES_(X, A)    \
  X(unsigned int, uint, A)            \
  X(unsigned long, ulong, A)          \
  X(unsigned long long, ulonglong, A) \
  X(int32_t, int32, A) X(int64_t, int64, A) X(uint32_t, uint32, A) X(uint64_t, uint64, A)
#define SHMEM_BITWISE_BASIC_(X, A) \
  X(unsigned int, uint, A)         \
  X(unsigned long, ulong, A) X(unsigned long long, ulonglong, A) X(int, int32, A) X(long, int64, A)

#define SHMEM_WAIT_BASIC_(X, A) X(short, short, A) X(unsigned short, ushort, A) SHMEM_AMO_BASIC_(X, A)
#define SHMEM_WAIT_TYPES_(X, A) X(short, short, A) X(unsigned short, ushort, A) SHMEM_AMO_TYPES_(X, A)

#define SHMEM_REDUCE_BITWISE_BASIC_(X, A) \
  X(unsigned char, uchar, A)              \
  X(unsigned short, ushort, A)            \
  X(unsigned int, uint, A) X(unsigned long, ulong, A) X(unsigned long long, ulonglong, A)
#define SHMEM_REDUCE_BITWISE_TYPES_(X, A) SHMEM_REDUCE_BITWISE_BASIC_(X, A) SHMEM_FIXED_INTS_(X, A)
#define SHMEM_REDUCE_BITWISE_SELECT_(X, A) \
  SHMEM_REDUCE_BITWISE_BASIC_(X, A)        \
  X(signed char, int8, A) X(short, int16, A) X(int, int32, A) X(long, int64, A)
#define SHMEM_REDUCE_MINMAX_TYPES_(X, A) SHMEM_RMA_TYPES_(X, A)
#define SHMEM_REDUCE_COMPLEX_(X, A) X(SHMEM_COMPLEXF_, complexf, A) X(SHMEM_COMPLEXD_, complexd, A)
#define SHMEM_REDUCE_ARITH_TYPES_(X, A) SHMEM_RMA_TYPES_(X, A) SHMEM_REDUCE_COMPLEX_(X, A)

/* Of the old reductions over active sets. */
#define SHMEM_TO_ALL_BITWISE_(X, A) \
  X(short, short, A) X(int, int, A) X(long, long, A) X(long long, longlong, A)
#define SHMEM_TO_ALL_MINMAX_(X, A) \
  SHMEM_TO_ALL_BITWISE_(X, A) X(float, float, A) X(double, double, A) X(long double, longdouble, A)
#define SHMEM_TO_ALL_ARITH_(X, A) SHMEM_TO_ALL_MINMAX_(X, A) SHMEM_REDUCE_COMPLEX_(X, A)

/* Widths in bits of untyped transfers. */
#define SHMEM_WIDTHS_(X, A) X(8, A) X(16, A) X(32, A) X(64, A) X(128, A)
/* clang-format on */
