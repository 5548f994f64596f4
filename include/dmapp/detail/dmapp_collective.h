/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "dmapp_types.h"

/*
 * Collectives of a set of PEs (pset): create on every member with the same identifier and members, wait for
 * each other by other means (PMI_Barrier), export; then one operation at a time: start it, then wait or test.
 */

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dmapp_c_type {
  DMAPP_C_INT32 = 0x100,
  DMAPP_C_INT64,
  DMAPP_C_UINT32,
  DMAPP_C_UINT64,
  DMAPP_C_FLOAT,
  DMAPP_C_DOUBLE
} dmapp_c_type_t;

/* Bitwise operations take integers alone. */
typedef enum dmapp_c_op {
  DMAPP_C_SUM = 0x200,
  DMAPP_C_PROD,
  DMAPP_C_MIN,
  DMAPP_C_MAX,
  DMAPP_C_AND,
  DMAPP_C_OR,
  DMAPP_C_XOR
} dmapp_c_op_t;

typedef enum dmapp_c_pset_delimiter_type {
  DMAPP_C_PSET_DELIMITER_STRIDED = 0x300,
  DMAPP_C_PSET_DELIMITER_LIST
} dmapp_c_pset_delimiter_type_t;

/* PEs base_pe, base_pe + stride_pe, ... */
typedef struct dmapp_c_pset_delimiter_strided {
  int n_pes;
  dmapp_pe_t base_pe;
  int stride_pe;
} dmapp_c_pset_delimiter_strided_t;

typedef struct dmapp_c_pset_delimiter_list {
  int n_pes;
  dmapp_pe_t* pes; /* read by dmapp_c_pset_create */
} dmapp_c_pset_delimiter_list_t;

#define DMAPP_C_PSET_MODE_CONCAT 1

typedef struct dmapp_c_pset_desc {
  void* concat_buf; /* with DMAPP_C_PSET_MODE_CONCAT: symmetric, at least 8 bytes a member */
  uint64_t concat_buf_size;
  dmapp_c_pset_delimiter_type_t type;
  union {
    dmapp_c_pset_delimiter_strided_t stride_type;
    dmapp_c_pset_delimiter_list_t list_type;
  } u;
} dmapp_c_pset_desc_t;

typedef struct dmapp_c_pset_attrs {
  uint64_t reserved[4];
} dmapp_c_pset_attrs_t;

typedef uint64_t dmapp_c_pset_handle_t;

/* attrs may be null. modes: 0 or DMAPP_C_PSET_MODE_CONCAT. INVALID_PARAM: no members, one that is no PE, one
 * twice, or the caller is none; with DMAPP_C_PSET_MODE_CONCAT a concat_buf that is null or has less than 8
 * bytes a member. BUSY: a set of that identifier exists. RESOURCE_ERROR: 64 sets exist. */
dmapp_return_t dmapp_c_pset_create(dmapp_c_pset_desc_t* pdesc, uint64_t identifier, uint64_t modes,
                                   dmapp_c_pset_attrs_t* attrs, dmapp_c_pset_handle_t* hndl);
/* From now on operations may be started. REQUIRES: every member has created it. NOT_FOUND: one has not. */
dmapp_return_t dmapp_c_pset_export(dmapp_c_pset_handle_t hndl);
/* BUSY: an operation is under way. */
dmapp_return_t dmapp_c_pset_destroy(dmapp_c_pset_handle_t hndl);
/* SUCCESS: the operation that was started is complete, or none was; NOT_DONE; TRANSACTION_ERROR: a member has
 * died. */
dmapp_return_t dmapp_c_pset_test(dmapp_c_pset_handle_t hndl);
dmapp_return_t dmapp_c_pset_wait(dmapp_c_pset_handle_t hndl);
/* This PE gives up the operation that is under way; the set can only be destroyed then. NOT_FOUND: none is.
 */
dmapp_return_t dmapp_c_pset_cancel_op(dmapp_c_pset_handle_t hndl);
/* Starts a barrier of the members. BUSY: an operation is under way. NOT_DONE: not exported. */
dmapp_return_t dmapp_c_barrier_join(dmapp_c_pset_handle_t hndl);
/* Starts a reduction of nelems elements of every member; every member gets the result in `out`, which may be
 * `in`, when wait or test says SUCCESS. The result is the same in all members, and in every run. NO_SPACE:
 * more elements than dmapp_c_greduce_nelems_max says. NOT_SUPPORTED: a bitwise operation of floating-point
 * numbers. */
dmapp_return_t dmapp_c_greduce_start(dmapp_c_pset_handle_t hndl, void* in, void* out, uint32_t nelems,
                                     dmapp_c_type_t type, dmapp_c_op_t op);
dmapp_return_t dmapp_c_greduce_nelems_max(dmapp_c_type_t type, uint32_t* nelems_max);

#ifdef __cplusplus
}
#endif
