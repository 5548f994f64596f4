// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstddef>

namespace orrery {

// memcpy for the blocks that a transfer moves. Between 2 and 16 KiB the C library may use the processor's
// string instruction, whose start no other work overlaps (11 ns of 58 for 4 KiB, with 17 ns of other work
// between the copies); where the processor has 32-byte vectors, this copies those sizes by them. All other
// sizes are memcpy's. `to` and `from` do not overlap. Safe from any thread.
void copy_block(void* to, const void* from, std::size_t bytes);

}  // namespace orrery
