// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/device/statistics.hpp"

#include "lib/gni/objects.hpp"
#include "lib/gni/raw_value.hpp"

using orrery::gni::find;
using orrery::gni::raw_value;

extern "C" {

gni_return_t GNI_GetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat, uint32_t* value) {
  const auto* const attachment = find(nic_hndl);
  const std::uint32_t which = raw_value(stat);
  if (attachment == nullptr || value == nullptr || which >= orrery::gni::kStatistics)
    return GNI_RC_INVALID_PARAM;
  std::uint32_t counted = attachment->statistics.value(which);
  if (which == orrery::gni::kFmaLaunchCount) {
    for (const auto& window : attachment->windows) counted += window->launches();
  }
  if (which == GNI_STAT_SMSG_RETRANS_COUNT)
    counted += attachment->port->retransmitted.load(std::memory_order_relaxed);
  *value = counted;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_ResetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat) {
  auto* const attachment = find(nic_hndl);
  const std::uint32_t which = raw_value(stat);
  if (attachment == nullptr || which >= orrery::gni::kStatistics) return GNI_RC_INVALID_PARAM;
  attachment->statistics.reset(which);
  if (which == orrery::gni::kFmaLaunchCount) {
    for (const auto& window : attachment->windows) window->forget_launches();
  }
  if (which == GNI_STAT_SMSG_RETRANS_COUNT)
    attachment->port->retransmitted.store(0, std::memory_order_relaxed);
  return GNI_RC_SUCCESS;
}

}  // extern "C"
