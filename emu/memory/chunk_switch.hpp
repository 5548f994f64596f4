// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/memory/process_state.hpp"
#include "emu/memory/range.hpp"

namespace orrery::memory {

// Largest piece that is switched at once. Where system calls wait, 256 KiB: writers are held for about 0.1 ms
// and the fixed cost (6 system calls, 15 us) is small beside the copy. Where system calls may fail with
// EFAULT, 16 KiB.
inline constexpr std::uint64_t kChunkWhereCallsWait = 256 << 10;
inline constexpr std::uint64_t kChunkWhereCallsFail = 16 << 10;
std::uint64_t chunk_bytes(const ProcessState& state, const Mapping& mapping);

// Moves one chunk into the file. REQUIRES: page-aligned, at most chunk_bytes. `bulk`, `continues`: see
// Extent. Takes the locks. Errc::not_done: the mapping changed meanwhile, look again; Errc::no_resource:
// extent budget or mapping limit; Errc::no_memory. After an error the chunk is as it was.
Status switch_in(ProcessState& state, Range chunk, bool bulk, bool continues);

// Moves one chunk out of the file. Same errors.
Status switch_out(ProcessState& state, Range chunk);

}  // namespace orrery::memory
