/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Communication domains and their attachment to NICs. */

#include "gni_base.h"
#include "gni_device_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a communication domain: this process's membership in a protection domain.
 *   inst_id  32 bits, unique per node among the members of the protection domain; peers bind to it
 *   ptag     protection tag, or GNI_FIND_ALLOC_PTAG to have it derived from the cookie
 *   cookie   names the protection domain; the launcher gives it (PMI_GNI_COOKIE)
 *   modes    GNI_CDM_MODE_ bits
 *   cdm_hndl out: the domain
 * Returns SUCCESS; INVALID_PARAM for cdm_hndl NULL or unknown modes; ERROR_NOMEM.
 * Does not block. Any thread. uGNI: CdmCreate
 */
gni_return_t GNI_CdmCreate(uint32_t inst_id, uint8_t ptag, uint32_t cookie, uint32_t modes,
                           gni_cdm_handle_t* cdm_hndl);

/*
 * Ends a domain with its attachments; every object made on them becomes invalid.
 * Returns SUCCESS; INVALID_PARAM for a handle that is not a live domain; NOT_DONE inside the callback of one
 * of its message queues or destination queues: nothing has ended.
 * May wait for accesses of peers that are under way. Serialise per NIC, for all NICs of the domain.
 * uGNI: CdmDestroy
 */
gni_return_t GNI_CdmDestroy(gni_cdm_handle_t cdm_hndl);

/*
 * Keeps a protection domain alive beyond its last CDM: gives a descriptor that holds it. (Here a domain lasts
 * as long as the job has a process, held or not.)
 *   nic_fd_ret  out: the descriptor, for GNI_CdmRelease
 * Returns SUCCESS; INVALID_PARAM; NO_MATCH for an unknown cookie; ERROR_RESOURCE.
 * Does not block. Any thread. uGNI: CdmHold
 */
gni_return_t GNI_CdmHold(uint8_t ptag, uint32_t cookie, int* nic_fd_ret);

/*
 * Lets go of what GNI_CdmHold held. Returns SUCCESS; INVALID_PARAM for any other descriptor.
 * Does not block. Any thread. uGNI: CdmRelease
 */
gni_return_t GNI_CdmRelease(int nic_fd);

/*
 * Address of a local NIC; needs no domain.
 *   device_id  0 up to the number of devices less one
 *   address    out: PE address of the NIC, what peers bind to
 *   cpu_id     out: the processor that the NIC hangs on
 * Returns SUCCESS; INVALID_PARAM for NULL outputs; NO_MATCH for a device that does not exist.
 * Does not block. Any thread. uGNI: CdmGetNicAddress
 */
gni_return_t GNI_CdmGetNicAddress(uint32_t device_id, uint32_t* address, uint32_t* cpu_id);

/*
 * Attaches a domain to a NIC.
 *   device_id   a device, or (uint32_t)-1 for the nearest one not yet used by this domain
 *   local_addr  out: PE address of the NIC
 *   nic_hndl    out: the attachment
 * Returns SUCCESS; INVALID_PARAM; NO_MATCH no such device; INVALID_STATE attached already (with -1: no
 * device is left); ERROR_RESOURCE a dedicated FMA descriptor was asked for and none is free;
 * PERMISSION_ERROR the tag or cookie is not one this process may use; ERROR_NOMEM; NOT_DONE interrupted.
 * Does not block. Any thread. uGNI: CdmAttach
 */
gni_return_t GNI_CdmAttach(gni_cdm_handle_t cdm_hndl, uint32_t device_id, uint32_t* local_addr,
                           gni_nic_handle_t* nic_hndl);

#ifdef __cplusplus
}
#endif
