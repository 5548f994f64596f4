// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Values by name, for messages.
#include <array>
#include <cstddef>

#include <portals4_ext.h>

namespace {

template <std::size_t count>
const char* name_of(const std::array<const char*, count>& names, int value) {
  return value < 0 || static_cast<std::size_t>(value) >= count ? "unknown"
                                                               : names[static_cast<std::size_t>(value)];
}

}  // namespace

extern "C" {

const char* ptl_rc_str(int code) {
  static constexpr std::array kNames{
      "PTL_OK",       "PTL_ARG_INVALID", "PTL_CT_NONE_REACHED", "PTL_EQ_DROPPED",    "PTL_EQ_EMPTY",
      "PTL_FAIL",     "PTL_IGNORED",     "PTL_IN_USE",          "PTL_LIST_TOO_LONG", "PTL_NO_INIT",
      "PTL_NO_SPACE", "PTL_PID_IN_USE",  "PTL_PT_FULL",         "PTL_PT_EQ_NEEDED",  "PTL_PT_IN_USE",
      "PTL_ABORTED",  "PTL_SIZE_INVALID"};
  static_assert(kNames.size() == PTL_SIZE_INVALID + 1);
  return name_of(kNames, code);
}

const char* ptl_event_kind_str(ptl_event_kind_t kind) {
  static constexpr std::array kNames{"PTL_EVENT_GET",          "PTL_EVENT_GET_OVERFLOW",
                                     "PTL_EVENT_PUT",          "PTL_EVENT_PUT_OVERFLOW",
                                     "PTL_EVENT_ATOMIC",       "PTL_EVENT_ATOMIC_OVERFLOW",
                                     "PTL_EVENT_FETCH_ATOMIC", "PTL_EVENT_FETCH_ATOMIC_OVERFLOW",
                                     "PTL_EVENT_REPLY",        "PTL_EVENT_SEND",
                                     "PTL_EVENT_ACK",          "PTL_EVENT_PT_DISABLED",
                                     "PTL_EVENT_LINK",         "PTL_EVENT_AUTO_UNLINK",
                                     "PTL_EVENT_AUTO_FREE",    "PTL_EVENT_SEARCH"};
  static_assert(kNames.size() == PTL_EVENT_SEARCH + 1);
  return name_of(kNames, kind);
}

const char* ptl_fail_type_str(ptl_ni_fail_t fail) {
  static constexpr std::array kNames{"PTL_NI_OK",
                                     "PTL_NI_UNDELIVERABLE",
                                     "PTL_NI_DROPPED",
                                     "PTL_NI_PT_DISABLED",
                                     "PTL_NI_PERM_VIOLATION",
                                     "PTL_NI_OP_VIOLATION",
                                     "PTL_NI_NO_MATCH",
                                     "PTL_NI_SEGV"};
  static_assert(kNames.size() == PTL_NI_SEGV + 1);
  return name_of(kNames, fail);
}

}  // extern "C"
