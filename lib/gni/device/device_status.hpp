// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <cstdint>

// The status codes of the Aries NIC, six bits of a completion event, with their names and whether posting
// again may help. (docs/sources.md, uGNI, Chosen here.)
namespace orrery::gni {

// The codes that this library gives or tests; the table knows all 62.
enum class DeviceStatus : std::uint8_t {
  okay = 0x00,
  req_illegal_cmd = 0x02,
  req_illegal_addr = 0x03,
  req_illegal_size = 0x04,
  req_insufficient_priv = 0x05,
  data_err = 0x0b,
  at_mdd_inv = 0x0f,
  at_mdd_wr_permission_err = 0x11,
  at_bounds_err = 0x12,
  at_protection_err = 0x14,
  dla_overflow = 0x20,
  bte_sequence_terminate = 0x22,
  rmt_desc_unavailable = 0x29,
  cq_overrun = 0x2f,
  orb_timeout = 0x39,
  pi_err = 0x3a,
  ce_join_duplicate = 0x33,
  endpoint_unreachable = 0x3d,
};
inline constexpr int kDeviceStatusCount = 0x3e;

// Name of a code, "AT_MDD_INV"; "UNKNOWN" for the two codes beyond the table.
const char* device_status_name(std::uint64_t code);

// REQUIRES: code < kDeviceStatusCount and not 0, for which the question has no answer.
bool device_status_recoverable(std::uint64_t code);

// What the device would have said to an operation that ended like this. Total.
DeviceStatus device_status_of(Errc code);

}  // namespace orrery::gni
