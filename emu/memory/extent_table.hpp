// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/memory/range.hpp"

#include <atomic>
#include <cstdint>
#include <span>

namespace orrery::memory {

// A range that was put into the memory file.
struct Extent {
  Range range;
  std::int32_t protection = 0;  // PROT_ bits it had
  bool bulk = false;            // part of one block above kForkCopyLimit: a child may map it lazily
  bool continues = false;       // not the beginning of its block: joins the part before it
};

// Extents up to this size are copied whole for a child of fork under ForkMode::part_copy: 32 MiB is the
// largest block that glibc carves from a heap (DEFAULT_MMAP_THRESHOLD_MAX); larger ones have malloc's data
// only at their first page.
inline constexpr std::uint64_t kForkCopyLimit = std::uint64_t{32} << 20;

// The extents of a process, sorted and disjoint, in storage that its owner provides (pages that are never
// adopted: no malloc). Ownership: none. Threads: one at a time (the owner's lock), but may_overlap from any.
// Invariants: sorted by address; neighbours of the same kind are joined, of bulk only the parts of one block.
class ExtentTable {
 public:
  explicit constexpr ExtentTable(std::span<Extent> storage) : storage_(storage) {}

  std::span<const Extent> all() const { return storage_.first(count_); }
  std::uint32_t count() const { return count_; }

  // REQUIRES: room for two more, extent.range not empty. Replaces what overlaps.
  void insert(Extent extent);
  // False when there is no room for the two parts that would be left of one extent (every second page of a
  // large block unmapped): it stays as it is. The table is a hint: what is not mapped any more may be in it.
  bool erase(Range range);
  void clear();
  bool overlaps(Range range) const;

  // Without the lock: false only when nothing in the table can overlap `range`.
  bool may_overlap(Range range) const {
    return range.begin < high_.load(std::memory_order_relaxed) &&
           range.end > low_.load(std::memory_order_relaxed);
  }

 private:
  std::uint32_t first_ending_after(std::uint64_t address) const;
  void remove(std::uint32_t from, std::uint32_t to);
  void put(std::uint32_t at, Extent extent);
  void note_bounds();

  const std::span<Extent> storage_;
  std::uint32_t count_ = 0;
  std::atomic<std::uint64_t> low_{UINT64_MAX};
  std::atomic<std::uint64_t> high_{0};
};

}  // namespace orrery::memory
