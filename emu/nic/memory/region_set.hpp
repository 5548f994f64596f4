// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/hazard_board.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <array>
#include <bit>
#include <cstdint>

namespace orrery::nic {

// Some of a process's registrations, by index. A value without memory of its own: made where nothing may be
// allocated. Threads: one at a time.
class RegionSet {
 public:
  void add(std::uint32_t index) { words_[index / 64] |= std::uint64_t{1} << index % 64; }
  bool has(std::uint32_t index) const {
    return index < kMaxRegions && (words_[index / 64] >> index % 64 & 1) != 0;
  }
  bool empty() const {
    for (const std::uint64_t word : words_)
      if (word != 0) return false;
    return true;
  }
  // Calls visit(index) for each, in order.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t bits = words_[i]; bits != 0; bits &= bits - 1)
        visit(i * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }
  // Whether a hazard word announces an access to one of them.
  bool named_by(std::uint64_t hazard) const {
    return hazard != 0 && has(static_cast<std::uint32_t>((hazard & ~kByAttach) - 1));
  }
  // The marks of all of them on the board of a host.
  std::uint64_t marks(std::uint32_t process_slot) const {
    std::uint64_t all = 0;
    for_each([&](std::uint32_t index) { all |= region_mark(process_slot, index); });
    return all;
  }

 private:
  std::array<std::uint64_t, kMaxRegions / 64> words_{};
};

}  // namespace orrery::nic
