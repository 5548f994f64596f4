/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Completion channels: a descriptor for poll(2) that tells of events in blocking queues. */

#include "gni_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a channel. Returns SUCCESS; INVALID_PARAM; ERROR_RESOURCE no descriptor is left; ERROR_NOMEM.
 * Does not block. Serialise per NIC. uGNI: CompChanCreate
 */
gni_return_t GNI_CompChanCreate(gni_nic_handle_t nic_hndl, gni_comp_chan_handle_t* chan_hndl);

/*
 * Frees a channel. Returns SUCCESS; INVALID_PARAM; ERROR_RESOURCE while a queue is attached.
 * Does not block. Serialise per NIC. uGNI: CompChanDestroy
 */
gni_return_t GNI_CompChanDestroy(gni_comp_chan_handle_t chan_hndl);

/* The descriptor; it becomes readable with an event. Returns SUCCESS; INVALID_PARAM. Any thread.
 * uGNI: CompChanFd */
gni_return_t GNI_CompChanFd(gni_comp_chan_handle_t chan_hndl, int* comp_chan_fd);

/*
 * Takes a channel event: the queue that has events.
 * Returns SUCCESS; NOT_DONE none and the descriptor is O_NONBLOCK; INVALID_PARAM.
 * Blocks unless the descriptor is O_NONBLOCK. May run beside other threads' calls. uGNI: CompChanGetEvent
 */
gni_return_t GNI_CompChanGetEvent(gni_comp_chan_handle_t chan_hndl, gni_cq_handle_t* cq_hndl);

/*
 * Attaches a blocking queue to a channel. Returns SUCCESS; INVALID_PARAM; INVALID_STATE attached already.
 * Does not block. Serialise per NIC. uGNI: CqAttachCompChan
 */
gni_return_t GNI_CqAttachCompChan(gni_cq_handle_t cq_hndl, gni_comp_chan_handle_t chan_hndl);

/*
 * Arms queues: the next event, or one that is there already, gives one channel event; then arm again.
 * Returns SUCCESS; INVALID_PARAM a queue that is not attached. Does not block. Serialise per NIC.
 * uGNI: CqArmCompChan
 */
gni_return_t GNI_CqArmCompChan(gni_cq_handle_t* cq_hndls, uint32_t num_cqs);

#ifdef __cplusplus
}
#endif
