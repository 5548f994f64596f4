/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* What a launcher does for a job before its processes attach. All are privileged: PERMISSION_ERROR otherwise.
 * None blocks unless it says so; any thread. */

#include "gni_base.h"
#include "gni_device_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Creates or changes a job's protection domain on a device; doing the same again is harmless.
 *   job_id          the launcher's own
 *   ptag, cookie    of the domain
 *   limits          or NULL for none
 * Returns SUCCESS; INVALID_PARAM; NO_MATCH no such device; INVALID_STATE the tag belongs to another job or
 * cookie; ILLEGAL_OP the node translation table cannot change its size; PERMISSION_ERROR.
 * uGNI: ConfigureJob
 */
gni_return_t GNI_ConfigureJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                              gni_job_limits_t* limits);

/*
 * The same, held by a descriptor.
 *   nic_fd  out: for GNI_CdmRelease; the domain lasts as long as the job has a process, closed or not
 * Returns also ERROR_RESOURCE no descriptor is left. uGNI: ConfigureJobFd
 */
gni_return_t GNI_ConfigureJobFd(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                                gni_job_limits_t* limits, int* nic_fd);

/*
 * Loads a node translation table.
 *   device_id  -1 for all devices
 *   ntt_base   in: where, or -1 for anywhere; out: where it is
 * Returns SUCCESS; INVALID_PARAM; NO_MATCH; ERROR_RESOURCE no room; PERMISSION_ERROR. uGNI: ConfigureNTT
 */
gni_return_t GNI_ConfigureNTT(int device_id, gni_ntt_descriptor_t* ntt_desc, uint32_t* ntt_base);

/* Both of the above at once. uGNI: ConfigureNTTandJob */
gni_return_t GNI_ConfigureNTTandJob(int device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                                    gni_job_limits_t* limits, gni_ntt_descriptor_t* ntt_desc,
                                    uint32_t* ntt_base);

/*
 * Stops a job's traffic, and lets it go on.
 *   timeout  milliseconds to wait for outstanding requests
 * Return SUCCESS; INVALID_PARAM; NO_MATCH; TIMEOUT; INVALID_STATE; PERMISSION_ERROR. GNI_SuspendJob blocks up
 * to the timeout. uGNI: SuspendJob, ResumeJob
 */
gni_return_t GNI_SuspendJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                            uint32_t timeout);
gni_return_t GNI_ResumeJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie);

#ifdef __cplusplus
}
#endif
