// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/transport/hot_memory.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/nic/state/extent_state.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

namespace orrery::nic {

ORRERY_TIMED_PATH void HotMemory::count(Peer& peer, const MemKey& key, std::uint64_t address) {
  if ((key.flags & kSpace) != 0) return count_extent(peer, address);
  std::uint32_t* const count_word = peer.hits.of(key.index);
  if (count_word == nullptr) return;
  const std::atomic_ref<std::uint32_t> word(*count_word);
  const std::uint32_t seen = word.load(std::memory_order_relaxed);
  const std::uint32_t generation = std::uint32_t{key.generation} << 16;
  const std::uint32_t hits = (seen & 0xffff'0000) == generation ? (seen & 0xffff) + 1 : 1;
  if (hits > 0xffff) return;
  word.store(generation | hits, std::memory_order_relaxed);
  if (hits == adopt_after_) ask(peer, key);
}

void HotMemory::ask(const Peer& peer, const MemKey& key) {
  auto& wanted = peer.link.nic.service().adoption_wanted[key.index / 64];
  wanted.fetch_or(1ull << key.index % 64, std::memory_order_seq_cst);
  services_.ring(peer.link.process);
}

// The same of a whole address space, for the extent. One that cannot be moved is asked for less and less.
void HotMemory::count_extent(Peer& peer, std::uint64_t address) {
  const std::uint64_t extent = extent_word::extent_of(address);
  auto& word = peer.extent_hits[extent % peer.extent_hits.size()];
  const std::uint64_t seen = word.load(std::memory_order_relaxed);
  const std::uint64_t hits = seen >> 16 == extent ? (seen & 0xffff) + 1 : 1;
  if (hits > 0xffff) return;
  word.store(extent << 16 | hits, std::memory_order_relaxed);
  const std::uint64_t every = std::max(adopt_after_, 1u);
  if (hits % every != 0 || !std::has_single_bit(hits / every)) return;
  want_extent(peer.link.nic, address);
  services_.ring(peer.link.process);
}

}  // namespace orrery::nic
