/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Types and constants of DMAPP. */

/* How a call ended. dmapp_explain_error gives a sentence for each. */
typedef enum dmapp_return {
  DMAPP_RC_SUCCESS = 0,
  DMAPP_RC_INVALID_PARAM,
  DMAPP_RC_ALIGNMENT_ERROR,
  DMAPP_RC_TRANSACTION_ERROR,
  DMAPP_RC_RESOURCE_ERROR,
  DMAPP_RC_PERMISSION_ERROR,
  DMAPP_RC_NO_SPACE,
  DMAPP_RC_NOT_DONE,
  DMAPP_RC_NOT_SUPPORTED,
  DMAPP_RC_NOT_FOUND,
  DMAPP_RC_BUSY,
  DMAPP_RC_NOT_USED
} dmapp_return_t;

/* Size of an element: 1, 4, 8, 16 bytes. Puts and gets take any alignment; AMOs ask for that of their word.
 */
typedef enum dmapp_type { DMAPP_BYTE = 0, DMAPP_DW, DMAPP_QW, DMAPP_DQW } dmapp_type_t;

typedef int dmapp_pe_t;

/* A segment of memory that other PEs can reach: `len` bytes at `addr`. The rest is the library's. May be
 * copied, and sent to other PEs as raw bytes. */
typedef struct dmapp_seg_desc {
  void* addr;
  size_t len;
  uint64_t opaque[6];
} dmapp_seg_desc_t;

typedef struct dmapp_jobinfo {
  dmapp_pe_t pe; /* this PE, 0 .. npes - 1 */
  int npes;
  dmapp_seg_desc_t data_seg;
  dmapp_seg_desc_t sheap_seg;
  uint64_t reserved[8]; /* 0 */
} dmapp_jobinfo_t;

/* How packets are routed. Under a machine's clock the route decides their time. IN_ORDER: requests of one PE
 * to the same target take effect in the order of their calls. */
typedef enum dmapp_routing_type {
  DMAPP_ROUTING_IN_ORDER = 0,
  DMAPP_ROUTING_DETERMINISTIC,
  DMAPP_ROUTING_ADAPTIVE,
  DMAPP_ROUTING_DETERMINISTIC_1,
  DMAPP_ROUTING_ADAPTIVE_1,
  DMAPP_ROUTING_ADAPTIVE_2,
  DMAPP_ROUTING_ADAPTIVE_3
} dmapp_routing_type_t;

/* Ordering on the target's bus. Here a completed operation is visible in each of them. */
typedef enum dmapp_pi_reg_type {
  DMAPP_PI_ORDERING_STRICT = 0,
  DMAPP_PI_ORDERING_DEFAULT,
  DMAPP_PI_ORDERING_RELAXED
} dmapp_pi_reg_type_t;

#define DMAPP_OFFLOAD_THRESHOLD 4096
#define DMAPP_MIN_OUTSTANDING_NB 32
#define DMAPP_DEF_OUTSTANDING_NB 1024
#define DMAPP_MAX_OUTSTANDING_NB 32768
#define DMAPP_MAX_THREADS_UNLIMITED UINT32_MAX

#define DMAPP_QUEUE_DEFAULT_DEPTH 64
#define DMAPP_QUEUE_DEFAULT_NELEMS 32
#define DMAPP_QUEUE_MAX_NELEMS 1024
#define DMAPP_QUEUE_ASYNC_PROGRESS 1

/* Attributes of a PE's requests. A value outside its range is brought into it, not refused. */
typedef struct dmapp_rma_attrs {
  uint32_t max_outstanding_nb;   /* DMAPP_MIN_ .. DMAPP_MAX_OUTSTANDING_NB; at init only */
  uint32_t offload_threshold;    /* bytes from which a transfer goes to the block transfer engine */
  uint32_t put_relaxed_ordering; /* dmapp_routing_type_t, of puts and AMOs */
  uint32_t get_relaxed_ordering; /* dmapp_routing_type_t */
  uint32_t max_concurrency;      /* threads that call; at init only */
} dmapp_rma_attrs_t;

typedef struct dmapp_rma_attrs_ext {
  uint32_t max_outstanding_nb;
  uint32_t offload_threshold;
  uint32_t put_relaxed_ordering;
  uint32_t get_relaxed_ordering;
  uint32_t max_concurrency;
  uint32_t PI_ordering;  /* dmapp_pi_reg_type_t; at init only */
  uint32_t queue_depth;  /* messages that a queue of this PE holds; 0: the default; at init only */
  uint32_t queue_nelems; /* QWs of a slot, one of them the library's; 0: the default; at init only */
  uint64_t queue_flags;  /* DMAPP_QUEUE_ASYNC_PROGRESS; at init only */
  uint64_t reserved[8];
} dmapp_rma_attrs_ext_t;

/* Names one non-blocking operation until it was found complete. */
typedef uint64_t dmapp_syncid_handle_t;

/* A lock. Lies in memory that other PEs reach; all zero is unlocked. */
typedef struct dmapp_lock_desc {
  uint64_t opaque;
} dmapp_lock_desc_t;
/* Names a lock that the caller holds. */
typedef uint64_t dmapp_lock_handle_t;

typedef uint64_t dmapp_queue_handle_t;

/* Use of the symmetric heap. */
typedef struct dmapp_sheap_stats {
  uint64_t size;         /* bytes of the heap */
  uint64_t in_use;       /* bytes that are allocated now */
  uint64_t high_water;   /* the most that ever were */
  uint64_t blocks;       /* allocations that live now */
  uint64_t largest_free; /* the longest block that could be had now */
  uint64_t reserved[3];
} dmapp_sheap_stats_t;
