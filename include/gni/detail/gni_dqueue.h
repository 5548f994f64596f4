/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Queues of small fixed-size messages between many peers. */

#include "gni_base.h"
#include "gni_msgq_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a queue and its description for the peers.
 * Returns SUCCESS; INVALID_PARAM; ERROR_RESOURCE; ERROR_NOMEM. Does not block. Serialise per NIC.
 * uGNI: DqueueInit
 */
gni_return_t GNI_DqueueInit(gni_nic_handle_t nic_hndl, gni_dqueue_in_attr_t* in_attrs,
                            gni_dqueue_out_attr_t* out_attrs, gni_dqueue_handle_t* dqueue_hndl);

/* Frees a queue. Returns SUCCESS; INVALID_PARAM; NOT_DONE busy, or called by the callback. Does not block.
 * Serialise per NIC. uGNI: DqueueFini */
gni_return_t GNI_DqueueFini(gni_dqueue_handle_t dqueue_hndl);

/* Connects to peers by their descriptions, all or none. Returns SUCCESS; INVALID_PARAM; ERROR_RESOURCE more
 * than npeers; TRANSACTION_ERROR a peer is gone. Waits for the peers' NICs. Serialise per NIC.
 * uGNI: DqueueConnect */
gni_return_t GNI_DqueueConnect(gni_dqueue_handle_t dqueue_hndl, gni_dqueue_out_attr_t* attrs,
                               uint32_t nattrs);

/*
 * Puts a message into the queue of a connected peer.
 *   data, length       bytes, up to msg_size
 *   pe_addr, inst_id   the peer
 * Returns SUCCESS; NOT_DONE no room; NO_MATCH not connected; SIZE_ERROR; INVALID_PARAM. Does not block.
 * Serialise per NIC. uGNI: DqueuePut
 */
gni_return_t GNI_DqueuePut(gni_dqueue_handle_t dqueue_hndl, void* data, uint32_t length, uint32_t pe_addr,
                           uint32_t inst_id);

/* Hands arrived messages to the callback, until it returns 0 or there are none. Returns SUCCESS; NOT_DONE
 * none came; INVALID_STATE from the callback itself; INVALID_PARAM. Does not block. Serialise per NIC.
 * uGNI: DqueueProgress */
gni_return_t GNI_DqueueProgress(gni_dqueue_handle_t dqueue_hndl);

#ifdef __cplusplus
}
#endif
