// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/extent_table.hpp"

#include "emu/base/check.hpp"

#include <algorithm>

namespace orrery::memory {

namespace {

bool joins(const Extent& left, const Extent& right) {
  return left.range.end == right.range.begin && left.protection == right.protection &&
         left.bulk == right.bulk && (!right.bulk || right.continues);
}

}  // namespace

std::uint32_t ExtentTable::first_ending_after(std::uint64_t address) const {
  const auto held = all();
  const auto it =
      std::partition_point(held.begin(), held.end(), [&](const Extent& e) { return e.range.end <= address; });
  return static_cast<std::uint32_t>(it - held.begin());
}

void ExtentTable::remove(std::uint32_t from, std::uint32_t to) {
  std::copy(storage_.begin() + to, storage_.begin() + count_, storage_.begin() + from);
  count_ -= to - from;
}

void ExtentTable::put(std::uint32_t at, Extent extent) {
  ORRERY_CHECK(count_ < storage_.size(), "extent table of {} entries overflows", storage_.size());
  std::copy_backward(storage_.begin() + at, storage_.begin() + count_, storage_.begin() + count_ + 1);
  storage_[at] = extent;
  ++count_;
}

void ExtentTable::note_bounds() {
  low_.store(count_ == 0 ? UINT64_MAX : storage_[0].range.begin, std::memory_order_relaxed);
  high_.store(count_ == 0 ? 0 : storage_[count_ - 1].range.end, std::memory_order_relaxed);
}

void ExtentTable::insert(Extent extent) {
  erase(extent.range);
  std::uint32_t at = first_ending_after(extent.range.begin);
  if (at > 0 && joins(storage_[at - 1], extent)) {
    extent.range.begin = storage_[at - 1].range.begin;
    extent.continues = storage_[at - 1].continues;
    remove(at - 1, at);
    --at;
  }
  if (at < count_ && joins(extent, storage_[at])) {
    extent.range.end = storage_[at].range.end;
    remove(at, at + 1);
  }
  put(at, extent);
  note_bounds();
}

bool ExtentTable::erase(Range range) {
  const std::uint32_t from = first_ending_after(range.begin);
  std::uint32_t to = from;
  while (to < count_ && storage_[to].range.begin < range.end) ++to;
  if (from == to) return true;
  Extent head = storage_[from];
  Extent tail = storage_[to - 1];
  head.range.end = std::min(head.range.end, range.begin);
  tail.range.begin = std::max(tail.range.begin, range.end);
  if (to - from == 1 && !head.range.empty() && !tail.range.empty() && count_ == storage_.size()) return false;
  remove(from, to);
  if (!tail.range.empty()) put(from, tail);
  if (!head.range.empty()) put(from, head);
  note_bounds();
  return true;
}

void ExtentTable::clear() {
  count_ = 0;
  note_bounds();
}

bool ExtentTable::overlaps(Range range) const {
  const std::uint32_t at = first_ending_after(range.begin);
  return at < count_ && storage_[at].range.begin < range.end;
}

}  // namespace orrery::memory
