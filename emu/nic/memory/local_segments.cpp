// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The local side of a transfer whose registration is a list of segments.
#include "emu/nic/memory/regions.hpp"
#include "emu/nic/target/execute.hpp"

#include <algorithm>

namespace orrery::nic {

Regions::Piece Regions::piece(const MemKey& key, std::uint64_t offset) const {
  if (!table_.find(key).ok()) return {};
  const MrtEntry& entry = view_.region(key.index);
  const std::uint32_t count = entry.segment_count.load(std::memory_order_relaxed);
  const auto* segments = view_.arena<Segment>(entry.segments.load(std::memory_order_relaxed), count);
  if (segments == nullptr) return {};
  for (std::uint32_t i = 0; i < count; ++i) {
    if (offset < segments[i].length) {
      return {reinterpret_cast<std::byte*>(segments[i].address + offset), segments[i].length - offset};
    }
    offset -= segments[i].length;
  }
  return {};
}

bool Regions::gather(const MemKey& key, std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const Piece there = piece(key, offset);
    if (there.at == nullptr) return false;
    const auto part = std::min<std::uint64_t>(there.bytes, bytes.size());
    load_bytes(bytes.data(), there.at, part);
    bytes = bytes.subspan(part);
    offset += part;
  }
  return true;
}

bool Regions::scatter(const MemKey& key, std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const Piece there = piece(key, offset);
    if (there.at == nullptr) return false;
    const auto part = std::min<std::uint64_t>(there.bytes, bytes.size());
    store_bytes(there.at, bytes.data(), part);
    bytes = bytes.subspan(part);
    offset += part;
  }
  return true;
}

}  // namespace orrery::nic
