// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <unistd.h>

namespace orrery::gni {

// Whether the caller may do what the interface keeps for the system: configure jobs and devices.
inline bool is_privileged() { return geteuid() == 0; }

}  // namespace orrery::gni
