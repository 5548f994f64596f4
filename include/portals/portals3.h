/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * Portals 3.3 over Orrery. The interface's names and meanings are public; values are those that public
 * clients were compiled with, or this library's own (docs/sources.md). docs/portals.md says what each
 * call does here. Every function may be called from any thread. PTL_NO_INIT: PtlInit was not called,
 * or PtlFini was since; PTL_NI_INVALID: the handle names no interface. */
#ifndef ORRERY_PORTALS3_H
#define ORRERY_PORTALS3_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ---- */
typedef uint64_t ptl_size_t;
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef uint32_t ptl_pt_index_t;
typedef uint32_t ptl_ac_index_t;
typedef uint32_t ptl_interface_t;
typedef uint32_t ptl_nid_t;
typedef uint32_t ptl_pid_t;
typedef uint32_t ptl_uid_t;
typedef uint32_t ptl_jid_t;
typedef uint32_t ptl_seq_t;
typedef uint32_t ptl_ni_fail_t;
typedef uint32_t ptl_time_t; /* milliseconds */
typedef uint32_t ptl_sr_index_t;
typedef uint64_t ptl_sr_value_t;
typedef uint32_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_me_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_eq_t;

typedef struct {
  ptl_nid_t nid;
  ptl_pid_t pid;
} ptl_process_id_t;

typedef struct {
  int max_mes;
  int max_mds; /* match entries and memory descriptors share one pool */
  int max_eqs;
  int max_ac_index;
  int max_pt_index;
  int max_md_iovecs;
  int max_me_list;
  int max_getput_md; /* bytes */
} ptl_ni_limits_t;

typedef struct {
  void* iov_base;
  ptl_size_t iov_len;
} ptl_md_iovec_t;

typedef struct {
  void* start;
  ptl_size_t length; /* bytes; with PTL_MD_IOVEC: how many ptl_md_iovec_t lie at start */
  int threshold;     /* operations, or PTL_MD_THRESH_INF */
  ptl_size_t max_size;
  unsigned int options;
  void* user_ptr;
  ptl_handle_eq_t eq_handle;
} ptl_md_t;

typedef enum { PTL_RETAIN = 0, PTL_UNLINK = 1 } ptl_unlink_t;
typedef enum { PTL_INS_BEFORE = 0, PTL_INS_AFTER = 1 } ptl_ins_pos_t;
typedef enum { PTL_ACK_REQ = 0, PTL_NO_ACK_REQ = 1 } ptl_ack_req_t;
#define PTL_NOACK_REQ PTL_NO_ACK_REQ

typedef enum {
  PTL_EVENT_GET_START,
  PTL_EVENT_GET_END,
  PTL_EVENT_PUT_START,
  PTL_EVENT_PUT_END,
  PTL_EVENT_GETPUT_START,
  PTL_EVENT_GETPUT_END,
  PTL_EVENT_REPLY_START,
  PTL_EVENT_REPLY_END,
  PTL_EVENT_SEND_START,
  PTL_EVENT_SEND_END,
  PTL_EVENT_ACK,
  PTL_EVENT_UNLINK
} ptl_event_kind_t;

typedef struct {
  ptl_event_kind_t type;
  ptl_process_id_t initiator; /* whose message this is: of an ACK or a REPLY, the target */
  ptl_uid_t uid;
  ptl_jid_t jid;
  ptl_pt_index_t pt_index;
  ptl_match_bits_t match_bits;
  ptl_size_t rlength; /* bytes that were asked for */
  ptl_size_t mlength; /* bytes that were moved */
  ptl_size_t offset;  /* in the memory descriptor */
  ptl_handle_md_t md_handle;
  ptl_md_t md; /* as it was when the event was raised */
  ptl_hdr_data_t hdr_data;
  ptl_seq_t link; /* the same in START and END of one operation */
  ptl_ni_fail_t ni_fail_type;
  volatile ptl_seq_t sequence; /* of the event in its queue */
} ptl_event_t;

typedef void (*ptl_eq_handler_t)(ptl_event_t* event);
#define PTL_EQ_HANDLER_NONE ((ptl_eq_handler_t)0)

/* ---- values ---- */
#define PTL_INVALID_HANDLE 0xffffffffu
#define PTL_HANDLE_NONE 0x7fffffffu
#define PTL_EQ_NONE 0xbfffffffu
#define PTL_NID_ANY 0xffffffffu
#define PTL_PID_ANY 0xffffffffu
#define PTL_UID_ANY 0xffffffffu
#define PTL_JID_ANY 0xffffffffu
#define PTL_JID_NONE 0u
#define PTL_PT_INDEX_ANY 0xffffffffu
#define PTL_MD_THRESH_INF (-1)
#define PTL_TIME_FOREVER 0xffffffffu
#define PTL_SR_DROP_COUNT 0u

#define PTL_MD_OP_PUT 0x1u
#define PTL_MD_OP_GET 0x2u
#define PTL_MD_MANAGE_REMOTE 0x4u /* the initiator's offset counts; else a local one that grows */
#define PTL_MD_TRUNCATE 0x8u      /* takes longer messages, cut off; else they are not for it */
#define PTL_MD_ACK_DISABLE 0x10u
#define PTL_MD_IOVEC 0x20u
#define PTL_MD_MAX_SIZE 0x40u /* takes nothing more when less than max_size is left */
#define PTL_MD_EVENT_START_DISABLE 0x80u
#define PTL_MD_EVENT_END_DISABLE 0x100u
/* Cray's names for what is always so here: `unlink_op` alone says whether a descriptor goes by itself, and
 * its queue hears of it. */
#define PTL_MD_FLAG_AUTO_UNLINK 0u
#define PTL_MD_EVENT_AUTO_UNLINK_ENABLE 0u
#define PTL_MD_EVENT_MANUAL_UNLINK_ENABLE 0u

#define PTL_NI_OK 0u
#define PTL_NI_FAIL 1u /* the target cannot be reached, or memory at one side is not there */

/* Return codes. */
enum {
  PTL_OK,
  PTL_AC_INDEX_INVALID,
  PTL_EQ_DROPPED,
  PTL_EQ_EMPTY,
  PTL_EQ_INVALID,
  PTL_FAIL,
  PTL_HANDLE_INVALID,
  PTL_IFACE_INVALID,
  PTL_MD_ILLEGAL,
  PTL_MD_INVALID,
  PTL_MD_IN_USE,
  PTL_MD_NO_UPDATE,
  PTL_ME_INVALID,
  PTL_ME_IN_USE,
  PTL_ME_LIST_TOO_LONG,
  PTL_NI_INVALID,
  PTL_NO_INIT,
  PTL_NO_SPACE,
  PTL_PID_INVALID,
  PTL_PROCESS_INVALID,
  PTL_PT_FULL,
  PTL_PT_INDEX_INVALID,
  PTL_SEGV,
  PTL_SR_INDEX_INVALID,
  PTL_UNKNOWN_ERROR,
  /* Cray's; no call here returns them. */
  PTL_IFACE_DUP,
  PTL_EQ_IN_USE,
  PTL_VAL_FAILED
};
#define PTL_MAX_ERRNO (PTL_VAL_FAILED + 1)

/* ---- start and end ---- */
/* Begins the use of the library; `max_interfaces` (may be null) becomes 1. Calls count. PTL_OK. */
int PtlInit(int* max_interfaces);
void PtlFini(void);

/* Opens the interface PTL_IFACE_DEFAULT under a process id, or PTL_PID_ANY: what the rank's maps say,
 * else one that is free. A further call says PTL_OK and gives the same handle. `desired`, `actual` may
 * be null. PTL_IFACE_INVALID, PTL_PID_INVALID (another process has it), PTL_NO_SPACE, PTL_FAIL (the
 * log says why). */
int PtlNIInit(ptl_interface_t iface, ptl_pid_t pid, ptl_ni_limits_t* desired, ptl_ni_limits_t* actual,
              ptl_handle_ni_t* ni_handle);
int PtlNIFini(ptl_handle_ni_t ni_handle);
/* PTL_SR_DROP_COUNT: messages that nothing took. PTL_SR_INDEX_INVALID. */
int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t* status);
/* 0: the same NIC. Else the machine's hops between the two nodes, at least 1; 1 where no machine was chosen,
 * the program gave its nodes numbers of its own, or the node is not known. PTL_PROCESS_INVALID (a
 * wildcard). */
int PtlNIDist(ptl_handle_ni_t ni_handle, ptl_process_id_t process, unsigned long* distance);
/* The interface of any handle. PTL_HANDLE_INVALID. */
int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t* ni_handle);
int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t* uid);
int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_id_t* id);
int PtlGetJid(ptl_handle_ni_t ni_handle, ptl_jid_t* jid);

/* ---- match entries ---- */
/* A match entry at the beginning (PTL_INS_BEFORE) or end of a portal's list. With PTL_UNLINK it goes
 * with its memory descriptor. PTL_PT_INDEX_INVALID, PTL_ME_LIST_TOO_LONG, PTL_NO_SPACE. */
int PtlMEAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_process_id_t match_id,
                ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op,
                ptl_ins_pos_t position, ptl_handle_me_t* me_handle);
/* The same in a portal whose list is empty. PTL_PT_FULL. */
int PtlMEAttachAny(ptl_handle_ni_t ni_handle, ptl_pt_index_t* pt_index, ptl_process_id_t match_id,
                   ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op,
                   ptl_handle_me_t* me_handle);
/* The same next to another entry. PTL_ME_INVALID. */
int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op, ptl_ins_pos_t position,
                ptl_handle_me_t* me_handle);
/* The entry and its memory descriptor go. PTL_ME_IN_USE: an operation is under way. */
int PtlMEUnlink(ptl_handle_me_t me_handle);

/* ---- memory descriptors ---- */
/* Gives an entry its memory. PTL_ME_IN_USE (it has some), PTL_MD_ILLEGAL (options, threshold, pieces),
 * PTL_EQ_INVALID. */
int PtlMDAttach(ptl_handle_me_t me_handle, ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_md_t* md_handle);
/* A descriptor for operations of this process alone. PTL_NO_SPACE and as above. */
int PtlMDBind(ptl_handle_ni_t ni_handle, ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_md_t* md_handle);
/* PtlMEInsert and PtlMDAttach in one, if `test_queue` is empty or PTL_EQ_NONE: no message comes between
 * the look at the queue, the entry and its memory. PTL_MD_NO_UPDATE: the queue has events, and nothing
 * was done. */
int PtlMEMDPost(ptl_handle_ni_t ni_handle, ptl_handle_me_t base, ptl_process_id_t match_id,
                ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink_op,
                ptl_ins_pos_t position, ptl_md_t md, ptl_unlink_t md_unlink_op, ptl_handle_me_t* me_handle,
                ptl_handle_md_t* md_handle, ptl_handle_eq_t test_queue);
/* The descriptor goes, and with it an entry that was made with PTL_UNLINK. PTL_MD_IN_USE: an operation is
 * under way. */
int PtlMDUnlink(ptl_handle_md_t md_handle);
/* Copies the descriptor to `old_md`, and gives it `new_md` (either may be null) if `test_queue` is
 * empty or PTL_EQ_NONE; its local offset is 0 then. PTL_MD_NO_UPDATE: the queue has events, or an
 * operation is under way. */
int PtlMDUpdate(ptl_handle_md_t md_handle, ptl_md_t* old_md, ptl_md_t* new_md, ptl_handle_eq_t test_queue);

/* ---- event queues ---- */
/* Holds `count` events, 960 at the least; 0 gives PTL_EQ_NONE. With a handler, a thread of the library
 * calls it for each event, and the queue stays empty. PTL_NO_SPACE. */
int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_eq_handler_t handler,
               ptl_handle_eq_t* eq_handle);
int PtlEQFree(ptl_handle_eq_t eq_handle);
/* PTL_EQ_EMPTY; PTL_EQ_DROPPED: `event` is valid, events before it were lost. */
int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t* event);
int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t* event);
int PtlEQPoll(ptl_handle_eq_t* eq_handles, int size, ptl_time_t timeout, ptl_event_t* event, int* which);

/* ---- access control ---- */
/* Which processes may use which portal when they name `ac_index`. At first 0 allows this user's.
 * PTL_AC_INDEX_INVALID, PTL_PT_INDEX_INVALID. */
int PtlACEntry(ptl_handle_ni_t ni_handle, ptl_ac_index_t ac_index, ptl_process_id_t match_id, ptl_uid_t uid,
               ptl_jid_t jid, ptl_pt_index_t pt_index);

/* ---- data movement ---- */
/* PTL_MD_INVALID, PTL_MD_ILLEGAL (it has had its last operation; a part outside it),
 * PTL_PROCESS_INVALID (a wildcard). A message that nothing takes at its target, or for a process that
 * is not there, is dropped: no ACK, no REPLY. */
int PtlPut(ptl_handle_md_t md_handle, ptl_ack_req_t ack_req, ptl_process_id_t target, ptl_pt_index_t pt_index,
           ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
           ptl_hdr_data_t hdr_data);
int PtlPutRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                 ptl_process_id_t target, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
                 ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);
int PtlGet(ptl_handle_md_t md_handle, ptl_process_id_t target, ptl_pt_index_t pt_index,
           ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset);
int PtlGetRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                 ptl_process_id_t target, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
                 ptl_match_bits_t match_bits, ptl_size_t remote_offset);
/* The target's bytes come to `get_md_handle`, those of `put_md_handle` take their place. The two are
 * equally long, at most max_getput_md: else PTL_MD_ILLEGAL. */
int PtlGetPut(ptl_handle_md_t get_md_handle, ptl_handle_md_t put_md_handle, ptl_process_id_t target,
              ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
              ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/* ---- what clients use besides ---- */
const char* PtlErrorStr(int code);
/* The names by value, PTL_MAX_ERRNO of them. The library also has ptl_event_str, which programs declare
 * themselves, in different ways. */
extern const char* ptl_err_str[];
const char* PtlNIFailStr(ptl_handle_ni_t ni_handle, ptl_ni_fail_t fail);
const char* PtlEventKindStr(ptl_event_kind_t kind);
/* Nothing is printed: `orrery run --log` shows calls. Returns the mask before. */
unsigned int PtlNIDebug(ptl_handle_ni_t ni_handle, unsigned int mask);
/* Lets time pass under a clock. PTL_OK. */
int PtlProgress(ptl_handle_any_t handle, ptl_time_t timeout);

#ifdef __cplusplus
}
#endif

#include "p3api/debug.h"
#include "p3nal.h"

#endif
