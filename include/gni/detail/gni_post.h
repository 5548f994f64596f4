/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Requests: put, get, AMO, CQ write, and taking them back when they are done. */

#include "gni_base.h"
#include "gni_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Posts a bulk put or get (RDMA_PUT, RDMA_GET), carried out by the BTE. The descriptor and the memory belong
 * to the library until the event.
 *   ep_hndl     bound endpoint
 *   post_descr  local handle needed; a get needs remote_addr and length in multiples of 4
 * Returns SUCCESS posted; INVALID_PARAM bad endpoint, type, local handle or range, or LOCAL with GLOBAL
 * without GNI_CDM_MODE_DUAL_EVENTS; ALIGNMENT_ERROR; PERMISSION_ERROR a get into read-only memory;
 * SIZE_ERROR; ERROR_RESOURCE, ERROR_NOMEM no request is free: take events, then retry. A bad remote handle or
 * range is reported by the event. Does not block. Serialise per NIC. uGNI: PostRdma
 */
gni_return_t GNI_PostRdma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr);

/*
 * Posts a small transfer (FMA_PUT, FMA_PUT_W_SYNCFLAG, FMA_GET, FMA_GET_W_FLAG), an AMO or a CE operation,
 * carried out by the processor through an FMA window. The source of a put may be used again on return.
 * Alignment: gets need remote_addr and length in multiples of 4; AMOs the operand's size; puts none. A put of
 * length 0 is legal and raises its events; a get or AMO of length 0 is not.
 * Outcomes of GNI_PostRdma; ILLEGAL_OP also, for an AMO that the device lacks.
 * Does not block. Serialise per NIC. uGNI: PostFma
 */
gni_return_t GNI_PostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr);

/*
 * Posts a chain of FMA puts, gets or AMOs of one type with one completion, on the queue of ep_hndl.
 *   post_descr  the first; next_descr leads to gni_ct_ nodes of the type
 * Outcomes of GNI_PostFma; SIZE_ERROR more than 1 GiB in all (1 MiB with GNI_CDM_MODE_FMA_SHARED).
 * Does not block. Serialise per NIC. uGNI: CtPostFma
 */
gni_return_t GNI_CtPostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr);

/*
 * Writes an event into the queue of a remote registration (type CQWRITE).
 *   post_descr  remote_mem_hndl names the registration; the low 48 bits of cqwrite_value are its data
 * Returns as GNI_PostFma. Does not block. Serialise per NIC. uGNI: PostCqWrite
 */
gni_return_t GNI_PostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr);

/* A chain of them, of gni_ct_cqw_post_descriptor_t nodes. uGNI: CtPostCqWrite */
gni_return_t GNI_CtPostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr);

/*
 * Takes back the descriptor that an event of type POST speaks of; once per event.
 *   cq_hndl     the queue that the event came from
 *   post_descr  out: the very pointer that was posted; NULL with DESCRIPTOR_ERROR
 * Returns SUCCESS; TRANSACTION_ERROR the request failed, the descriptor is given; DESCRIPTOR_ERROR nothing
 * belongs to the event; INVALID_PARAM.
 * Does not block. Serialise per NIC. uGNI: GetCompleted
 */
gni_return_t GNI_GetCompleted(gni_cq_handle_t cq_hndl, gni_cq_entry_t event_data,
                              gni_post_descriptor_t** post_descr);

#ifdef __cplusplus
}
#endif
