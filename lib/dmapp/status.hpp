// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include "include/dmapp/dmapp.h"

#include <array>

// The one table from the emulator's outcomes to DMAPP's.
namespace orrery::dmapp {

inline constexpr std::array<dmapp_return_t, kErrcCount> kReturnOfErrc{
    DMAPP_RC_SUCCESS,            // ok
    DMAPP_RC_NOT_DONE,           // not_done
    DMAPP_RC_RESOURCE_ERROR,     // no_resource
    DMAPP_RC_RESOURCE_ERROR,     // no_memory
    DMAPP_RC_INVALID_PARAM,      // invalid_param
    DMAPP_RC_INVALID_PARAM,      // invalid_state
    DMAPP_RC_ALIGNMENT_ERROR,    // alignment
    DMAPP_RC_PERMISSION_ERROR,   // permission
    DMAPP_RC_NOT_FOUND,          // no_match
    DMAPP_RC_NO_SPACE,           // size
    DMAPP_RC_TRANSACTION_ERROR,  // timeout
    DMAPP_RC_NOT_SUPPORTED,      // illegal_op
    DMAPP_RC_NOT_FOUND,          // bounds
    DMAPP_RC_TRANSACTION_ERROR,  // invalid_handle: the registration is gone
    DMAPP_RC_TRANSACTION_ERROR,  // unreachable
    DMAPP_RC_RESOURCE_ERROR,     // overrun
    DMAPP_RC_TRANSACTION_ERROR,  // corrupt
    DMAPP_RC_NOT_SUPPORTED,      // unsupported
    DMAPP_RC_RESOURCE_ERROR,     // system
    DMAPP_RC_TRANSACTION_ERROR,  // terminated
    DMAPP_RC_PERMISSION_ERROR,   // protection
};

constexpr dmapp_return_t return_of(Errc code) {
  const auto index = static_cast<std::size_t>(code);
  return index < kReturnOfErrc.size() ? kReturnOfErrc[index] : DMAPP_RC_TRANSACTION_ERROR;
}

}  // namespace orrery::dmapp
