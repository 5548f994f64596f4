// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Room for joins that come later than their posts: those of a program with a modelled clock.
#include "emu/nic/collective/collective_engine.hpp"

namespace orrery::nic {

bool CollectiveEngine::reserve(CeEdge& edge, std::uint64_t reduction) {
  const auto lane = static_cast<std::uint32_t>(reduction % kCeLanes);
  // Acquire: one that arrived has armed its record before it took its bit back.
  if ((std::atomic_ref(edge.under_way).fetch_or(1u << lane, std::memory_order_acquire) >> lane & 1) != 0)
    return false;
  const VceState* const vce = edge.path == nullptr ? nullptr : edge.path->levels[0].vce;
  std::uint32_t taken = reserved_.fetch_add(1, std::memory_order_relaxed) + 1;
  bool free = true;
  for (std::uint32_t i = 0; i < used_.load(std::memory_order_acquire); ++i) {
    Record& one = records_[i];
    one.lock.lock();
    if (one.armed.load(std::memory_order_relaxed)) {
      ++taken;
      const bool same = one.path != nullptr
                            ? one.path->levels[0].vce == vce
                            : edge.owner != nullptr && one.owner == edge.owner && one.edge_id == edge.id;
      // The same reduction again goes on its way, to be refused as a duplicate.
      if (same && one.child == edge.child && one.lane == lane && one.join.value.reduction != reduction)
        free = false;
    }
    one.lock.unlock();
  }
  if (free && taken <= kRecords) return true;
  arrived(edge, reduction);
  return false;
}

void CollectiveEngine::arrived(CeEdge& edge, std::uint64_t reduction) {
  reserved_.fetch_sub(1, std::memory_order_relaxed);
  // Release: as reserve().
  std::atomic_ref(edge.under_way).fetch_and(~(1u << reduction % kCeLanes), std::memory_order_release);
}

}  // namespace orrery::nic
