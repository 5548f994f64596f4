/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * The headers as C, all of them, and the values that clients were compiled with. */
#include <p3/debug.h>
#include <p3api/debug.h>
#include <p3nal_ibng.h>
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>
#include <p3utils.h>
#include <portals3.h>

_Static_assert(PTL_MD_OP_PUT == 1 && PTL_MD_OP_GET == 2 && PTL_MD_MANAGE_REMOTE == 4 && PTL_MD_TRUNCATE == 8,
               "");
_Static_assert(PTL_MD_ACK_DISABLE == 16 && PTL_MD_IOVEC == 32 && PTL_MD_MAX_SIZE == 64, "");
_Static_assert(PTL_MD_EVENT_START_DISABLE == 128 && PTL_MD_EVENT_END_DISABLE == 256, "");
_Static_assert(PTL_OK == 0 && PTL_EQ_DROPPED == 2 && PTL_MD_NO_UPDATE == 11 && PTL_UNKNOWN_ERROR == 24, "");
_Static_assert(PTL_EVENT_GET_START == 0 && PTL_EVENT_SEND_END == 9 && PTL_EVENT_UNLINK == 11, "");
_Static_assert(PTL_RETAIN == 0 && PTL_INS_BEFORE == 0 && PTL_ACK_REQ == 0 && PTL_NOACK_REQ == 1, "");
_Static_assert(sizeof(ptl_handle_any_t) == 4 && sizeof(ptl_process_id_t) == 8 && sizeof(ptl_size_t) == 8, "");

/* Time limits of p3utils.h: 1 when one of no time has passed, one of an hour not, and none never. */
int portals3_time_limits_work(void);
int portals3_time_limits_work(void) {
  timeout_val_t soon, late, never;
  set_timeout(&soon, 0);
  set_timeout(&late, 3600000);
  set_timeout(&never, 0);
  clear_timeout(&never);
  return test_timeout(&soon) && !test_timeout(&late) && !test_timeout(&never);
}
