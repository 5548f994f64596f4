// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <array>

#include <portals3.h>

// The names of Portals 3.3's codes and events, by value.
#define ORRERY_PORTALS3_CODES                                                                           \
  "PTL_OK", "PTL_AC_INDEX_INVALID", "PTL_EQ_DROPPED", "PTL_EQ_EMPTY", "PTL_EQ_INVALID", "PTL_FAIL",     \
      "PTL_HANDLE_INVALID", "PTL_IFACE_INVALID", "PTL_MD_ILLEGAL", "PTL_MD_INVALID", "PTL_MD_IN_USE",   \
      "PTL_MD_NO_UPDATE", "PTL_ME_INVALID", "PTL_ME_IN_USE", "PTL_ME_LIST_TOO_LONG", "PTL_NI_INVALID",  \
      "PTL_NO_INIT", "PTL_NO_SPACE", "PTL_PID_INVALID", "PTL_PROCESS_INVALID", "PTL_PT_FULL",           \
      "PTL_PT_INDEX_INVALID", "PTL_SEGV", "PTL_SR_INDEX_INVALID", "PTL_UNKNOWN_ERROR", "PTL_IFACE_DUP", \
      "PTL_EQ_IN_USE", "PTL_VAL_FAILED"
#define ORRERY_PORTALS3_EVENTS                                                                          \
  "PTL_EVENT_GET_START", "PTL_EVENT_GET_END", "PTL_EVENT_PUT_START", "PTL_EVENT_PUT_END",               \
      "PTL_EVENT_GETPUT_START", "PTL_EVENT_GETPUT_END", "PTL_EVENT_REPLY_START", "PTL_EVENT_REPLY_END", \
      "PTL_EVENT_SEND_START", "PTL_EVENT_SEND_END", "PTL_EVENT_ACK", "PTL_EVENT_UNLINK"

namespace orrery::portals3 {

inline constexpr std::array kCodes = {ORRERY_PORTALS3_CODES};
static_assert(kCodes.size() == PTL_MAX_ERRNO);
inline constexpr std::array kEvents = {ORRERY_PORTALS3_EVENTS};
static_assert(kEvents.size() == PTL_EVENT_UNLINK + 1);

}  // namespace orrery::portals3
