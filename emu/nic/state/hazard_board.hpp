// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/nic_state.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace orrery::nic {

// Announcements of accesses to many targets at once, in memory that all processes of a host share: where a
// HazardLine says to one target which registration is touched, a word here says to all of them that some are.
// So a row of an FMA window costs one announcement, whatever the number of its targets, and one look: at
// `withdrawals`, which every owner counts up when it takes back what peers were granted.
//
//   0     withdrawals   any owner
//   64    Line[1024]    what each process slot is touching right now; that process writes
//
// A word: 63..32 marks of the registrations it may touch | 31..1 changes with every access | 0 under way.
struct HazardBoard {
  struct alignas(kCacheLine) Line {
    std::atomic<std::uint64_t> port[kHazardSlots];
  };
  alignas(kCacheLine) std::atomic<std::uint64_t> withdrawals;
  Line lines[kMaxProcesses];
};
static_assert(offsetof(HazardBoard, lines) == 64 && sizeof(HazardBoard) == 64 + kMaxProcesses * 64);

// The first entry that a process hands out. They lie at different offsets of their tables, for the reason
// that hazard lines do.
constexpr std::uint32_t first_region(std::uint32_t process_slot) { return process_slot * 11 + 1; }

// Few bits for many registrations: owners wait for some accesses that are none of theirs. PEs that register
// the same things in the same order find theirs under the same mark.
constexpr std::uint64_t region_mark(std::uint32_t process_slot, std::uint32_t region) {
  return std::uint64_t{1} << (32 + (region - first_region(process_slot)) % 32);
}
constexpr bool may_touch(std::uint64_t word, std::uint64_t mark) {
  return (word & 1) != 0 && (word & mark) != 0;
}

// As HazardGuard, for all registrations under the marks. REQUIRES: as there; no target has strong_hazards.
class BoardGuard {
 public:
  BoardGuard(std::atomic<std::uint64_t>& word, std::uint64_t marks)
      : word_(word),
        announced_(static_cast<std::uint32_t>(word.load(std::memory_order_relaxed) + 1) | marks) {
    // Release: an owner that finds this one knows that the access before it is over.
    word_.store(announced_, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // as in HazardGuard
  }
  ~BoardGuard() { word_.store(announced_ + 1, std::memory_order_release); }
  BoardGuard(const BoardGuard&) = delete;
  BoardGuard& operator=(const BoardGuard&) = delete;

 private:
  std::atomic<std::uint64_t>& word_;
  const std::uint64_t announced_;
};

}  // namespace orrery::nic
