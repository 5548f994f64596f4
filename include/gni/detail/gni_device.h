/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Questions about devices and versions, and a few settings. */

#include "gni_base.h"
#include "gni_device_structs.h"
#include "gni_enums.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of NICs of this node. Returns SUCCESS; INVALID_PARAM; ERROR_RESOURCE none. Does not block. Any
 * thread. uGNI: GetNumLocalDevices */
gni_return_t GNI_GetNumLocalDevices(int* num_devices);

/*
 * Their numbers.
 *   len, device_ids  room, in entries; the first len devices are given
 * Returns SUCCESS; INVALID_PARAM len below 1 or NULL; ERROR_RESOURCE none. Does not block. Any thread.
 * uGNI: GetLocalDeviceIds
 */
gni_return_t GNI_GetLocalDeviceIds(int len, int* device_ids);

/* Version of the library, as GNI_VERSION. Returns SUCCESS; INVALID_PARAM. Any thread. uGNI: GetVersion */
gni_return_t GNI_GetVersion(uint32_t* version);

/* Versions and build strings of library and driver. Returns SUCCESS; INVALID_PARAM. Any thread.
 * uGNI: GetVersionInformation */
gni_return_t GNI_GetVersionInformation(gni_version_info_t* version_info);

/* Kind of the NICs; needs no domain. Returns SUCCESS; INVALID_PARAM; ERROR_RESOURCE no NIC. Any thread.
 * uGNI: GetDeviceType */
gni_return_t GNI_GetDeviceType(gni_nic_device_t* dev_type);

/*
 * How much of a resource the device has. Returns SUCCESS; INVALID_PARAM a bad res_type or NULL; NO_MATCH no
 * such device; ERROR_RESOURCE the device does not have it. Does not block. Any thread. uGNI: GetDevResInfo
 */
gni_return_t GNI_GetDevResInfo(uint32_t device_id, gni_dev_res_t res_type, gni_dev_res_desc_t* res_desc);

/* How much of a resource the job of ptag uses and may use. Outcomes of GNI_GetDevResInfo.
 * uGNI: GetJobResInfo */
gni_return_t GNI_GetJobResInfo(uint32_t device_id, uint8_t ptag, gni_job_res_t res_type,
                               gni_job_res_desc_t* res_desc);

/* Sets a limit of a job; privileged. Returns also PERMISSION_ERROR. uGNI: SetJobResInfo */
gni_return_t GNI_SetJobResInfo(uint32_t device_id, uint8_t ptag, gni_job_res_t res_type, uint64_t res_value);

/* Granularity of the node translation table. Returns SUCCESS; INVALID_PARAM; NO_MATCH. Any thread.
 * uGNI: GetNttGran */
gni_return_t GNI_GetNttGran(uint32_t device_id, uint32_t* ntt_gran);

/* The protection tag of a cookie. Returns SUCCESS; INVALID_PARAM; NO_MATCH. Any thread. uGNI: GetPtag */
gni_return_t GNI_GetPtag(uint32_t device_id, uint32_t cookie, uint8_t* ptag);

/* A counter of an attachment, and setting it to 0. Return SUCCESS; INVALID_PARAM. Do not block. Any thread.
 * uGNI: GetNicStat, ResetNicStat */
gni_return_t GNI_GetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat, uint32_t* value);
gni_return_t GNI_ResetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat);

/* What library and driver can do, one bit each. Returns SUCCESS; INVALID_PARAM. Any thread.
 * uGNI: GetCapabilities */
gni_return_t GNI_GetCapabilities(gni_revision_info_t* revision_info);

/* Whether two such descriptions can work together. Returns SUCCESS; NO_MATCH they cannot. Any thread.
 * uGNI: ValidateCapabilities */
gni_return_t GNI_ValidateCapabilities(gni_revision_info_t first_revision_info,
                                      gni_revision_info_t second_revision_info);

/*
 * Balanced injection: limits how fast the NIC sends; privileged.
 *   bw, aot_bw  per cent GNI_BI_BW_MIN..GNI_BI_BW_MAX, or entries up to GNI_BI_ORB_MAX by mode
 *   modes       GNI_BI_FLAG_ bits
 * Returns SUCCESS; INVALID_PARAM; NO_MATCH; PERMISSION_ERROR; INVALID_STATE. Does not block. Any thread.
 * uGNI: SetBIConfig
 */
gni_return_t GNI_SetBIConfig(uint32_t device_id, uint16_t bw, uint16_t aot_bw, uint16_t modes);

/* The settings now. Returns SUCCESS; INVALID_PARAM; NO_MATCH. Any thread. uGNI: GetBIConfig */
gni_return_t GNI_GetBIConfig(uint32_t device_id, gni_bi_desc_t* desc);

/* Waits, up to timeout milliseconds, until new settings are in force. Returns SUCCESS; TIMEOUT;
 * INVALID_PARAM; NO_MATCH. Any thread. uGNI: BISyncWait */
gni_return_t GNI_BISyncWait(uint32_t device_id, uint32_t timeout);

/* Changes a register of the outstanding request buffer; privileged. The old value goes to *old_orb_mmr_value.
 * Returns SUCCESS; INVALID_PARAM; PERMISSION_ERROR. Any thread. uGNI: SetDeviceOrbMMR */
gni_return_t GNI_SetDeviceOrbMMR(gni_nic_handle_t nic_hndl, gni_dev_orb_mmr_t orb_mmr_type,
                                 uint64_t new_orb_mmr_value, uint64_t* old_orb_mmr_value);

/* Whether a value names a resource (not 0: it does; FIRST and LAST do not), and its name in lower case.
 * Any thread. uGNI: gni_dev_res_, gni_job_res_, gni_dev_orb_mmr_ functions */
int gni_dev_res_valid(gni_dev_res_t res_type);
const char* gni_dev_res_to_str(gni_dev_res_t res_type);
int gni_job_res_valid(gni_job_res_t res_type);
const char* gni_job_res_to_str(gni_job_res_t res_type);
int gni_dev_orb_mmr_valid(gni_dev_orb_mmr_t orb_mmr_type);
const char* gni_dev_orb_mmr_to_str(gni_dev_orb_mmr_t orb_mmr_type);

#ifdef __cplusplus
}
#endif
