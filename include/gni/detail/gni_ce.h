/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* The collective engine: reductions and barriers in the NICs (Aries only). */

#include "gni_base.h"
#include "gni_enums.h"
#include "gni_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes an engine. Returns SUCCESS; INVALID_PARAM; ERROR_RESOURCE none is free; ILLEGAL_OP the device has
 * none. Does not block. Serialise per NIC. uGNI: CeCreate */
gni_return_t GNI_CeCreate(gni_nic_handle_t nic_hndl, gni_ce_handle_t* ce_hndl);

/* The number that peers use in GNI_EpSetCeAttr. Returns SUCCESS; INVALID_PARAM. Any thread. uGNI: CeGetId */
gni_return_t GNI_CeGetId(gni_ce_handle_t ce_hndl, uint32_t* ce_id);

/*
 * Makes a bound endpoint an edge of the tree.
 *   ce_id       engine at the other end
 *   child_id    which of its children we are, below GNI_CE_MAX_CHILDREN
 *   child_type  GNI_CE_CHILD_
 * Returns SUCCESS; INVALID_PARAM; INVALID_STATE unbound; ILLEGAL_OP. Does not block. Serialise per NIC.
 * uGNI: EpSetCeAttr
 */
gni_return_t GNI_EpSetCeAttr(gni_ep_handle_t ep_hndl, uint32_t ce_id, uint32_t child_id,
                             gni_ce_child_t child_type);

/*
 * Sets the engine up in its tree, of at most 64 engines from a leaf to the root: posts into a deeper one end
 * in CE_OPERATION_UNEXPECTED.
 *   child_eps, num_child_eps  endpoints to the children
 *   parent_ep                 endpoint to the parent; NULL at the root
 *   cq_hndl                   for the engine's events
 *   modes                     GNI_CE_MODE_ bits
 * Returns SUCCESS; INVALID_PARAM; INVALID_STATE; ILLEGAL_OP. Does not block. Serialise per NIC.
 * uGNI: CeConfigure
 */
gni_return_t GNI_CeConfigure(gni_ce_handle_t ce_hndl, gni_ep_handle_t* child_eps, uint32_t num_child_eps,
                             gni_ep_handle_t parent_ep, gni_cq_handle_t cq_hndl, uint32_t modes);

/*
 * Looks whether the results of CE posts have come.
 *   result, length  the results, and how many; 0 is one
 * Returns SUCCESS all have; NOT_DONE; TRANSACTION_ERROR all have, and one tells of a failure or of a
 * floating-point exception; INVALID_PARAM for NULL. Does not block. Any thread. uGNI: CeCheckResult
 */
gni_return_t GNI_CeCheckResult(gni_ce_result_t* result, uint32_t length);

/* Frees an engine. Returns SUCCESS; INVALID_PARAM. Does not block. Serialise per NIC. uGNI: CeDestroy */
gni_return_t GNI_CeDestroy(gni_ce_handle_t ce_hndl);

/* Parts of a result that has come: device status, whether it is 0, GNI_CE_FPE_ bits, the lower 53 bits of the
 * ce_red_id. Any thread. uGNI: CE_RES_ macros */
uint64_t gni_ce_res_get_status(gni_ce_result_t* result);
uint64_t gni_ce_res_status_ok(gni_ce_result_t* result);
uint64_t gni_ce_res_get_fpe(gni_ce_result_t* result);
uint64_t gni_ce_res_get_red_id(gni_ce_result_t* result);

#define GNI_CE_RES_GET_STATUS(result) gni_ce_res_get_status(result)
#define GNI_CE_RES_STATUS_OK(result) gni_ce_res_status_ok(result)
#define GNI_CE_RES_GET_FPE(result) gni_ce_res_get_fpe(result)
#define GNI_CE_RES_GET_RED_ID(result) gni_ce_res_get_red_id(result)

#ifdef __cplusplus
}
#endif
