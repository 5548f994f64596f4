/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Short messages through mailboxes that the receiver owns, with credits. */

#include "gni_base.h"
#include "gni_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Bytes of mailbox memory that a connection with these attributes needs.
 *   smsg_attr  msg_type, mbox_maxcredit and msg_maxsize are read
 * Returns SUCCESS; INVALID_PARAM. Does not block. Any thread. uGNI: SmsgBufferSizeNeeded
 */
gni_return_t GNI_SmsgBufferSizeNeeded(gni_smsg_attr_t* smsg_attr, unsigned int* size);

/*
 * Opens the connection of a bound endpoint. The two sides may do so at different times, and the first may
 * send at once, as long as the other's mailbox memory is zero.
 *   local_smsg_attr, remote_smsg_attr  our mailbox and the peer's; types, credits and sizes must agree
 * Returns SUCCESS; INVALID_PARAM; INVALID_STATE unbound or open already; ERROR_NOMEM. Does not block.
 * Serialise per NIC. uGNI: SmsgInit
 */
gni_return_t GNI_SmsgInit(gni_ep_handle_t ep_hndl, gni_smsg_attr_t* local_smsg_attr,
                          gni_smsg_attr_t* remote_smsg_attr);

/* Routing of messages. dlvr_mode: GNI_DLVMODE_. Returns SUCCESS; INVALID_PARAM. Does not block.
 * Serialise per NIC. uGNI: SmsgSetDeliveryMode */
gni_return_t GNI_SmsgSetDeliveryMode(gni_nic_handle_t nic_handle, uint16_t dlvr_mode);

/*
 * Sends header and data as one message; both are copied before return.
 *   header, header_length, data, data_length  data up to msg_maxsize, with the header 32 bytes more; NULL
 * with length 0 msg_id                                    32 bits for the event in the endpoint's source
 * queue Returns SUCCESS; NOT_DONE no credit: call again; INVALID_PARAM bad endpoint or no connection;
 * ERROR_RESOURCE too long; INVALID_STATE the connection is broken.
 * Does not block. Serialise per NIC. uGNI: SmsgSend
 */
gni_return_t GNI_SmsgSend(gni_ep_handle_t ep_hndl, void* header, uint32_t header_length, void* data,
                          uint32_t data_length, uint32_t msg_id);

/* The same with a tag, 0..254, that the receiver can ask for. uGNI: SmsgSendWTag */
gni_return_t GNI_SmsgSendWTag(gni_ep_handle_t ep_hndl, void* header, uint32_t header_length, void* data,
                              uint32_t data_length, uint32_t msg_id, uint8_t tag);

/*
 * The oldest message that has not been released, in the order sent.
 *   header  out: its first byte in the mailbox; the data follows the header
 * Returns SUCCESS; NOT_DONE none, also when the peer is gone; INVALID_PARAM; INVALID_STATE the mailbox holds
 * what no peer writes.
 * Does not block. Serialise per NIC. uGNI: SmsgGetNext
 */
gni_return_t GNI_SmsgGetNext(gni_ep_handle_t ep_hndl, void** header);

/*
 * The same if its tag fits.
 *   tag  in: the tag wanted, or GNI_SMSG_ANY_TAG; out: the message's
 * Returns also NO_MATCH for another tag. uGNI: SmsgGetNextWTag
 */
gni_return_t GNI_SmsgGetNextWTag(gni_ep_handle_t ep_hndl, void** header, uint8_t* tag);

/* Frees the current message and returns its credit. Returns SUCCESS; NOT_DONE there is none; INVALID_PARAM.
 * Does not block. Serialise per NIC. uGNI: SmsgRelease */
gni_return_t GNI_SmsgRelease(gni_ep_handle_t ep_hndl);

/* Retransmissions before a connection is given up. Returns SUCCESS; INVALID_PARAM. Does not block.
 * Serialise per NIC. uGNI: SmsgSetMaxRetrans */
gni_return_t GNI_SmsgSetMaxRetrans(gni_nic_handle_t nic_handle, uint16_t max_retrans);

#ifdef __cplusplus
}
#endif
