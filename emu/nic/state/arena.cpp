// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/state/arena.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

namespace {
std::uint64_t block_of(std::uint64_t bytes) {
  return std::bit_ceil(std::max<std::uint64_t>(bytes, kCacheLine));
}
}  // namespace

Arena::Arena(const NicView& view)
    : end_(view.header().arena_offset + view.arena_bytes()), next_(view.header().arena_offset) {}

std::uint64_t Arena::take(std::uint64_t bytes, Use use) {
  if (bytes > end_) return 0;
  const std::uint64_t size = block_of(bytes);
  const auto size_class = static_cast<std::size_t>(std::countr_zero(size));
  const std::lock_guard lock(mu_);
  auto& blocks = free_[static_cast<std::size_t>(use)];
  if (size_class >= blocks.size()) return 0;
  auto& free = blocks[size_class];
  if (!free.empty()) {
    const std::uint64_t offset = free.back();
    free.pop_back();
    return offset;
  }
  if (next_ > end_ || size > end_ - next_) return 0;
  const std::uint64_t offset = next_;
  next_ += size;
  return offset;
}

void Arena::give_back(std::uint64_t offset, std::uint64_t bytes, Use use) {
  const std::lock_guard lock(mu_);
  free_[static_cast<std::size_t>(use)][static_cast<std::size_t>(std::countr_zero(block_of(bytes)))].push_back(
      offset);
}

}  // namespace orrery::nic
