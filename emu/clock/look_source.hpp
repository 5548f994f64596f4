// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>

namespace orrery::clock {

// A source that a program looks at (Clock::idle), of which a look takes no time: wire-up takes none, and
// progress engines look for it at every so many of their rounds, counted from where the launcher let them go.
inline const void* free_source(const void* source) {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(source) | 1);
}
inline bool is_free_source(const void* source) { return (reinterpret_cast<std::uintptr_t>(source) & 1) != 0; }

}  // namespace orrery::clock
