// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/handle_table.hpp"

namespace orrery::gni {

// All zero bytes: it takes no room in the library file.
constinit HandleTable detail::g_handles;

}  // namespace orrery::gni
