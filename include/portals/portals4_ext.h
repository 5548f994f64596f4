/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * What clients of Portals 4 use beside the specification: names of values, for messages. */
#ifndef ORRERY_PORTALS4_EXT_H
#define ORRERY_PORTALS4_EXT_H

#include <portals4.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name of a return code ("PTL_OK"), an event kind or a failure; "unknown" for what has none. Never NULL.
 */
const char* ptl_rc_str(int code);
const char* ptl_event_kind_str(ptl_event_kind_t kind);
const char* ptl_fail_type_str(ptl_ni_fail_t fail);

/* What portails4 and its clients call the index of a portal. */
typedef ptl_pt_index_t ptl_index_t;

/* What a value of PtlToStr is. */
typedef enum ptl_str_type {
  PTL_STR_ERROR,     /* a return code */
  PTL_STR_EVENT,     /* a ptl_event_kind_t */
  PTL_STR_FAIL_TYPE, /* a ptl_ni_fail_t */
} ptl_str_type_t;

/* The name of a value, as the three functions above have it; "unknown" for a type that is none. Never NULL.
 * Any thread. Source: clients of portails4. */
const char* PtlToStr(int code, ptl_str_type_t type);

/* Bytes that the text of any event fits into, the end included. */
#define PTL_EV_STR_SIZE 384

/* Writes an event as one line with its end, "type=LINK fail=OK, pt=0, uptr=(nil)": the fields that the event
 * has; numbers other than pt, uid and the initiator in hexadecimal. msg has room for PTL_EV_STR_SIZE bytes.
 * ni_options: with PTL_NI_LOGICAL the initiator is a rank, else nid:pid. Returns how many characters were
 * written; 0 if event or msg is NULL. Any thread. Source: clients of portails4. */
int PtlEvToStr(unsigned int ni_options, const ptl_event_t* event, char* msg);

#ifdef __cplusplus
}
#endif
#endif
