// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/device/device_status.hpp"
#include "lib/gni/queue/cq_entry.hpp"

#include <array>
#include <cstdio>
#include <cstring>

namespace {

namespace entry_of = orrery::gni::cq_entry;

constexpr std::array<const char*, 8> kSources{"NOT_DONE", "BTE",     "SSID",    "RMT",
                                              "DLA",      "UNKNOWN", "UNKNOWN", "UNKNOWN"};

// [source][info]
constexpr std::array<std::array<const char*, 4>, 8> kInfos{{
    {"NONE", "NONE", "NONE", "NONE"},
    {"TX_DONE", "TX_DONE_NO_SSID", "ENQ_STATUS", "UNKNOWN"},
    {"UNKNOWN", "CPLTN_SREQ", "CPLTN_DREQ", "CPLTN_SRSP"},
    {"CQWRITE", "CPLTN_SREQ", "CPLTN_DREQ", "CPLTN_SRSP"},
    {"ALLOC_STATUS", "DLA_MARKER", "UNKNOWN", "UNKNOWN"},
    {"UNKNOWN", "UNKNOWN", "UNKNOWN", "UNKNOWN"},
    {"UNKNOWN", "UNKNOWN", "UNKNOWN", "UNKNOWN"},
    {"UNKNOWN", "UNKNOWN", "UNKNOWN", "UNKNOWN"},
}};

}  // namespace

extern "C" {

gni_return_t GNI_CqErrorStr(gni_cq_entry_t entry, void* buffer, uint32_t len) {
  if (buffer == nullptr) return GNI_RC_INVALID_PARAM;
  const std::uint64_t source = entry_of::kSource.get(entry);
  char text[256];  // the longest names and both marks take under 100
  std::snprintf(text, sizeof text, "%s:%s:%s%s%s", kSources[source],
                orrery::gni::device_status_name(entry_of::kStatus.get(entry)),
                kInfos[source][entry_of::kInfo.get(entry)],
                entry_of::kOverrun.get(entry) != 0 ? ":OVERRUN" : "",
                entry_of::kRemoteOverrun.get(entry) != 0 ? ":REMOTE_OVERRUN" : "");
  const std::size_t bytes = std::strlen(text) + 1;
  if (bytes > len) return GNI_RC_SIZE_ERROR;
  std::memcpy(buffer, text, bytes);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CqErrorRecoverable(gni_cq_entry_t entry, uint32_t* recoverable) {
  if (recoverable == nullptr) return GNI_RC_INVALID_PARAM;
  const std::uint64_t code = entry_of::kStatus.get(entry);
  if (code == 0 || code >= orrery::gni::kDeviceStatusCount) return GNI_RC_INVALID_STATE;
  *recoverable = orrery::gni::device_status_recoverable(code) ? 1 : 0;
  return GNI_RC_SUCCESS;
}

}  // extern "C"
