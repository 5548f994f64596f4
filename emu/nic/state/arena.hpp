// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace orrery::nic {

// Gives out the arena of a NIC's segment: blocks of a power of two, used again by size. Only the owner
// allocates; others find a block by the offset that a unit's word names.
// Threads: any; a lock of its own, under which nothing else is taken.
// Invariant: a block never changes its use: a stalled producer may still try to swap an event into what was a
// ring.
// Usage: const std::uint64_t at = arena.take(bytes, Arena::Use::ring);  if (at == 0) return Errc::no_memory;
class Arena {
 public:
  enum class Use : std::uint8_t { ring, segment_list, records, receive_queue, unit };

  explicit Arena(const NicView& view);
  // Offset in the segment of a block of at least so many bytes, aligned to a cache line; 0 when there is no
  // room. What the block's last user left is still in it: of a `unit`, which keeps its own for good, nothing.
  std::uint64_t take(std::uint64_t bytes, Use use);
  // `bytes`: as they were asked for.
  void give_back(std::uint64_t offset, std::uint64_t bytes, Use use);

 private:
  static constexpr std::size_t kUses = 5;
  using FreeBlocks = std::array<std::vector<std::uint64_t>, 40>;  // by size class

  const std::uint64_t end_;
  Lock<LockRank::arena> mu_;
  std::uint64_t next_;                    // guarded by mu_
  std::array<FreeBlocks, kUses> free_{};  // by use, guarded by mu_
};

}  // namespace orrery::nic
