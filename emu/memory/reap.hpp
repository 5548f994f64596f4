// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/memory/process_state.hpp"

namespace orrery::memory {

// Empties the pages of the memory file that no mapping of this process shows any more, and makes the table of
// extents what the kernel says. REQUIRES: the caller holds ProcessState::switching.
void reap_unmapped(ProcessState& state);

// For an adoption that found no room: reaps unless that was tried moments ago. Whether the budget has room
// now. REQUIRES: as above.
bool reap_for_room(ProcessState& state);

}  // namespace orrery::memory
