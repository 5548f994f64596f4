// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Names of codes and events.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>

#include <p3/debug.h>
#include <portals3.h>

namespace {

constexpr std::array kCodes = {"PTL_OK",
                               "PTL_AC_INDEX_INVALID",
                               "PTL_EQ_DROPPED",
                               "PTL_EQ_EMPTY",
                               "PTL_EQ_INVALID",
                               "PTL_FAIL",
                               "PTL_HANDLE_INVALID",
                               "PTL_IFACE_INVALID",
                               "PTL_MD_ILLEGAL",
                               "PTL_MD_INVALID",
                               "PTL_MD_IN_USE",
                               "PTL_MD_NO_UPDATE",
                               "PTL_ME_INVALID",
                               "PTL_ME_IN_USE",
                               "PTL_ME_LIST_TOO_LONG",
                               "PTL_NI_INVALID",
                               "PTL_NO_INIT",
                               "PTL_NO_SPACE",
                               "PTL_PID_INVALID",
                               "PTL_PROCESS_INVALID",
                               "PTL_PT_FULL",
                               "PTL_PT_INDEX_INVALID",
                               "PTL_SEGV",
                               "PTL_SR_INDEX_INVALID",
                               "PTL_UNKNOWN_ERROR"};
static_assert(kCodes.size() == PTL_UNKNOWN_ERROR + 1);

constexpr std::array kEvents = {"PTL_EVENT_GET_START",   "PTL_EVENT_GET_END",      "PTL_EVENT_PUT_START",
                                "PTL_EVENT_PUT_END",     "PTL_EVENT_GETPUT_START", "PTL_EVENT_GETPUT_END",
                                "PTL_EVENT_REPLY_START", "PTL_EVENT_REPLY_END",    "PTL_EVENT_SEND_START",
                                "PTL_EVENT_SEND_END",    "PTL_EVENT_ACK",          "PTL_EVENT_UNLINK"};
static_assert(kEvents.size() == PTL_EVENT_UNLINK + 1);

std::atomic<unsigned int> g_mask{0};

}  // namespace

extern "C" {

FILE* p3_out = nullptr;

const char* PtlErrorStr(int code) {
  return code >= 0 && static_cast<std::size_t>(code) < kCodes.size() ? kCodes[static_cast<std::size_t>(code)]
                                                                     : "no code of Portals 3";
}

const char* PtlNIFailStr(ptl_handle_ni_t, ptl_ni_fail_t fail) {
  return fail == PTL_NI_OK ? "PTL_NI_OK" : fail == PTL_NI_FAIL ? "PTL_NI_FAIL" : "no failure of Portals 3";
}

const char* PtlEventKindStr(ptl_event_kind_t kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < kEvents.size() ? kEvents[index] : "no event of Portals 3";
}

unsigned int PtlNIDebug(ptl_handle_ni_t, unsigned int mask) { return g_mask.exchange(mask); }

}  // extern "C"
