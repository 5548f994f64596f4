// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/nic_state.hpp"
#include "emu/nic/state/request.hpp"

#include <cstdint>

// Memory that is named by number: a client that keeps 8 bytes of a handle has the number of the entry (the
// machines' MDH) and an address, and nothing that tells one registration of that entry from the next. Asked
// by the initiator where the target's entries can be seen, by the target elsewhere. Pure reads; any thread.
namespace orrery::nic {

// What stands there. `index` is kMaxRegions when nothing does.
struct NumberedEntry {
  std::uint32_t index = kMaxRegions;
  std::uint64_t control = 0;
};

inline NumberedEntry find_numbered(const NicView& nic, std::uint16_t domain, std::uint16_t number,
                                   bool is_virtual) {
  if (number >= kMaxRegions) return {};
  // Acquire: pairs with the owner's publication of the entry.
  const std::uint64_t own = nic.region(number).control.load(std::memory_order_acquire);
  if (!is_virtual) {
    if (control::state(own) == RegionState::free) return {};
    return {number, own};
  }
  // A reserved entry mostly stands where its number says.
  const auto is_it = [&](std::uint32_t index, std::uint64_t word) {
    return control::state(word) != RegionState::free && control::domain(word) == domain &&
           nic.region(index).reserved_as.load(std::memory_order_relaxed) == number + 1u;
  };
  if (is_it(number, own)) return {number, own};
  for (std::uint32_t index = 0; index < kMaxRegions; ++index) {
    const std::uint64_t word = nic.region(index).control.load(std::memory_order_acquire);
    if (is_it(index, word)) return {index, word};
  }
  return {};
}

// The target's address for a client that has no more than a number: that address where it lies in the
// registration, else an offset from its start.
inline std::uint64_t address_by_number(const MrtEntry& entry, std::uint64_t control_word,
                                       std::uint64_t address) {
  if ((control::flags(control_word) & kSegmented) != 0) return address;
  if (address >= entry.begin.load(std::memory_order_relaxed)) return address;
  return entry.base.load(std::memory_order_relaxed) + address;
}

}  // namespace orrery::nic
