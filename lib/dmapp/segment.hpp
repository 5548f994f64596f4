// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/initiator/fast_path.hpp"
#include "emu/nic/state/request.hpp"

#include "include/dmapp/dmapp.h"

#include <cstdint>

// What a segment's descriptor says beside address and length. It means the same in every PE of the job:
//
//   opaque[0]  63..8 kMark | 7..0 kind     [1] PE that made it     [2] name of the registration (memory)
//   opaque[3]  0                           [4] 0                   [5] sum of address, length and these
//
// Of the data segment and the heap each PE has its own registration, which all PEs know since the start: an
// address is taken as a distance from the descriptor's own, so that it names the same object in every PE.
// Pure functions; any thread.
namespace orrery::dmapp {

enum class SegKind : std::uint8_t {
  none = 0,
  data = 1,    // static variables
  heap = 2,    // the symmetric heap
  inside = 3,  // the library's own part of each PE; in no client's descriptor
  memory = 4,  // registered by a client
};
inline constexpr std::size_t kSymmetricKinds = 4;  // indices of those above that every PE has

namespace seg {

inline constexpr std::uint64_t kMark = 0x646d617070'5347;  // any 56 bits

constexpr std::uint64_t tag(SegKind kind) { return kMark << 8 | static_cast<std::uint64_t>(kind); }

inline std::uint64_t sum(const dmapp_seg_desc_t& d) {
  std::uint64_t value = 0x9e3779b97f4a7c15;
  const auto mix = [&value](std::uint64_t word) {
    value = (value ^ word) * 0xff51afd7ed558ccd;
    value ^= value >> 32;
  };
  mix(reinterpret_cast<std::uint64_t>(d.addr));
  mix(d.len);
  for (int i = 0; i < 5; ++i) mix(d.opaque[i]);
  return value;
}

inline dmapp_seg_desc_t make(SegKind kind, int pe, std::uint64_t address, std::uint64_t length,
                             const nic::MemKey& key) {
  dmapp_seg_desc_t d{};
  d.addr = reinterpret_cast<void*>(address);
  d.len = length;
  d.opaque[0] = tag(kind);
  d.opaque[1] = static_cast<std::uint64_t>(pe);
  d.opaque[2] = nic::key_word(key);
  d.opaque[5] = sum(d);
  return d;
}

// Whether some PE's library made it, as it is. A moment is well spent on it where a mistake would be dear;
// the fast path looks at the mark alone, and the NIC refuses what leads nowhere.
inline bool well_formed(const dmapp_seg_desc_t& d) {
  return (d.opaque[0] == tag(SegKind::data) || d.opaque[0] == tag(SegKind::heap) ||
          d.opaque[0] == tag(SegKind::memory)) &&
         d.opaque[5] == sum(d);
}

constexpr nic::MemKey key_of(std::uint64_t word) {
  nic::MemKey key;
  key.index = static_cast<std::uint16_t>(word);
  key.generation = static_cast<std::uint16_t>(word >> 16);
  key.process = static_cast<std::uint16_t>(word >> 32);
  return key;
}

}  // namespace seg
}  // namespace orrery::dmapp
