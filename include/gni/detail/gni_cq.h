/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Completion queues. */

#include "gni_base.h"
#include "gni_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a completion queue, for one's own requests or for peers' accesses.
 *   entry_count  events it must hold, 1 and up; may be rounded up
 *   delay_count  ignored: a blocked waiter is woken by each event
 *   mode         GNI_CQ_ bits; GNI_CQ_BLOCKING to allow waiting
 *   handler      called with each event before the get or wait that took it returns, or NULL
 *   context      handed to handler
 *   cq_hndl      out
 * Returns SUCCESS; INVALID_PARAM; ERROR_RESOURCE no queue of that size is left; ERROR_NOMEM.
 * Does not block. Serialise per NIC. uGNI: CqCreate
 */
gni_return_t GNI_CqCreate(gni_nic_handle_t nic_hndl, uint32_t entry_count, uint32_t delay_count,
                          gni_cq_mode_t mode, void (*handler)(gni_cq_entry_t*, void*), void* context,
                          gni_cq_handle_t* cq_hndl);

/*
 * Frees a queue. Returns SUCCESS; INVALID_PARAM; ERROR_RESOURCE while an endpoint uses it.
 * Registrations that name it go on without events. Does not block. Serialise per NIC. uGNI: CqDestroy
 */
gni_return_t GNI_CqDestroy(gni_cq_handle_t cq_hndl);

/*
 * Takes the next event.
 *   event_data  out, with SUCCESS, TRANSACTION_ERROR and ERROR_RESOURCE
 * Returns SUCCESS; NOT_DONE the queue is empty; TRANSACTION_ERROR the event is taken and reports a failure
 * (a post still needs GNI_GetCompleted); ERROR_RESOURCE events were lost: event_data has the overrun mark,
 * take what is left until NOT_DONE; INVALID_PARAM.
 * Does not block. Serialise per NIC. uGNI: CqGetEvent
 */
gni_return_t GNI_CqGetEvent(gni_cq_handle_t cq_hndl, gni_cq_entry_t* event_data);

/*
 * Waits for the next event and takes it.
 *   timeout  milliseconds; (uint64_t)-1 waits for ever
 * Returns as GNI_CqGetEvent, with TIMEOUT for NOT_DONE; ERROR_RESOURCE also for a queue without
 * GNI_CQ_BLOCKING, with event_data untouched. Blocks up to the timeout. Serialise per NIC.
 * uGNI: CqWaitEvent
 */
gni_return_t GNI_CqWaitEvent(gni_cq_handle_t cq_hndl, uint64_t timeout, gni_cq_entry_t* event_data);

/*
 * Waits for an event in any of several blocking queues and takes it.
 *   cqs, num_cqs  the queues, 1 and up, of one NIC
 *   which         out: index of the queue
 * Returns as GNI_CqWaitEvent. uGNI: CqVectorWaitEvent
 */
gni_return_t GNI_CqVectorWaitEvent(gni_cq_handle_t* cqs, uint32_t num_cqs, uint64_t timeout,
                                   gni_cq_entry_t* event_data, uint32_t* which);

/*
 * Waits until any of several blocking queues has an event, and takes nothing. May run in one thread while
 * another polls the same queues.
 * Returns SUCCESS; TIMEOUT; NOT_DONE interrupts are masked; ERROR_RESOURCE; INVALID_PARAM.
 * Blocks up to the timeout. uGNI: CqVectorMonitor
 */
gni_return_t GNI_CqVectorMonitor(gni_cq_handle_t* cqs, uint32_t num_cqs, uint64_t timeout, uint32_t* which);

/*
 * Stops, and allows again, the wake-ups of a blocking queue.
 * Return SUCCESS; INVALID_PARAM for a bad queue or one without GNI_CQ_BLOCKING.
 * Do not block. Any thread. uGNI: CqInterruptMask, CqInterruptUnmask
 */
gni_return_t GNI_CqInterruptMask(gni_cq_handle_t cq_hndl);
gni_return_t GNI_CqInterruptUnmask(gni_cq_handle_t cq_hndl);

/*
 * Says whether GNI_CqGetEvent would find something; takes nothing. May run beside other threads' calls.
 * Returns SUCCESS an event; NOT_DONE none; ERROR_RESOURCE overrun; INVALID_PARAM.
 * Does not block. uGNI: CqTestEvent
 */
gni_return_t GNI_CqTestEvent(gni_cq_handle_t cq_hndl);

/*
 * Describes an event's source, status and info in words, with a terminating 0.
 *   buffer, len  where, and its size in bytes; 256 always suffice
 * Returns SUCCESS; INVALID_PARAM buffer NULL; SIZE_ERROR len too small, nothing written.
 * Does not block. Any thread. uGNI: CqErrorStr
 */
gni_return_t GNI_CqErrorStr(gni_cq_entry_t entry, void* buffer, uint32_t len);

/*
 * Says whether posting again may help after the event's status.
 *   recoverable  out: 1 or 0
 * Returns SUCCESS; INVALID_PARAM recoverable NULL; INVALID_STATE the status is 0 or not a known one.
 * Does not block. Any thread. uGNI: CqErrorRecoverable
 */
gni_return_t GNI_CqErrorRecoverable(gni_cq_entry_t entry, uint32_t* recoverable);

#ifdef __cplusplus
}
#endif
