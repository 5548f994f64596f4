/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* What the shared message queue and the dqueue take and give. */

#include "gni_limits.h"
#include "gni_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Equal in all instances of one node. */
typedef struct gni_msgq_attr {
  uint32_t max_msg_sz; /* bytes, up to GNI_MSGQ_MSG_SZ_MAX */
  uint32_t smsg_q_sz;  /* messages in flight per connection */
  uint32_t rcv_pool_sz;
  uint32_t num_msgq_eps; /* connections */
  uint32_t nloc_insts;   /* instances on this node */
  uint8_t modes;         /* GNI_MSGQ_MODE_ */
  uint32_t rcv_cq_sz;
} gni_msgq_attr_t;

typedef struct gni_msgq_rem_inst {
  uint32_t id;
  gni_mem_handle_t mdh;
  uint64_t mdh_off;
} gni_msgq_rem_inst_t;

/* A node's description of itself for its peer. */
typedef struct gni_msgq_ep_attr {
  uint32_t pe_addr;
  uint32_t max_msg_sz;
  uint32_t smsg_q_sz;
  uint32_t num_insts;
  gni_msgq_rem_inst_t insts[GNI_MSGQ_NODE_INSTS_MAX];
} gni_msgq_ep_attr_t;

/* Called with each message; the result is 0 to stop GNI_MsgqProgress, anything else to go on. */
typedef int gni_msgq_rcv_cb_func(uint32_t snd_id, uint32_t snd_pe, void* msg, uint8_t msg_tag, void* cb_data);

typedef int (*gni_dqueue_cb_func)(void* context, void* data, uint32_t length, uint32_t pe, uint32_t inst_id);

typedef struct gni_dqueue_in_attr {
  uint32_t entries;  /* 0 for GNI_DQUEUE_DEFAULT_ENTRIES */
  uint32_t msg_size; /* bytes; 0 for GNI_DQUEUE_DEFAULT_MSG_SIZE */
  uint64_t flags;
  uint32_t npeers;
  gni_dqueue_cb_func cb;
  void* context; /* handed to cb */
} gni_dqueue_in_attr_t;

typedef struct gni_dqueue_out_attr {
  uint32_t pe;
  uint32_t id;
  gni_mem_handle_t mdh;
  uint32_t entries;
  uint32_t msg_size;
} gni_dqueue_out_attr_t;

#ifdef __cplusplus
}
#endif
