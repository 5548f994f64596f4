/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */

/* The interface as C11: types that the specification fixes, and values that must differ. Compiling is the
 * test. */
#include <portals4.h>
#include <portals4_ext.h>

#define CHECK(condition) _Static_assert(condition, #condition)

CHECK(sizeof(ptl_size_t) == 8 && sizeof(ptl_match_bits_t) == 8 && sizeof(ptl_hdr_data_t) == 8);
CHECK(sizeof(((ptl_ct_event_t*)0)->success) == 8 && sizeof(ptl_handle_any_t) == 4);
CHECK(PTL_OK == 0 && PTL_ABORTED == PTL_INTERRUPTED && PTL_MAJOR_VERSION == 4);

/* Options of one call are bits of their own. */
#define APART(a, b) CHECK(((a) & (b)) == 0)
APART(PTL_NI_MATCHING, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL | PTL_NI_PHYSICAL);
APART(PTL_NI_LOGICAL, PTL_NI_PHYSICAL);
APART(PTL_ME_OP_PUT, PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_IOVEC);
APART(PTL_ME_MANAGE_LOCAL, PTL_ME_NO_TRUNCATE | PTL_ME_MAY_ALIGN | PTL_ME_LOCAL_INC_UH_RLENGTH);
APART(PTL_ME_LOCAL_INC_UH_RLENGTH, PTL_LE_APPEND_OPTIONS_MASK);
APART(PTL_PT_FLOWCTRL, PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_ALLOC_DISABLED);
CHECK(PTL_EQ_NONE != PTL_CT_NONE && PTL_EQ_NONE != PTL_INVALID_HANDLE && PTL_CT_NONE != PTL_INVALID_HANDLE);

/* Every value of an enumeration is another one: a switch over them compiles. */
int portals4_values(int value) {
  switch (value) {
    case PTL_OK:
    case PTL_ARG_INVALID:
    case PTL_CT_NONE_REACHED:
    case PTL_EQ_DROPPED:
    case PTL_EQ_EMPTY:
    case PTL_FAIL:
    case PTL_IGNORED:
    case PTL_IN_USE:
    case PTL_LIST_TOO_LONG:
    case PTL_NO_INIT:
    case PTL_NO_SPACE:
    case PTL_PID_IN_USE:
    case PTL_PT_FULL:
    case PTL_PT_EQ_NEEDED:
    case PTL_PT_IN_USE:
    case PTL_ABORTED:
    case PTL_SIZE_INVALID:
      return 1;
    default:
      return 0;
  }
}
int portals4_events(int value) {
  switch (value) {
    case PTL_EVENT_GET:
    case PTL_EVENT_GET_OVERFLOW:
    case PTL_EVENT_PUT:
    case PTL_EVENT_PUT_OVERFLOW:
    case PTL_EVENT_ATOMIC:
    case PTL_EVENT_ATOMIC_OVERFLOW:
    case PTL_EVENT_FETCH_ATOMIC:
    case PTL_EVENT_FETCH_ATOMIC_OVERFLOW:
    case PTL_EVENT_REPLY:
    case PTL_EVENT_SEND:
    case PTL_EVENT_ACK:
    case PTL_EVENT_PT_DISABLED:
    case PTL_EVENT_LINK:
    case PTL_EVENT_AUTO_UNLINK:
    case PTL_EVENT_AUTO_FREE:
    case PTL_EVENT_SEARCH:
      return 1;
    default:
      return 0;
  }
}
