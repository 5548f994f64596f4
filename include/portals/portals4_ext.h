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

#ifdef __cplusplus
}
#endif
#endif
