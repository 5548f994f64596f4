/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* What travels between application and library: descriptors, handles that are copied, attributes. Layouts
 * are the machines' own on x86-64 (tests/lib/gni asserts every offset), because clients ship some of these
 * between processes as raw bytes. */

#include "gni_base.h"
#include "gni_ce_cmd.h"
#include "gni_enums.h"
#include "gni_fma_cmd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A registration. May be copied to any process as 16 bytes; {0, 0} is "none". */
typedef struct gni_mem_handle {
  uint64_t qword1;
  uint64_t qword2;
} gni_mem_handle_t;

/* A completion event: read it through the GNI_CQ_ macros only. Never 0 when it came from a queue. */
typedef uint64_t gni_cq_entry_t;

typedef uint32_t gni_cq_mode_t;

/*
 * A request. The first five members belong to the library while the request is posted, the rest may be
 * read by it until then; GNI_GetCompleted gives back the very pointer that was posted.
 */
typedef struct gni_post_descriptor {
  void* next_descr;
  void* prev_descr;
  uint64_t post_id;          /* the client's own */
  uint64_t status;           /* gni_return_t of the finished request */
  uint16_t cq_mode_complete; /* GNI_CQMODE_ bits of the event that has come */
  gni_post_type_t type;
  uint16_t cq_mode;                /* GNI_CQMODE_ */
  uint16_t dlvr_mode;              /* GNI_DLVMODE_ */
  uint64_t local_addr;             /* virtual address, or offset into a segmented registration */
  gni_mem_handle_t local_mem_hndl; /* not needed for FMA puts and AMOs that do not fetch */
  uint64_t remote_addr;
  gni_mem_handle_t remote_mem_hndl;
  uint64_t length;             /* bytes */
  uint16_t rdma_mode;          /* GNI_RDMAMODE_ */
  gni_cq_handle_t src_cq_hndl; /* RDMA: instead of the endpoint's queue; NULL for that one */
  uint64_t sync_flag_value;    /* FMA_PUT_W_SYNCFLAG: what to write behind the data; GET_W_FLAG and */
                               /* AMO_W_FLAG: its low 4 bytes go behind what comes to local_addr */
  uint64_t sync_flag_addr;     /* FMA_PUT_W_SYNCFLAG: where in the same remote registration */
  gni_fma_cmd_type_t amo_cmd;
  uint64_t first_operand;
  uint64_t second_operand;
  uint64_t cqwrite_value; /* CQWRITE: 48 bits for the event */
  gni_ce_cmd_type_t ce_cmd;
  uint32_t ce_mode;   /* GNI_CEMODE_ */
  uint64_t ce_red_id; /* names the reduction */
} gni_post_descriptor_t;

/* Nodes of a chain behind a first descriptor, one type per chain (GNI_CtPostFma, GNI_CtPostCqWrite). */
typedef struct gni_ct_put_post_descriptor {
  void* next_descr; /* NULL ends the chain */
  gni_ep_handle_t ep_hndl;
  uint64_t length;
  uint64_t remote_addr;
  gni_mem_handle_t remote_mem_hndl;
  uint64_t local_addr;
} gni_ct_put_post_descriptor_t;

typedef struct gni_ct_get_post_descriptor {
  void* next_descr;
  gni_ep_handle_t ep_hndl;
  uint64_t length;
  uint64_t remote_addr;
  gni_mem_handle_t remote_mem_hndl;
  uint64_t local_addr;
  gni_mem_handle_t local_mem_hndl;
} gni_ct_get_post_descriptor_t;

typedef struct gni_ct_amo_post_descriptor {
  void* next_descr;
  gni_ep_handle_t ep_hndl;
  uint64_t length;
  uint64_t remote_addr;
  gni_mem_handle_t remote_mem_hndl;
  uint64_t local_addr;
  gni_mem_handle_t local_mem_hndl;
  gni_fma_cmd_type_t amo_cmd;
  uint64_t first_operand;
  uint64_t second_operand;
} gni_ct_amo_post_descriptor_t;

typedef struct gni_ct_cqw_post_descriptor {
  void* next_descr;
  gni_ep_handle_t ep_hndl;
  gni_mem_handle_t remote_mem_hndl;
  uint64_t cqwrite_value;
} gni_ct_cqw_post_descriptor_t;

typedef struct gni_ct_uni_post_descriptor {
  union {
    gni_ct_put_post_descriptor_t put;
    gni_ct_get_post_descriptor_t get;
    gni_ct_amo_post_descriptor_t amo;
    gni_ct_cqw_post_descriptor_t cqw;
  } u;
} gni_ct_uni_post_descriptor_t;

/* One side of a short-message connection; each side describes itself to the other. */
typedef struct gni_smsg_attr {
  gni_smsg_type_t msg_type;
  void* msg_buffer;          /* start of the registered mailbox memory */
  uint32_t buff_size;        /* bytes of one mailbox */
  gni_mem_handle_t mem_hndl; /* of the mailbox memory */
  uint32_t mbox_offset;      /* of this connection's mailbox from msg_buffer */
  uint16_t mbox_maxcredit;   /* messages in flight */
  uint32_t msg_maxsize;      /* bytes of header and data together */
} gni_smsg_attr_t;

/* One piece of a segmented registration. */
typedef struct gni_mem_segment {
  uint64_t address;
  uint64_t length;
} gni_mem_segment_t;

/* Where a collective engine leaves its result; read it through the gni_ce_res_ functions. */
typedef struct gni_ce_result {
  uint64_t control;
  uint64_t result1;
  uint64_t result2;
} gni_ce_result_t;

#ifdef __cplusplus
}
#endif
