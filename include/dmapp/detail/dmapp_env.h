/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "dmapp_types.h"

/* Start, attributes, memory. */

#ifdef __cplusplus
extern "C" {
#endif

/* Joins the job, before or after MPI_Init. Collective: returns when every PE has called. `requested` may be
 * null: the defaults; members that were not set are brought into range. *actual gets what holds. A second
 * call only sets the attributes. RESOURCE_ERROR: no NIC, no job, or no symmetric heap of the size that
 * XT_SYMMETRIC_HEAP_SIZE asks for; the log says why. */
dmapp_return_t dmapp_init(dmapp_rma_attrs_t* requested, dmapp_rma_attrs_t* actual);
dmapp_return_t dmapp_init_ext(dmapp_rma_attrs_ext_t* requested, dmapp_rma_attrs_ext_t* actual);
/* Completes what this PE has outstanding and leaves. Collective. Memory of the symmetric heap is gone. A
 * thread that waits in another call comes back first: what it waits for is complete, or the call says
 * INVALID_PARAM (a lock: TRANSACTION_ERROR). No thread may be in a call that starts an operation. BUSY: in a
 * callback. */
dmapp_return_t dmapp_finalize(void);
/* *flag: 1 between dmapp_init and dmapp_finalize, else 0. Always allowed. */
dmapp_return_t dmapp_initialized(int* flag);
dmapp_return_t dmapp_get_jobinfo(dmapp_jobinfo_t* info);
/* Version of this interface. Always allowed. */
dmapp_return_t dmapp_get_version(uint32_t* major, uint32_t* minor);
/* A sentence for a return code; a text that says so for any other number. Always allowed. */
dmapp_return_t dmapp_explain_error(dmapp_return_t error, const char** message);

/* The attributes of the calling thread; before dmapp_init the defaults. */
dmapp_return_t dmapp_get_rma_attrs(dmapp_rma_attrs_t* attrs);
dmapp_return_t dmapp_get_rma_attrs_ext(dmapp_rma_attrs_ext_t* attrs);
/* Sets those of the calling thread, but for members that are set at init only; *actual (may be the same
 * object) gets what holds now. */
dmapp_return_t dmapp_set_rma_attrs(dmapp_rma_attrs_t* requested, dmapp_rma_attrs_t* actual);
dmapp_return_t dmapp_set_rma_attrs_ext(dmapp_rma_attrs_ext_t* requested, dmapp_rma_attrs_ext_t* actual);

/* Block of the symmetric heap, aligned to 64 bytes, not zeroed; null when there is no room (the log says how
 * much was asked for) or when size is 0. Not collective: PEs that make the same calls in the same order get
 * the same addresses. */
void* dmapp_sheap_malloc(size_t size);
/* The block made as long as that, with what it held: where it is, if it gets shorter or the heap is free
 * behind it, else in another place. Null with the block as it was: there is no room, or no block begins at
 * ptr. Null and the block freed: size is 0. A null ptr: as dmapp_sheap_malloc. Not collective: PEs that made
 * the same calls in the same order get the same address. Source: the name and the parameters are DMAPP's;
 * what is promised is realloc's of C. */
void* dmapp_sheap_realloc(void* ptr, size_t size);
/* Null does nothing; what no call gave is left alone, and the log says so. */
void dmapp_sheap_free(void* ptr);
dmapp_return_t dmapp_sheap_stats(dmapp_sheap_stats_t* stats);

/* Makes [addr, addr + length) reachable. The same memory may be registered several times. PERMISSION_ERROR:
 * not readable; RESOURCE_ERROR: 4,096 registrations are in use. */
dmapp_return_t dmapp_mem_register(void* addr, uint64_t length, dmapp_seg_desc_t* seg);
/* After it returns no PE reaches the memory by this descriptor. NOT_FOUND: not of this PE, or gone already.
 */
dmapp_return_t dmapp_mem_unregister(dmapp_seg_desc_t* seg);
/* *flag: 1 when both name the same memory of the same PE, perhaps by two registrations, else 0. */
dmapp_return_t dmapp_segdesc_compare(dmapp_seg_desc_t* a, dmapp_seg_desc_t* b, int* flag);
/* A descriptor for a range of addresses that need not be mapped yet, and the memory that stands behind it
 * from now on. Operations between the two end in an error. flags: 0. */
dmapp_return_t dmapp_mem_reserve(void* addr, uint64_t length, uint64_t flags, dmapp_seg_desc_t* seg);
dmapp_return_t dmapp_mem_update(void* addr, uint64_t length, uint64_t flags, dmapp_seg_desc_t* seg);

/* Each thread that calls is known by its first call; these only say so. NOT_FOUND: the thread never called.
 */
dmapp_return_t dmapp_thread_register(void);
dmapp_return_t dmapp_thread_unregister(void);

/* Runs `callback(context)` in each dmapp_progress of any thread, until deregistered. At most 16:
 * RESOURCE_ERROR. */
typedef void (*dmapp_progress_cb_t)(void* context);
dmapp_return_t dmapp_register_progress_cb(dmapp_progress_cb_t callback, void* context);
dmapp_return_t dmapp_deregister_progress_cb(dmapp_progress_cb_t callback);
/* Moves along what is under way, and runs callbacks of queues that have no thread of their own. */
dmapp_return_t dmapp_progress(void);

/* Completes everything that this PE has outstanding. Nothing is written down: a process's memory is its
 * owner's to save. */
dmapp_return_t dmapp_checkpoint(void);
/* Processes of a job cannot be replaced: NOT_SUPPORTED. */
dmapp_return_t dmapp_restart(uint32_t restart_modes);

#ifdef __cplusplus
}
#endif
