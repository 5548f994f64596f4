/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Subscriptions to errors of the device. */

#include "gni_base.h"
#include "gni_device_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Subscribes.
 *   nic_handle  errors of this attachment; NULL for the whole device, a privileged act
 *   device_id   the device, when nic_handle is NULL
 *   mask        GNI_ERRMASK_ categories wanted
 *   EEQ_size    errors kept until they are taken; 0 for 64
 * Returns SUCCESS; INVALID_PARAM; NO_MATCH; PERMISSION_ERROR; ERROR_RESOURCE; ERROR_NOMEM. Does not block.
 * Any thread. uGNI: SubscribeErrors
 */
gni_return_t GNI_SubscribeErrors(gni_nic_handle_t nic_handle, uint32_t device_id, gni_error_mask_t mask,
                                 uint32_t EEQ_size, gni_err_handle_t* err_handle);

/* Ends a subscription. Returns SUCCESS; NOT_DONE a thread waits on it; INVALID_PARAM. Does not block. Any
 * thread. uGNI: ReleaseErrors */
gni_return_t GNI_ReleaseErrors(gni_err_handle_t err_handle);

/* The categories subscribed to. Returns SUCCESS; INVALID_PARAM. Any thread. uGNI: GetErrorMask */
gni_return_t GNI_GetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t* mask);

/* Replaces them; mask_out, if not NULL, gets the old ones. Returns SUCCESS; INVALID_PARAM. Any thread.
 * uGNI: SetErrorMask */
gni_return_t GNI_SetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t mask_in,
                              gni_error_mask_t* mask_out);

/* Takes the oldest error. Returns SUCCESS; NOT_DONE none; ERROR_RESOURCE some were lost; INVALID_PARAM. Does
 * not block. Any thread. uGNI: GetErrorEvent */
gni_return_t GNI_GetErrorEvent(gni_err_handle_t err_handle, gni_error_event_t* event);

/*
 * Waits for an error, then collects more for a while.
 *   events, events_size  room, in events, 1 and up
 *   timeout              milliseconds to collect after the first
 *   num_events           out: how many
 * Returns SUCCESS; NOT_DONE interrupted; INVALID_PARAM. Blocks until the first error. Any thread.
 * uGNI: WaitErrorEvents
 */
gni_return_t GNI_WaitErrorEvents(gni_err_handle_t err_handle, gni_error_event_t* events, uint32_t events_size,
                                 uint32_t timeout, uint32_t* num_events);

/* Restricts a subscription to one protection tag. Returns SUCCESS; INVALID_PARAM; PERMISSION_ERROR. Does not
 * block. Any thread. uGNI: SetErrorPtag */
gni_return_t GNI_SetErrorPtag(gni_err_handle_t err_handle, uint8_t ptag);

#ifdef __cplusplus
}
#endif
