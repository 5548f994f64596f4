/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/*
 * Reading a completion event. All functions: any thread, do not block, any value of the entry is accepted.
 * A field that the kind of event lacks reads as the bits that other fields keep there. uGNI: GNI_CQ_ macros.
 */

#include "gni_structs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of event (2 bits). */
#define GNI_CQ_EVENT_TYPE_POST 0ULL
#define GNI_CQ_EVENT_TYPE_SMSG 1ULL
#define GNI_CQ_EVENT_TYPE_DMAPP 2ULL
#define GNI_CQ_EVENT_TYPE_MSGQ 3ULL

/* The 48 bits of data. On a remote event its low 32 bits are the remote instance; after a CQ write they are
 * the low bits of the value written. */
uint64_t gni_cq_get_data(gni_cq_entry_t entry);
/* The unit that made the event: 1 BTE, 2 SSID, 3 RMT, 4 DLA; 0 only in a word that is no event. */
uint64_t gni_cq_get_source(gni_cq_entry_t entry);
/* The device's status code (6 bits), 0 when all went well. */
uint64_t gni_cq_get_status(gni_cq_entry_t entry);
/* What the unit reports (2 bits, per source). */
uint64_t gni_cq_get_info(gni_cq_entry_t entry);
/* Initiator's event: the endpoint's local event value, 24 bits. Remote event: the same as rem_inst_id. */
uint64_t gni_cq_get_inst_id(gni_cq_entry_t entry);
/* Remote event: the 32-bit value that the sender's endpoint carries. */
uint64_t gni_cq_get_rem_inst_id(gni_cq_entry_t entry);
/* Initiator's event of a post: names the request within its queue. */
uint64_t gni_cq_get_tid(gni_cq_entry_t entry);
/* Initiator's event of a message: the 32-bit msg_id of the send. */
uint64_t gni_cq_get_msg_id(gni_cq_entry_t entry);
/* GNI_CQ_EVENT_TYPE_. */
uint64_t gni_cq_get_type(gni_cq_entry_t entry);
/* Events of the DLA: block, refused allocations, marker, refused enqueues. */
uint64_t gni_cq_get_block_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_unsuccessful_cnt(gni_cq_entry_t entry);
uint64_t gni_cq_get_marker_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_failed_enqueue_cnt(gni_cq_entry_t entry);
/* Events of a collective engine: engine, reduction, kind of transaction. */
uint64_t gni_cq_get_ce_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_reductn_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_trans_type(gni_cq_entry_t entry);
/* Not 0: events were lost on this queue before this one / on the queue at the target. */
uint64_t gni_cq_overrun(gni_cq_entry_t entry);
uint64_t gni_cq_rem_overrun(gni_cq_entry_t entry);
/* Not 0: the status says that the DLA overflowed / the event reports a BTE enqueue. */
unsigned gni_cq_status_dla_overflow(gni_cq_entry_t entry);
unsigned gni_cq_bte_enq_status(gni_cq_entry_t entry);

/* Replace one field; higher bits of the value are ignored, a NULL entry too. */
void gni_cq_set_inst_id(gni_cq_entry_t* entry, uint64_t value);
void gni_cq_set_rem_inst_id(gni_cq_entry_t* entry, uint64_t value);
void gni_cq_set_tid(gni_cq_entry_t* entry, uint64_t value);
void gni_cq_set_msg_id(gni_cq_entry_t* entry, uint64_t value);
void gni_cq_set_type(gni_cq_entry_t* entry, uint64_t value);
void gni_cq_clr_status(gni_cq_entry_t* entry);

#define GNI_CQ_GET_DATA(entry) gni_cq_get_data(entry)
#define GNI_CQ_GET_SOURCE(entry) gni_cq_get_source(entry)
#define GNI_CQ_GET_STATUS(entry) gni_cq_get_status(entry)
#define GNI_CQ_GET_INFO(entry) gni_cq_get_info(entry)
#define GNI_CQ_GET_INST_ID(entry) gni_cq_get_inst_id(entry)
#define GNI_CQ_GET_REM_INST_ID(entry) gni_cq_get_rem_inst_id(entry)
#define GNI_CQ_GET_TID(entry) gni_cq_get_tid(entry)
#define GNI_CQ_GET_MSG_ID(entry) gni_cq_get_msg_id(entry)
#define GNI_CQ_GET_TYPE(entry) gni_cq_get_type(entry)
#define GNI_CQ_GET_BLOCK_ID(entry) gni_cq_get_block_id(entry)
#define GNI_CQ_GET_UNSUCCESSFUL_CNT(entry) gni_cq_get_unsuccessful_cnt(entry)
#define GNI_CQ_GET_MARKER_ID(entry) gni_cq_get_marker_id(entry)
#define GNI_CQ_GET_FAILED_ENQUEUE_CNT(entry) gni_cq_get_failed_enqueue_cnt(entry)
#define GNI_CQ_GET_CE_ID(entry) gni_cq_get_ce_id(entry)
#define GNI_CQ_GET_REDUCTN_ID(entry) gni_cq_get_reductn_id(entry)
#define GNI_CQ_GET_TRANS_TYPE(entry) gni_cq_get_trans_type(entry)
#define GNI_CQ_STATUS_OK(entry) (gni_cq_get_status(entry) == 0)
#define GNI_CQ_OVERRUN(entry) gni_cq_overrun(entry)
#define GNI_CQ_REM_OVERRUN(entry) gni_cq_rem_overrun(entry)
#define GNI_CQ_STATUS_DLA_OVERFLOW(entry) gni_cq_status_dla_overflow(entry)
#define GNI_CQ_BTE_ENQ_STATUS(entry) gni_cq_bte_enq_status(entry)
/* These take the entry itself, not its address. */
#define GNI_CQ_SET_INST_ID(entry, value) gni_cq_set_inst_id(&(entry), value)
#define GNI_CQ_SET_REM_INST_ID(entry, value) gni_cq_set_rem_inst_id(&(entry), value)
#define GNI_CQ_SET_TID(entry, value) gni_cq_set_tid(&(entry), value)
#define GNI_CQ_SET_MSG_ID(entry, value) gni_cq_set_msg_id(&(entry), value)
#define GNI_CQ_SET_TYPE(entry, value) gni_cq_set_type(&(entry), value)
#define GNI_CQ_CLR_STATUS(entry) gni_cq_clr_status(&(entry))

#ifdef __cplusplus
}
#endif
