// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <string>

namespace orrery::tool {

// Why the wire between hosts cannot be opened with this provider and interface on this host; "" when it can,
// or when that could not be found out. Empty arguments: whatever the wire would choose. Tried in a process of
// its own, since a provider leaves threads behind. Waits for that process, 20 s at most.
std::string why_no_wire(const std::string& provider, const std::string& interface);

}  // namespace orrery::tool
