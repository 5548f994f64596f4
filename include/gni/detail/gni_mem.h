/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Registration of memory. */

#include "gni_base.h"
#include "gni_enums.h"
#include "gni_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Registers [address, address + length) for requests of this process and of peers. Any alignment; memory may
 * be registered many times and overlapping.
 *   length       bytes, 1 and up
 *   dst_cq_hndl  queue for REMOTE events of accesses through this handle, or NULL
 *   flags        GNI_MEM_ bits
 *   vmdh_index   (uint32_t)-1, or the entry to use with GNI_MEM_USE_VMDH
 *   mem_hndl     out; untouched on failure
 * Returns SUCCESS; INVALID_PARAM bad NIC, queue, flags, length 0 or an address that wraps; ERROR_RESOURCE no
 * registration is free: deregister something; PERMISSION_ERROR the pages do not allow it; ERROR_NOMEM.
 * Does not block. Serialise per NIC. uGNI: MemRegister
 */
gni_return_t GNI_MemRegister(gni_nic_handle_t nic_hndl, uint64_t address, uint64_t length,
                             gni_cq_handle_t dst_cq_hndl, uint32_t flags, uint32_t vmdh_index,
                             gni_mem_handle_t* mem_hndl);

/*
 * Registers several pieces as one range that starts at offset 0: posts give offsets into the pieces one after
 * another, on the local and the remote side alike. The source of an FMA put stays a virtual address.
 *   mem_segments, segments_cnt  the pieces, 1 and up, none of length 0
 * Other parameters and outcomes of GNI_MemRegister. uGNI: MemRegisterSegments
 */
gni_return_t GNI_MemRegisterSegments(gni_nic_handle_t nic_hndl, gni_mem_segment_t* mem_segments,
                                     uint32_t segments_cnt, gni_cq_handle_t dst_cq_hndl, uint32_t flags,
                                     uint32_t vmdh_index, gni_mem_handle_t* mem_hndl);

/*
 * Sets aside entries for registrations with GNI_MEM_USE_VMDH; once per NIC handle.
 * Returns SUCCESS; INVALID_PARAM; INVALID_STATE done already; ERROR_RESOURCE.
 * Does not block. Serialise per NIC. uGNI: SetMddResources
 */
gni_return_t GNI_SetMddResources(gni_nic_handle_t nic_hndl, uint32_t num_entries);

/*
 * Ends a registration. Accesses of peers that come later fail with an event of their own.
 * Returns SUCCESS; INVALID_PARAM for a handle that is not a live registration of this NIC.
 * May wait for accesses that are under way. Serialise per NIC. uGNI: MemDeregister
 */
gni_return_t GNI_MemDeregister(gni_nic_handle_t nic_hndl, gni_mem_handle_t* mem_hndl);

/*
 * Asks a handle, one's own or a peer's, for an attribute.
 *   yesno  out: 1 or 0
 * Returns SUCCESS; INVALID_PARAM for NULL or an unknown attribute. Does not block. Any thread.
 * uGNI: MemHndlQueryAttr
 */
gni_return_t GNI_MemHndlQueryAttr(gni_mem_handle_t* mem_hndl, gni_mem_handle_attr_t attr, int* yesno);

/*
 * Makes the handle that a peer with another VMDH index would have.
 * Returns SUCCESS; INVALID_PARAM for NULL or a handle without that attribute. Does not block. Any thread.
 * uGNI: RebuildMemHndl
 */
gni_return_t GNI_RebuildMemHndl(gni_mem_handle_t* src_mem_hndl, uint32_t vmdh_index,
                                gni_mem_handle_t* dst_mem_hndl);

/*
 * Walks the registrations that a held domain keeps.
 *   fd               from GNI_CdmHold, or -1 for those of nic_hndl
 *   mem_hndl         in: {0, 0} to start, else the last one; out: the next
 *   address, length  out: its range
 * Returns SUCCESS; NO_MATCH at the end; INVALID_PARAM. Does not block. Serialise per NIC. uGNI: MemQueryHndls
 */
gni_return_t GNI_MemQueryHndls(gni_nic_handle_t nic_hndl, int fd, gni_mem_handle_t* mem_hndl,
                               uint64_t* address, uint64_t* length);

#ifdef __cplusplus
}
#endif
