/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "dmapp_types.h"

/* Completion, locks, queues. */

#ifdef __cplusplus
extern "C" {
#endif

/* Returns when the operation is complete; says how it ended. The handle may be used again then.
 * INVALID_PARAM: no _nb call gave it, or it was found complete by way of a copy. */
dmapp_return_t dmapp_syncid_wait(dmapp_syncid_handle_t* syncid);
/* *flag: 1 when it is complete, which retires the handle; else 0 and SUCCESS. */
dmapp_return_t dmapp_syncid_test(dmapp_syncid_handle_t* syncid, int* flag);
/* The same for all _nbi operations of this PE: of all its threads. Says the first error since the last time.
 */
dmapp_return_t dmapp_gsync_wait(void);
dmapp_return_t dmapp_gsync_test(int* flag);
/* The same for those of the calling thread. */
dmapp_return_t dmapp_thread_gsync_wait(void);
dmapp_return_t dmapp_thread_gsync_test(int* flag);

/* Takes the lock that is the descriptor at lock_addr of the PE lock_host; waits in the order of arrival.
 * flags: 0. A thread that holds it may not take it again: it waits for itself. RESOURCE_ERROR: as many locks
 * are held or awaited as DMAPP_MAX_LOCKS says (128 unless set; at most 1023). TRANSACTION_ERROR: its host,
 * its holder or one that waited before this one has died: the lock is lost. NOT_FOUND: the descriptor is not
 * in the segment. ALIGNMENT_ERROR. */
dmapp_return_t dmapp_lock_acquire(dmapp_lock_desc_t* lock_addr, dmapp_seg_desc_t* lock_seg,
                                  dmapp_pe_t lock_host, uint64_t flags, dmapp_lock_handle_t* handle);
/* The same without waiting. BUSY: it is held. */
dmapp_return_t dmapp_lock_try(dmapp_lock_desc_t* lock_addr, dmapp_seg_desc_t* lock_seg, dmapp_pe_t lock_host,
                              uint64_t flags, dmapp_lock_handle_t* handle);
/* What was put or changed by AMO before, and is complete, is seen by the next one that takes the lock.
 * NOT_FOUND: the caller's PE holds no such lock. */
dmapp_return_t dmapp_lock_release(dmapp_lock_handle_t handle, uint64_t flags);
dmapp_return_t dmapp_lock_release_addr(dmapp_lock_desc_t* lock_addr, dmapp_pe_t lock_host, uint64_t flags);

/* Messages to this PE: `callback(context, data, len, rank)` runs for each, len in bytes, one at a time; by a
 * thread of the library when the attributes at init had DMAPP_QUEUE_ASYNC_PROGRESS, else inside calls of
 * dmapp_progress. It may call DMAPP, also what blocks. data is good until it returns; its result should be 0.
 * One queue a PE. Collective in effect: a message to a PE without one waits for it. flags: 0. BUSY: there is
 * one. */
dmapp_return_t dmapp_queue_attach(int (*callback)(void* context, void* data, uint32_t len, dmapp_pe_t rank),
                                  void* context, uint64_t flags, dmapp_queue_handle_t* hndl);
/* Ends it, behind a callback that is running. INVALID_PARAM: no such queue. */
dmapp_return_t dmapp_queue_detach(dmapp_queue_handle_t hndl, uint64_t flags);
/* Sends to the queue of target_pe. Waits while that is full, and goes on with this PE's own messages
 * meanwhile; in a callback it copies them, and their callbacks run behind that one. The source may be
 * used again when it returns. Messages of one thread arrive in order. NO_SPACE: longer than queue_nelems
 * - 1 QWs. TRANSACTION_ERROR: the PE has died, or its queue ended. */
dmapp_return_t dmapp_queue_put(dmapp_queue_handle_t hndl, void* source, uint64_t nelems, dmapp_type_t type,
                               dmapp_pe_t target_pe, uint64_t flags);

#ifdef __cplusplus
}
#endif
