// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What a client asks for the names of codes and events.
#include "lib/portals3/code_names.hpp"

#include <atomic>
#include <cstddef>
#include <cstdio>

#include <p3/debug.h>
#include <portals3.h>

namespace {

using orrery::portals3::kCodes;
using orrery::portals3::kEvents;

std::atomic<unsigned int> g_mask{0};

}  // namespace

extern "C" {

FILE* p3_out = nullptr;

// Programs index these themselves.
const char* ptl_err_str[PTL_MAX_ERRNO] = {ORRERY_PORTALS3_CODES};
const char* ptl_event_str[PTL_EVENT_UNLINK + 1] = {ORRERY_PORTALS3_EVENTS};

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
