/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* The message queue that all instances of a node share. */

#include "gni_base.h"
#include "gni_msgq_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Joins the node's queue, made by the first instance and complete with attrs->nloc_insts of them.
 *   rcv_cb, cb_data  called with each message by GNI_MsgqProgress
 *   snd_cq           for the events of sends
 *   attrs            equal in all instances
 * Returns SUCCESS; INVALID_PARAM, also when another instance of the node has other attributes (then in all
 * instances, and they may try again); INVALID_STATE joined already; ERROR_RESOURCE more instances than
 * attrs->nloc_insts; ERROR_NOMEM. Blocks until all instances have joined. Serialise per NIC. uGNI: MsgqInit
 */
gni_return_t GNI_MsgqInit(gni_nic_handle_t nic_hndl, gni_msgq_rcv_cb_func* rcv_cb, void* cb_data,
                          gni_cq_handle_t snd_cq, gni_msgq_attr_t* attrs, gni_msgq_handle_t* msgq_hndl);

/* Leaves the queue. Returns SUCCESS; NOT_DONE busy, not every instance has returned from GNI_MsgqInit, or
 * called by rcv_cb: call again; INVALID_PARAM. Does not block. Serialise per NIC. uGNI: MsgqRelease */
gni_return_t GNI_MsgqRelease(gni_msgq_handle_t msgq_hndl);

/* Lets sends finish. Returns SUCCESS when idle; NOT_DONE; INVALID_PARAM. Does not block. Serialise per NIC.
 * uGNI: MsgqIdle */
gni_return_t GNI_MsgqIdle(gni_msgq_handle_t msgq_hndl);

/*
 * Our end of a connection to the node of pe_addr, to be sent there.
 *   attrs_size  out: bytes of attrs that matter
 * Returns SUCCESS; INVALID_PARAM; INVALID_STATE connected already; ERROR_RESOURCE no connection is left.
 * Does not block. Serialise per NIC. uGNI: MsgqGetConnAttrs
 */
gni_return_t GNI_MsgqGetConnAttrs(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t* attrs,
                                  uint32_t* attrs_size);

/* Connects with what the node of pe_addr sent. Returns SUCCESS; INVALID_PARAM; NO_MATCH no attributes were
 * asked for that node; INVALID_STATE connected already. Does not block. Serialise per NIC.
 * uGNI: MsgqConnect */
gni_return_t GNI_MsgqConnect(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t* attrs);

/* Ends a connection. Returns SUCCESS; NO_MATCH; NOT_DONE busy: call again; INVALID_PARAM. Does not block.
 * Serialise per NIC. uGNI: MsgqConnRelease */
gni_return_t GNI_MsgqConnRelease(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr);

/*
 * Sends to the instance that ep_hndl is bound to.
 *   hdr, hdr_len, msg, msg_len  bytes, together up to max_msg_sz
 *   msg_id                      32 bits for the event in the send queue
 *   msg_tag                     handed to the receiver
 * Returns SUCCESS; NOT_DONE no credit; SIZE_ERROR too long; NO_MATCH not connected; INVALID_PARAM;
 * ERROR_RESOURCE. Does not block. Serialise per NIC. uGNI: MsgqSend
 */
gni_return_t GNI_MsgqSend(gni_msgq_handle_t msgq_hndl, gni_ep_handle_t ep_hndl, void* hdr, uint32_t hdr_len,
                          void* msg, uint32_t msg_len, uint32_t msg_id, uint8_t msg_tag);

/*
 * Hands arrived messages to the callback.
 *   timeout  milliseconds to wait for the first; 0 and (uint32_t)-1 not at all, and nothing else for a queue
 *            without GNI_MSGQ_MODE_BLOCKING
 * Returns SUCCESS all that had come was handed over, or nothing came; NOT_DONE the callback gave 0: there may
 * be more; INVALID_PARAM. Blocks up to the timeout; where processes share cores at least 100 ms.
 * Serialise per NIC. uGNI: MsgqProgress
 */
gni_return_t GNI_MsgqProgress(gni_msgq_handle_t msgq_hndl, uint32_t timeout);

/* Bytes of memory that a queue with these attributes takes. Returns SUCCESS; INVALID_PARAM. Does not block.
 * Any thread. uGNI: MsgqSize */
gni_return_t GNI_MsgqSize(gni_msgq_attr_t* attrs, uint32_t* size);

#ifdef __cplusplus
}
#endif
