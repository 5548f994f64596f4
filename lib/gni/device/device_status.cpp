// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/device/device_status.hpp"

#include "emu/base/check.hpp"

#include <array>

namespace orrery::gni {
namespace {

struct Row {
  const char* name;
  bool recoverable;
};

constexpr std::array<Row, kDeviceStatusCount> kRows{{
    {"OKAY", false},                      // 0x00
    {"REQ_DISABLED", false},              // 0x01
    {"REQ_ILLEGAL_CMD", false},           // 0x02
    {"REQ_ILLEGAL_ADDR", false},          // 0x03
    {"REQ_ILLEGAL_SIZE", false},          // 0x04
    {"REQ_INSUFFICIENT_PRIV", false},     // 0x05
    {"PKT_MALFORMED_CMD", true},          // 0x06
    {"PKT_MALFORMED_ADDR", true},         // 0x07
    {"PKT_MALFORMED_SIZE", true},         // 0x08
    {"PKT_MALFORMED_RESERVED", true},     // 0x09
    {"PKT_MISROUTED", false},             // 0x0a
    {"DATA_ERR", true},                   // 0x0b
    {"DATA_POISON", false},               // 0x0c
    {"AT_VMDHCAM_MALFORMED", false},      // 0x0d
    {"AT_MDD_UNCORRECTABLE", false},      // 0x0e
    {"AT_MDD_INV", false},                // 0x0f
    {"AT_MDD_MALFORMED", false},          // 0x10
    {"AT_MDD_WR_PERMISSION_ERR", false},  // 0x11
    {"AT_BOUNDS_ERR", false},             // 0x12
    {"AT_PTT_UNCORRECTABLE", false},      // 0x13
    {"AT_PROTECTION_ERR", false},         // 0x14
    {"AT_TCE_UNCORRECTABLE", false},      // 0x15
    {"AT_TCE_INV", false},                // 0x16
    {"AT_PF_UNCORRECTABLE", false},       // 0x17
    {"AT_PF_TIMEOUT", true},              // 0x18
    {"AT_PF_INV", false},                 // 0x19
    {"AT_PF_MALFORMED", false},           // 0x1a
    {"AT_PF_RD_PERMISSION_ERR", false},   // 0x1b
    {"AT_PF_WR_PERMISSION_ERR", false},   // 0x1c
    {"AT_UNCORRECTABLE", true},           // 0x1d
    {"PE_BOUNDS_ERR", false},             // 0x1e
    {"FMA_UNCORRECTABLE", false},         // 0x1f
    {"DLA_OVERFLOW", true},               // 0x20
    {"BTE_UNCORRECTABLE", true},          // 0x21
    {"BTE_SEQUENCE_TERMINATE", true},     // 0x22
    {"BTE_TIMEOUT", true},                // 0x23
    {"MSG_PROTOCOL_ERR", false},          // 0x24
    {"SSID_UNCORRECTABLE", false},        // 0x25
    {"SSID_PKT_MALFORMED_SIZE", true},    // 0x26
    {"SSID_TIMEOUT", true},               // 0x27
    {"RMT_DESC_UNCORRECTABLE", true},     // 0x28
    {"RMT_DESC_UNAVAILABLE", true},       // 0x29
    {"RMT_SEQTBL_UNCORRECTABLE", true},   // 0x2a
    {"RMT_CAM_UNCORRECTABLE", true},      // 0x2b
    {"RMT_SEQTBL_UNAVAILABLE", true},     // 0x2c
    {"RMT_BUF_OVERRUN", false},           // 0x2d
    {"RMT_TIMEOUT", true},                // 0x2e
    {"CQ_OVERRUN", true},                 // 0x2f
    {"CQ_ERR", false},                    // 0x30
    {"CE_UNCORRECTABLE", false},          // 0x31
    {"CE_OPERATION_UNEXPECTED", false},   // 0x32
    {"CE_JOIN_DUPLICATE", false},         // 0x33
    {"CE_JOIN_CHILD_INV", false},         // 0x34
    {"CE_JOIN_INCONSISTENT", false},      // 0x35
    {"CE_PROTECTION_ERR", false},         // 0x36
    {"CE_REDUCTION_ID_MISMATCH", false},  // 0x37
    {"AMO_CACHE_ERR", false},             // 0x38
    {"ORB_TIMEOUT", true},                // 0x39
    {"PI_ERR", false},                    // 0x3a
    {"PI_TIMEOUT", true},                 // 0x3b
    {"WC_TAG_UNCORRECTABLE", true},       // 0x3c
    {"ENDPOINT_UNREACHABLE", true},       // 0x3d
}};

// One row per Errc, in its order.
constexpr std::array<DeviceStatus, kErrcCount> kOfErrc{
    DeviceStatus::okay,                      // ok
    DeviceStatus::rmt_desc_unavailable,      // not_done
    DeviceStatus::rmt_desc_unavailable,      // no_resource
    DeviceStatus::rmt_desc_unavailable,      // no_memory
    DeviceStatus::req_illegal_cmd,           // invalid_param
    DeviceStatus::req_illegal_cmd,           // invalid_state
    DeviceStatus::req_illegal_addr,          // alignment
    DeviceStatus::at_mdd_wr_permission_err,  // permission
    DeviceStatus::endpoint_unreachable,      // no_match
    DeviceStatus::req_illegal_size,          // size
    DeviceStatus::orb_timeout,               // timeout
    DeviceStatus::req_illegal_cmd,           // illegal_op
    DeviceStatus::at_bounds_err,             // bounds
    DeviceStatus::at_mdd_inv,                // invalid_handle
    DeviceStatus::endpoint_unreachable,      // unreachable
    DeviceStatus::cq_overrun,                // overrun
    DeviceStatus::data_err,                  // corrupt
    DeviceStatus::req_insufficient_priv,     // unsupported
    DeviceStatus::pi_err,                    // system
    DeviceStatus::bte_sequence_terminate,    // terminated
    DeviceStatus::at_protection_err,         // protection
    DeviceStatus::ce_join_duplicate,         // duplicate: of children of an engine
};

}  // namespace

const char* device_status_name(std::uint64_t code) {
  return code < kRows.size() ? kRows[code].name : "UNKNOWN";
}

bool device_status_recoverable(std::uint64_t code) {
  ORRERY_CHECK(code != 0 && code < kRows.size(), "device status {}", code);
  return kRows[code].recoverable;
}

DeviceStatus device_status_of(Errc code) {
  const auto index = static_cast<std::size_t>(code);
  return index < kOfErrc.size() ? kOfErrc[index] : DeviceStatus::pi_err;
}

}  // namespace orrery::gni
