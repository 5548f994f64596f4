// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <cstdint>

// May this packet touch that memory? One rule, asked by the process that holds the packet.
namespace orrery::nic {

struct Segment {
  std::uint64_t address;
  std::uint64_t length;
};

// `word` is the entry's control word, read once by the caller. Source of the order of the checks: a stale key
// says nothing about the memory, so it is refused first; then the domain; then permission; then bounds.
// Returns ok, invalid_handle, protection, permission or bounds.
inline Errc check_access(const MrtEntry& entry, std::uint64_t word, std::uint16_t generation,
                         std::uint16_t domain, std::uint64_t address, std::uint64_t length, bool writes) {
  if (control::generation(word) != generation || control::state(word) == RegionState::free) [[unlikely]] {
    return Errc::invalid_handle;
  }
  if (control::domain(word) != domain) [[unlikely]]
    return Errc::protection;
  if (writes && (control::flags(word) & kReadOnly) != 0) [[unlikely]]
    return Errc::permission;
  const std::uint64_t begin = entry.begin.load(std::memory_order_relaxed);
  const std::uint64_t end = entry.end.load(std::memory_order_relaxed);
  if (address < begin || address > end || length > end - address) [[unlikely]]
    return Errc::bounds;
  return Errc::ok;
}

}  // namespace orrery::nic
