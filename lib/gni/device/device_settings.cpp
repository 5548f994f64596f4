// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/host/runtime.hpp"
#include "lib/gni/domain/privileged.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/raw_value.hpp"
#include "lib/gni/status.hpp"

// Settings of the device, which here is the process's own.
namespace orrery::gni {

namespace {

constexpr std::uint32_t kInjectionFlags = GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_APPLY_AFTER_THROTTLE |
                                          GNI_BI_FLAG_USE_DEFAULT_SETTINGS |
                                          GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES;
constexpr std::uint32_t kApply = GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_APPLY_AFTER_THROTTLE;
constexpr nic::InjectionLimit kDefaultLimit;
static_assert(kDefaultLimit.percent == GNI_BI_BW_MAX && kDefaultLimit.entries == GNI_BI_ORB_MAX);

constexpr std::uint16_t entries_of(std::uint32_t percent) {
  return static_cast<std::uint16_t>(percent * GNI_BI_ORB_MAX / GNI_BI_BW_MAX);
}
constexpr std::uint16_t percent_of(std::uint32_t entries) {
  return static_cast<std::uint16_t>(entries * GNI_BI_BW_MAX / GNI_BI_ORB_MAX);
}

}  // namespace

}  // namespace orrery::gni

using orrery::gni::entries_of;
using orrery::gni::find;
using orrery::gni::percent_of;
using orrery::gni::return_of;

extern "C" {

gni_return_t GNI_SetBIConfig(uint32_t device_id, uint16_t bw, uint16_t aot_bw, uint16_t modes) {
  const bool in_entries = (modes & GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES) != 0;
  const std::uint32_t most = in_entries ? GNI_BI_ORB_MAX : GNI_BI_BW_MAX;
  const bool defaults = (modes & GNI_BI_FLAG_USE_DEFAULT_SETTINGS) != 0;
  if ((modes & ~orrery::gni::kInjectionFlags) != 0 || (modes & orrery::gni::kApply) == orrery::gni::kApply ||
      (!defaults && (bw > most || aot_bw > most)))
    return GNI_RC_INVALID_PARAM;
  if (device_id != 0) return GNI_RC_NO_MATCH;
  if (!orrery::gni::is_privileged()) return GNI_RC_PERMISSION_ERROR;
  const auto runtime = orrery::nic::Runtime::of_process();
  if (!runtime.ok()) return return_of(runtime.code());
  orrery::nic::InjectionLimit limit = orrery::gni::kDefaultLimit;
  if (!defaults) {
    limit.percent = in_entries ? percent_of(bw) : bw;
    limit.aot_percent = in_entries ? percent_of(aot_bw) : aot_bw;
    limit.entries = in_entries ? bw : entries_of(bw);
  }
  limit.flags = modes;
  runtime.value()->nic().device().registers.set_injection(limit);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetBIConfig(uint32_t device_id, gni_bi_desc_t* desc) {
  if (desc == nullptr) return GNI_RC_INVALID_PARAM;
  if (device_id != 0) return GNI_RC_NO_MATCH;
  const auto runtime = orrery::nic::Runtime::of_process();
  if (!runtime.ok()) return return_of(runtime.code());
  const orrery::nic::DeviceRegisters& registers = runtime.value()->nic().device().registers;
  const orrery::nic::InjectionLimit limit = registers.injection();
  *desc = {.current_bw = limit.percent,
           .current_aot_bw = limit.aot_percent,
           .current_norbs = limit.entries,
           .flags = limit.flags,
           .sys_def_bw = orrery::gni::kDefaultLimit.percent,
           .sys_def_aot_bw = orrery::gni::kDefaultLimit.aot_percent,
           .cle_seqnum = registers.injection_changes(),
           .hss_seqnum = 0};
  return GNI_RC_SUCCESS;
}

// New settings are in force when the call that makes them returns: nothing is being throttled.
gni_return_t GNI_BISyncWait(uint32_t device_id, uint32_t /*timeout*/) {
  return device_id == 0 ? GNI_RC_SUCCESS : GNI_RC_NO_MATCH;
}

gni_return_t GNI_SetDeviceOrbMMR(gni_nic_handle_t nic_hndl, gni_dev_orb_mmr_t orb_mmr_type,
                                 uint64_t new_orb_mmr_value, uint64_t* old_orb_mmr_value) {
  auto* const attachment = find(nic_hndl);
  if (attachment == nullptr || old_orb_mmr_value == nullptr ||
      orrery::gni::raw_value(orb_mmr_type) != GNI_DEV_ORB_MMR_TIMEOUT)
    return GNI_RC_INVALID_PARAM;
  if (!orrery::gni::is_privileged()) return GNI_RC_PERMISSION_ERROR;
  *old_orb_mmr_value = attachment->nic->device().registers.exchange_request_timeout(new_orb_mmr_value);
  return GNI_RC_SUCCESS;
}

}  // extern "C"
