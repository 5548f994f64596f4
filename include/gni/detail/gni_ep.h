/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Endpoints: where requests go, and which peers their events name. */

#include "gni_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes an unbound endpoint.
 *   src_cq_hndl  queue for the events of its posts; NULL if no post will ask for one
 *   ep_hndl      out
 * Returns SUCCESS; INVALID_PARAM for a bad NIC, a queue of another NIC or ep_hndl NULL; ERROR_NOMEM.
 * Does not block. Serialise per NIC. uGNI: EpCreate
 */
gni_return_t GNI_EpCreate(gni_nic_handle_t nic_hndl, gni_cq_handle_t src_cq_hndl, gni_ep_handle_t* ep_hndl);

/*
 * Sets the values that events carry. Until then the initiator's events carry the bound remote_id and remote
 * events carry the instance of the sender's domain.
 *   local_event   for LOCAL and GLOBAL events in the source queue; 24 bits survive on Aries
 *   remote_event  for REMOTE events in the target's queue; 32 bits
 * Returns SUCCESS; INVALID_PARAM for a bad endpoint.
 * Does not block. Serialise per NIC. uGNI: EpSetEventData
 */
gni_return_t GNI_EpSetEventData(gni_ep_handle_t ep_hndl, uint32_t local_event, uint32_t remote_event);

/*
 * Binds an endpoint to a peer. The peer need not exist yet.
 *   remote_addr  the peer's PE address
 *   remote_id    the instance of the peer's domain
 * Returns SUCCESS; INVALID_PARAM for a bad endpoint, or one that is bound; ERROR_NOMEM.
 * Does not block. Serialise per NIC. uGNI: EpBind
 */
gni_return_t GNI_EpBind(gni_ep_handle_t ep_hndl, uint32_t remote_addr, uint32_t remote_id);

/*
 * Unbinds; the endpoint may be bound again. Ends its short-message connection.
 * Returns SUCCESS; INVALID_PARAM; NOT_DONE while requests or a datagram are outstanding: call again.
 * Does not block. Serialise per NIC. uGNI: EpUnbind
 */
gni_return_t GNI_EpUnbind(gni_ep_handle_t ep_hndl);

/*
 * Lets outstanding requests of the endpoint finish and starts no retransmission.
 * Returns SUCCESS when none is left; NOT_DONE; INVALID_PARAM.
 * Does not block. Serialise per NIC. uGNI: EpIdle
 */
gni_return_t GNI_EpIdle(gni_ep_handle_t ep_hndl);

/*
 * Frees an endpoint; outstanding requests still complete. Returns SUCCESS; INVALID_PARAM.
 * Does not block. Serialise per NIC. uGNI: EpDestroy
 */
gni_return_t GNI_EpDestroy(gni_ep_handle_t ep_hndl);

#ifdef __cplusplus
}
#endif
