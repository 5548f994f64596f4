// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/symmetric_heap.hpp"

#include "emu/base/check.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace orrery::memory {

Result<std::uint64_t> parse_size(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || number < 0) return Errc::invalid_param;
  const std::string_view suffix(stop, static_cast<std::size_t>(end - stop));
  if (suffix.size() > 1) return Errc::invalid_param;
  double unit = 1;
  if (!suffix.empty()) {
    constexpr std::string_view kUnits = "kmgtKMGT";
    const std::size_t place = kUnits.find(suffix[0]);
    if (place == std::string_view::npos) return Errc::invalid_param;
    unit = std::exp2(10.0 * static_cast<double>(place % 4 + 1));
  }
  if (!(number * unit < std::exp2(63))) return Errc::invalid_param;
  return static_cast<std::uint64_t>(number * unit);
}

namespace {

constexpr std::uint64_t rounded_up(std::uint64_t bytes) {
  constexpr std::uint64_t kUnit = SymmetricHeap::kAlignment;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

SymmetricHeap::SymmetricHeap(std::uint64_t base, std::uint64_t bytes) {
  ORRERY_CHECK(base % kAlignment == 0 && bytes % kAlignment == 0, "a heap of {} bytes at {:#x}", bytes, base);
  if (bytes != 0) add_free(base, bytes);
}

void SymmetricHeap::add_free(std::uint64_t begin, std::uint64_t bytes) {
  free_.emplace(begin, bytes);
  by_size_.emplace(bytes, begin);
}

void SymmetricHeap::drop_free(std::uint64_t begin, std::uint64_t bytes) {
  free_.erase(begin);
  by_size_.erase({bytes, begin});
}

void SymmetricHeap::add_free_joined(std::uint64_t begin, std::uint64_t bytes) {
  const auto after = free_.lower_bound(begin);
  if (after != free_.end() && after->first == begin + bytes) {
    const auto [next, length] = *after;
    drop_free(next, length);
    bytes += length;
  }
  add_free(begin, bytes);
}

Result<std::uint64_t> SymmetricHeap::allocate(std::uint64_t bytes) {
  if (bytes == 0) return Errc::invalid_param;
  if (bytes > UINT64_MAX - kAlignment) return Errc::no_memory;
  const std::uint64_t rounded = rounded_up(bytes);
  const std::lock_guard lock(mu_);
  const auto fit = by_size_.lower_bound({rounded, 0});
  if (fit == by_size_.end()) return Errc::no_memory;
  const auto [length, begin] = *fit;
  drop_free(begin, length);
  if (length > rounded) add_free(begin + rounded, length - rounded);
  blocks_.emplace(begin, Block{.asked = bytes, .bytes = rounded});
  in_use_ += rounded;
  high_water_ = std::max(high_water_, in_use_);
  return begin;
}

Status SymmetricHeap::free(std::uint64_t block) {
  const std::lock_guard lock(mu_);
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return Errc::no_match;
  std::uint64_t begin = block;
  std::uint64_t bytes = found->second.bytes;
  in_use_ -= bytes;
  blocks_.erase(found);
  const auto behind = free_.lower_bound(begin);
  if (behind != free_.begin()) {
    const auto [previous, length] = *std::prev(behind);
    if (previous + length == begin) {
      drop_free(previous, length);
      begin = previous;
      bytes += length;
    }
  }
  add_free_joined(begin, bytes);
  return {};
}

Status SymmetricHeap::resize(std::uint64_t block, std::uint64_t bytes) {
  if (bytes == 0) return Errc::invalid_param;
  const std::lock_guard lock(mu_);
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return Errc::no_match;
  if (bytes > UINT64_MAX - kAlignment) return Errc::no_memory;
  const std::uint64_t before = found->second.bytes;
  const std::uint64_t now = rounded_up(bytes);
  if (now > before) {
    const auto behind = free_.find(block + before);
    if (behind == free_.end() || behind->second < now - before) return Errc::no_memory;
    const std::uint64_t end = behind->first + behind->second;
    drop_free(behind->first, behind->second);
    if (block + now < end) add_free(block + now, end - (block + now));
  } else if (now < before) {
    add_free_joined(block + now, before - now);
  }
  found->second = {.asked = bytes, .bytes = now};
  in_use_ += now - before;
  high_water_ = std::max(high_water_, in_use_);
  return {};
}

Result<std::uint64_t> SymmetricHeap::size_of(std::uint64_t block) const {
  const std::lock_guard lock(mu_);
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return Errc::no_match;
  return found->second.asked;
}

Result<SymmetricHeap::Extent> SymmetricHeap::block_at(std::uint64_t address) const {
  const std::lock_guard lock(mu_);
  const auto behind = blocks_.upper_bound(address);
  if (behind == blocks_.begin()) return Errc::no_match;
  const auto& [begin, block] = *std::prev(behind);
  if (address - begin >= block.asked) return Errc::no_match;
  return Extent{.begin = begin, .bytes = block.asked};
}

SymmetricHeap::Stats SymmetricHeap::stats() const {
  const std::lock_guard lock(mu_);
  return {.in_use = in_use_,
          .high_water = high_water_,
          .blocks = blocks_.size(),
          .largest_free = by_size_.empty() ? 0 : by_size_.rbegin()->first};
}

}  // namespace orrery::memory
