// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/common/handle_table.hpp"

#include <cstdint>

namespace orrery::gni {

enum class HandleKind : std::uint8_t {
  none = 0,
  cdm = 1,
  nic = 2,
  ep = 3,
  cq = 4,
  err = 5,
  msgq = 6,
  ce = 7,
  comp_chan = 8,
  dqueue = 9,
};

using HandleTable = common::TypedHandleTable<HandleKind>;

namespace detail {
// Hidden, so that a lookup needs no indirection; never destroyed, so that exit handlers may still call us.
extern HandleTable g_handles __attribute__((visibility("hidden")));
}  // namespace detail

// The table of this process.
inline HandleTable& handles() { return detail::g_handles; }

}  // namespace orrery::gni
