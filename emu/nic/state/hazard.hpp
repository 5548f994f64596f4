// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/nic_state.hpp"

#include <atomic>
#include <cstdint>

namespace orrery::nic {

// Words of a HazardLine by use. The first six belong to a thread each, as all of MoreHazards do; threads that
// have none share one under a lock (thread_word.hpp).
inline constexpr std::uint32_t kSharedHazardSlot = 6;
inline constexpr std::uint32_t kEngineHazardSlot = 7;
static_assert(kEngineHazardSlot < kHazardSlots);

// What a word of a HazardLine says: 0 nothing, else the registration's index plus one, and whether the access
// may be handed to the kernel (attach), where a change of mappings here does not stop it.
inline constexpr std::uint64_t kByAttach = std::uint64_t{1} << 32;
constexpr std::uint64_t hazard_word(std::uint32_t region) { return std::uint64_t{region} + 1; }
constexpr bool names_region(std::uint64_t word, std::uint32_t region) {
  return (word & ~kByAttach) == hazard_word(region);
}

// Asks is_it(word) for each word of a process in the segment of `nic`, until one is. Whether one was.
template <typename Is>
bool any_hazard(const NicView& nic, std::uint32_t process, Is is_it) {
  for (auto& word : nic.hazards(process).slot)
    if (is_it(word)) return true;
  // Acquire: a process sets its bit before its first announcement beyond its line.
  if ((nic.service().many_threads[process / 64].load(std::memory_order_acquire) >> process % 64 & 1) == 0)
    return false;
  for (auto& word : nic.more_hazards(process).slot)
    if (is_it(word)) return true;
  return false;
}

// Announces, for its lifetime, that this thread may touch the memory of one registration.
// The announcement is a plain store: the owner that withdraws a registration pays for the barrier
// (base/asymmetric_fence.hpp). Only where the kernel has none for us is the store a full barrier.
// REQUIRES: one live guard per word at a time.
class HazardGuard {
 public:
  // In line: on the fast paths the call costs as much as the announcement.
  [[gnu::always_inline]] HazardGuard(std::atomic<std::uint64_t>& word, std::uint32_t region, bool strong,
                                     std::uint64_t how = 0)
      : word_(word) {
    if (strong) [[unlikely]] {
      word_.exchange(hazard_word(region) | how, std::memory_order_seq_cst);
    } else {
      word_.store(hazard_word(region) | how, std::memory_order_relaxed);
      // Keeps the compiler from moving the following loads up; the processor is kept by the owner's
      // membarrier(2).
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  // Release: a thread that sees the word cleared sees our accesses finished.
  ~HazardGuard() { word_.store(0, std::memory_order_release); }
  HazardGuard(const HazardGuard&) = delete;
  HazardGuard& operator=(const HazardGuard&) = delete;

 private:
  std::atomic<std::uint64_t>& word_;
};

// The control word of an entry whose hazard was just announced.
inline std::uint64_t announced_word(MrtEntry& entry) {
  // Acquire: pairs with the owner's publication of the entry.
  const std::uint64_t word = entry.control.load(std::memory_order_acquire);
  if (entry.touched.load(std::memory_order_relaxed) != 0) return word;
  // First access by a peer: from now on its owner has to look for us before it withdraws. Either it sees this
  // mark, or the second look sees the entry free.
  entry.touched.exchange(1, std::memory_order_seq_cst);
  return entry.control.load(std::memory_order_seq_cst);
}

}  // namespace orrery::nic
