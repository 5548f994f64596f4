// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/reap.hpp"

#include "emu/memory/address_space.hpp"
#include "emu/memory/peer_memory.hpp"
#include "emu/memory/raw_calls.hpp"

#include <algorithm>

#include <unistd.h>

namespace orrery::memory {

namespace {

// A reap for room is not repeated for this many times its own duration.
constexpr std::int64_t kRestFactor = 100;

// Which offsets of the file this process maps, anywhere: a mapping that mremap moved keeps its offsets.
class LiveOffsets {
 public:
  explicit LiveOffsets(std::span<Range> storage) : storage_(storage) {}

  // False: more mappings than there is room for.
  bool collect(const ProcessState& state) {
    state_ = &state;
    count_ = 0;
    overflow_ = false;
    state.map_query.walk({0, AddressSpace::kSpan}, true, &LiveOffsets::visit, this);
    std::sort(storage_.begin(), storage_.begin() + count_,
              [](Range a, Range b) { return a.begin < b.begin; });
    join();
    return !overflow_;
  }

  // First part of `range` that is not mapped; empty if all of it is.
  Range first_gap(Range range) const {
    const auto end = storage_.begin() + count_;
    auto it = std::partition_point(storage_.begin(), end, [&](Range r) { return r.end <= range.begin; });
    // What is joined never touches its neighbour: after one step the beginning is in a gap.
    if (it != end && it->begin <= range.begin) range.begin = (it++)->end;
    if (range.empty()) return {};
    if (it != end) range.end = std::min(range.end, it->begin);
    return range;
  }

 private:
  static bool visit(void* context, const Mapping& mapping) {
    auto& self = *static_cast<LiveOffsets*>(context);
    if (!self.state_->is_ours(mapping)) return true;
    const Range offsets{mapping.offset, mapping.offset + mapping.range.size()};
    // A visitor's windows on our own file (two NICs of one process through the direct wire) keep nothing
    // alive.
    if (mapping.offset != mapping.range.begin && offsets.begin % PeerMemory::kWindowBytes == 0 &&
        offsets.end % PeerMemory::kWindowBytes == 0)
      return true;
    // Joins neighbours in place, the common case.
    if (self.count_ > 0 && self.storage_[self.count_ - 1].end == offsets.begin) {
      self.storage_[self.count_ - 1].end = offsets.end;
      return true;
    }
    if (self.count_ == self.storage_.size()) {
      self.overflow_ = true;
      return false;
    }
    self.storage_[self.count_++] = offsets;
    return true;
  }

  // Moved or duplicated mappings may show the same offsets twice.
  void join() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (kept > 0 && storage_[i].begin <= storage_[kept - 1].end)
        storage_[kept - 1].end = std::max(storage_[kept - 1].end, storage_[i].end);
      else
        storage_[kept++] = storage_[i];
    }
    count_ = kept;
  }

  const std::span<Range> storage_;
  const ProcessState* state_ = nullptr;
  std::size_t count_ = 0;
  bool overflow_ = false;
};

// Calls visit(part) for each part of the file that has data but no mapping.
template <typename Visit>
void for_each_orphan(const ProcessState& state, const LiveOffsets& live, Visit visit) {
  for (std::uint64_t at = 0; at < AddressSpace::kSpan;) {
    const off_t data = lseek(state.file, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0) return;
    const off_t hole = lseek(state.file, data, SEEK_HOLE);
    const std::uint64_t end = hole < 0 ? AddressSpace::kSpan : static_cast<std::uint64_t>(hole);
    for (Range rest{static_cast<std::uint64_t>(data), end}; !rest.empty();) {
      const Range gap = live.first_gap(rest);
      if (gap.empty()) break;
      visit(gap);
      rest.begin = gap.end;
    }
    at = end;
  }
}

// Takes out of the table what the kernel does not map any more.
void correct_table(ProcessState& state, const LiveOffsets& live) {
  for (std::uint32_t i = 0; i < state.extents.count();) {
    const Range gap = live.first_gap(state.extents.all()[i].range);
    // An erasure leaves the part before the gap at i, or the part after it.
    if (gap.empty() || !state.extents.erase(gap)) ++i;
  }
}

}  // namespace

void reap_unmapped(ProcessState& state) {
  if (state.file < 0) return;
  // Held to the end: interposed munmap, mmap and mremap wait. A moving mapping could otherwise hide from both
  // looks.
  const std::lock_guard lock(state.table);
  const std::size_t half = state.live.size() / 2;
  LiveOffsets live(state.live.first(half));
  if (!live.collect(state)) return;
  state.adopted_since_reap = 0;
  bool any = false;
  for_each_orphan(state, live, [&](Range) { any = true; });
  correct_table(state, live);
  if (!any) return;
  // Calls that cannot be interposed may have moved a mapping from where the first look had not come to where
  // it had been. A second look finds it; only what both miss is emptied.
  LiveOffsets again(state.live.subspan(half));
  if (!again.collect(state)) return;
  std::uint64_t punched = 0;
  for_each_orphan(state, live, [&](Range candidate) {
    for (Range rest = candidate; !rest.empty();) {
      const Range gap = again.first_gap(rest);
      if (gap.empty()) break;
      raw::punch(state.file, gap);
      punched += gap.size();
      rest.begin = gap.end;
    }
  });
  state.bytes_punched.fetch_add(punched, std::memory_order_relaxed);
}

bool reap_for_room(ProcessState& state) {
  const std::int64_t start = monotonic_ns();
  if (start < state.next_forced_reap_ns) return false;
  reap_unmapped(state);
  const std::int64_t end = monotonic_ns();
  std::uint32_t left = 0;
  {
    const std::lock_guard lock(state.table);
    left = state.extents.count();
  }
  const bool room = left < state.options.extent_budget;
  state.next_forced_reap_ns = end + kRestFactor * (end - start);
  return room;
}

}  // namespace orrery::memory
