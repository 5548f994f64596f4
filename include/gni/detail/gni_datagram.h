/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Datagrams: both sides post, and their up to 128 bytes are exchanged. A bound endpoint meets the peer's post
 * that is bound back to it, else the peer's post on an unbound endpoint (the wildcard). */

#include "gni_base.h"
#include "gni_enums.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Posts a datagram.
 *   in_data, data_len  what the peer gets, 0..GNI_DATAGRAM_MAXSIZE bytes; copied before return
 *   out_buf, buf_size  where the peer's data is put when the result is taken
 * Returns SUCCESS; INVALID_PARAM; SIZE_ERROR too long; ERROR_RESOURCE one is outstanding on the endpoint or
 * towards the peer; ERROR_NOMEM.
 * Does not block. Serialise per NIC. uGNI: EpPostData
 */
gni_return_t GNI_EpPostData(gni_ep_handle_t ep_hndl, void* in_data, uint16_t data_len, void* out_buf,
                            uint16_t buf_size);

/*
 * The same with a name for the datagram, which the ById calls use.
 *   datagram_id  anything but (uint64_t)-1, which is INVALID_PARAM
 * Outcomes of GNI_EpPostData. uGNI: EpPostDataWId
 */
gni_return_t GNI_EpPostDataWId(gni_ep_handle_t ep_hndl, void* in_data, uint16_t data_len, void* out_buf,
                               uint16_t buf_size, uint64_t datagram_id);

/*
 * State of the endpoint's datagram; takes the result once it is COMPLETED.
 *   post_state              out, with SUCCESS: PENDING, REMOTE_DATA or a final state
 *   remote_addr, remote_id  out, with COMPLETED: the peer's
 * Returns SUCCESS; INVALID_PARAM; NO_MATCH nothing is posted; SIZE_ERROR the out buffer is too small.
 * Does not block. Serialise per NIC. uGNI: EpPostDataTest
 */
gni_return_t GNI_EpPostDataTest(gni_ep_handle_t ep_hndl, gni_post_state_t* post_state, uint32_t* remote_addr,
                                uint32_t* remote_id);

/* The same for the datagram of that name. uGNI: EpPostDataTestById */
gni_return_t GNI_EpPostDataTestById(gni_ep_handle_t ep_hndl, uint64_t datagram_id,
                                    gni_post_state_t* post_state, uint32_t* remote_addr, uint32_t* remote_id);

/*
 * Waits for the endpoint's datagram, then does as GNI_EpPostDataTest.
 *   timeout  milliseconds, 1 and up; (uint32_t)-1 waits for ever; 0 is INVALID_PARAM
 * Returns also TIMEOUT. Blocks up to the timeout. May run beside calls of other threads. uGNI: EpPostDataWait
 */
gni_return_t GNI_EpPostDataWait(gni_ep_handle_t ep_hndl, uint32_t timeout, gni_post_state_t* post_state,
                                uint32_t* remote_addr, uint32_t* remote_id);

/* The same for the datagram of that name. uGNI: EpPostDataWaitById */
gni_return_t GNI_EpPostDataWaitById(gni_ep_handle_t ep_hndl, uint64_t datagram_id, uint32_t timeout,
                                    gni_post_state_t* post_state, uint32_t* remote_addr, uint32_t* remote_id);

/*
 * Names the peer of the first finished unnamed datagram; takes nothing.
 * Returns SUCCESS; NO_MATCH none has finished; INVALID_PARAM.
 * Does not block. Serialise per NIC. uGNI: PostDataProbe
 */
gni_return_t GNI_PostDataProbe(gni_nic_handle_t nic_hndl, uint32_t* remote_addr, uint32_t* remote_id);

/* The name of the first finished named datagram; otherwise as above. uGNI: PostDataProbeById */
gni_return_t GNI_PostDataProbeById(gni_nic_handle_t nic_hndl, uint64_t* datagram_id);

/*
 * Waits for a named datagram to finish.
 *   timeout  milliseconds; 0 looks once; (uint32_t)-1 waits for ever
 * Returns SUCCESS; TIMEOUT none has finished in time, also when none is outstanding; INVALID_PARAM.
 * Blocks up to the timeout. May run beside calls of other threads. uGNI: PostdataProbeWaitById
 */
gni_return_t GNI_PostdataProbeWaitById(gni_nic_handle_t nic_hndl, uint32_t timeout, uint64_t* datagram_id);

/*
 * Cancels the endpoint's datagram; it is then reported TERMINATED.
 * Returns SUCCESS; NO_MATCH none is active; INVALID_PARAM.
 * Does not block. Serialise per NIC. uGNI: EpPostDataCancel
 */
gni_return_t GNI_EpPostDataCancel(gni_ep_handle_t ep_hndl);

/* The same for the datagram of that name. uGNI: EpPostDataCancelById */
gni_return_t GNI_EpPostDataCancelById(gni_ep_handle_t ep_hndl, uint64_t datagram_id);

#ifdef __cplusplus
}
#endif
