// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/nic_state.hpp"

#include <cstdint>

// Which hazard words a thread announces its accesses in (hazard.hpp): one word of this process's in each
// peer's segment, and no other thread's while it lives. So any of kThreadWords threads goes the fast path,
// through whatever port. Threads beyond them share one word under a lock.
namespace orrery::nic {

inline constexpr std::uint32_t kThreadWords = 64;
static_assert(kThreadWords + 2 <= kHazardSlots + kMoreHazardSlots);

// The place of the calling thread's word plus one, in the top 16 bits; 0: it has none, or none yet. Grants
// carry it in their key: one that another thread was given does not match.
extern __attribute__((tls_model("initial-exec"))) constinit thread_local std::uint64_t t_thread_tag;
inline constexpr std::uint32_t kThreadTagShift = 48;

// Gives the thread a word if one is free. Its place, or kSharedHazardSlot.
std::uint32_t assign_thread_word();

inline std::uint32_t thread_hazard_slot() {
  const auto place = static_cast<std::uint32_t>(t_thread_tag >> kThreadTagShift);
  return place != 0 ? place - 1 : assign_thread_word();
}

}  // namespace orrery::nic
