// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <cstdint>
#include <span>

// How the hardware names a byte of another node's memory, and how a job's own numbering of nodes becomes the
// machine's. Pure functions.
namespace orrery::nic {

// A network address: 70 bits. (The Cascade paper, section IV A: an 18-bit PE, a 12-bit field that names a
// registered segment there, a 40-bit offset into it.)
inline constexpr unsigned kPeBits = 18;
inline constexpr unsigned kHandleBits = 12;
inline constexpr unsigned kOffsetBits = 40;
struct NetworkAddress {
  std::uint32_t pe = 0;
  std::uint32_t handle = 0;
  std::uint64_t offset = 0;

  constexpr bool fits() const {
    return pe >> kPeBits == 0 && handle >> kHandleBits == 0 && offset >> kOffsetBits == 0;
  }
};

// What an FMA Launch writes besides its data: where to. PE and offset share one word.
constexpr std::uint64_t launch_word(std::uint32_t pe, std::uint64_t offset) {
  return std::uint64_t{pe} << kOffsetBits | offset;
}
constexpr std::uint32_t launch_pe(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> kOffsetBits);
}
constexpr std::uint64_t launch_offset(std::uint64_t word) {
  return word & ((std::uint64_t{1} << kOffsetBits) - 1);
}

// The node translation table of a job: its virtual PEs are numbered from 0, `group` of them to an entry; an
// entry is the machine's address of the first one of its group, and the others follow it. So a job runs on
// nodes that do not, as if they did. A value; the table is the caller's.
struct NodeTranslation {
  std::span<const std::uint32_t> groups;
  std::uint32_t group = 1;  // nodes of an entry, a power of two

  // Errors: invalid_param (group is no power of two), bounds (no such virtual PE, or one beyond 18 bits).
  constexpr Result<std::uint32_t> physical(std::uint32_t pe) const {
    if (group == 0 || (group & (group - 1)) != 0) return Errc::invalid_param;
    const std::uint32_t entry = pe / group;
    if (entry >= groups.size()) return Errc::bounds;
    const std::uint64_t address = std::uint64_t{groups[entry]} + pe % group;
    if (address >> kPeBits != 0) return Errc::bounds;
    return static_cast<std::uint32_t>(address);
  }
};

}  // namespace orrery::nic
