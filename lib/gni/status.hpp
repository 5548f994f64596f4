// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include "include/gni/gni_pub.h"

#include <array>

// The one table from the emulator's outcomes to uGNI's: what a call returns when the NIC answers so. (What an
// event says of an operation that failed later is device_status.hpp's.)
namespace orrery::gni {

inline constexpr std::array<gni_return_t, kErrcCount> kReturnOfErrc{
    GNI_RC_SUCCESS,            // ok
    GNI_RC_NOT_DONE,           // not_done
    GNI_RC_ERROR_RESOURCE,     // no_resource
    GNI_RC_ERROR_NOMEM,        // no_memory
    GNI_RC_INVALID_PARAM,      // invalid_param
    GNI_RC_INVALID_STATE,      // invalid_state
    GNI_RC_ALIGNMENT_ERROR,    // alignment
    GNI_RC_PERMISSION_ERROR,   // permission
    GNI_RC_NO_MATCH,           // no_match
    GNI_RC_SIZE_ERROR,         // size
    GNI_RC_TIMEOUT,            // timeout
    GNI_RC_ILLEGAL_OP,         // illegal_op
    GNI_RC_INVALID_PARAM,      // bounds: of the local registration
    GNI_RC_INVALID_PARAM,      // invalid_handle
    GNI_RC_TRANSACTION_ERROR,  // unreachable
    GNI_RC_ERROR_RESOURCE,     // overrun
    GNI_RC_TRANSACTION_ERROR,  // corrupt
    GNI_RC_ILLEGAL_OP,         // unsupported
    GNI_RC_ERROR_RESOURCE,     // system
    GNI_RC_TRANSACTION_ERROR,  // terminated
    GNI_RC_INVALID_PARAM,      // protection: a handle of another attachment's domain
    GNI_RC_INVALID_STATE,      // duplicate
};

constexpr gni_return_t return_of(Errc code) {
  const auto index = static_cast<std::size_t>(code);
  return index < kReturnOfErrc.size() ? kReturnOfErrc[index] : GNI_RC_TRANSACTION_ERROR;
}
constexpr gni_return_t return_of(Status status) { return return_of(status.code()); }

}  // namespace orrery::gni
