// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/log.hpp"
#include "emu/memory/address_space.hpp"
#include "emu/memory/chunk_switch.hpp"
#include "emu/memory/process_state.hpp"
#include "emu/memory/raw_calls.hpp"
#include "emu/memory/reap.hpp"
#include "emu/memory/thread_areas.hpp"
#include "emu/memory/write_hold.hpp"

#include <algorithm>
#include <array>

#include <sys/mman.h>
#include <sys/resource.h>

namespace orrery::memory {

namespace {

// The last page of an adopted range of at least so many bytes becomes a mapping of its own, so that mremap(2)
// cannot grow the range over the next offsets of the file. glibc gives blocks of 128 KiB and more a mapping
// of their own (M_MMAP_THRESHOLD), and programs lower that.
constexpr std::uint64_t kSealGrowthFrom = 64 << 10;
// File pages without a mapping pile up to this much before adopt cleans up.
constexpr std::uint64_t kReapEvery = std::uint64_t{64} << 20;
// How often the mapping may change under an adoption before it gives up.
constexpr int kLookAgain = 16;

bool file_size_allows(std::uint64_t end) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= end;
}

}  // namespace

void AddressSpace::reap() {
  if (state_.in_child()) return;
  const std::lock_guard lock(state_.switching);
  reap_unmapped(state_);
}

namespace {

// Largest piece without a page in memory that is moved at once: a millisecond, for which peers wait.
constexpr std::uint64_t kEmptyChunk = 16 << 20;

// How many bytes from the beginning of the range on have no page in memory. Some may be in swap: that costs
// time, and nothing else.
std::uint64_t bytes_without_pages(Range range) {
  std::array<unsigned char, kEmptyChunk / kPageBytes> resident;
  range.end = std::min(range.end, range.begin + kEmptyChunk);
  if (mincore(raw::pointer(range.begin), range.size(), resident.data()) != 0) return 0;
  const auto* const end = resident.begin() + range.size() / kPageBytes;
  const auto* const first =
      std::find_if(resident.cbegin(), end, [](unsigned char page) { return (page & 1) != 0; });
  return static_cast<std::uint64_t>(first - resident.cbegin()) * kPageBytes;
}

}  // namespace

Status AddressSpace::adopt(std::uint64_t address, std::uint64_t length, SwitchGuard& guard,
                           Obstacle* obstacle) {
  if (length == 0 || address > UINT64_MAX - length - kPageBytes) return Errc::bounds;
  if (state_.in_child()) return Errc::invalid_state;
  const Range hull = page_hull({address, address + length});
  const auto refuse = [&](Obstacle why) {
    state_.refused[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
    if (obstacle != nullptr) *obstacle = why;
    return Status(Errc::unsupported);
  };
  if (state_.file < 0) return refuse(Obstacle::no_file);
  if (hull.end > kSpan) return refuse(Obstacle::beyond_span);
  // The limit may have been set since create: writing beyond it would raise SIGXFSZ.
  if (!file_size_allows(hull.end)) return refuse(Obstacle::no_file);
  {
    const std::lock_guard lock(state_.switching);
    if (state_.adopted_since_reap >= kReapEvery) reap_unmapped(state_);
  }

  const bool bulk = length > kForkCopyLimit;
  Mapping mapping;
  bool may_reap = true;
  int changed = 0;
  for (std::uint64_t at = hull.begin; at < hull.end;) {
    if (!state_.map_query.find(at, &mapping) || mapping.range.begin > at) return refuse(Obstacle::unmapped);
    const Range piece{at, std::min(hull.end, mapping.range.end)};
    if (state_.is_ours(mapping) && mapping.offset == mapping.range.begin) {
      at = piece.end;
      continue;
    }
    if (const Obstacle why = obstacle_of(state_, mapping, piece, true); why != Obstacle::none)
      return refuse(why);
    const std::uint64_t step = chunk_bytes(state_, mapping);
    Status status;
    if (hold_method(state_, mapping.inode != 0, false) == Blocker::protect && !all_threads_take_faults())
      status = Errc::invalid_state;
    while (at < piece.end && status.ok()) {
      // What was never touched is moved by larger pieces: there is nothing to copy.
      const std::uint64_t empty = mapping.inode == 0 ? bytes_without_pages({at, piece.end}) / step * step : 0;
      const Range chunk{at, std::min(piece.end, at + std::max(step, empty))};
      status = guard.before_switch(chunk);
      if (!status.ok()) break;
      status = switch_in(state_, chunk, bulk, chunk.begin != hull.begin);
      guard.after_switch(chunk, status.ok());
      if (status.ok()) at = chunk.end;
    }
    if (status.ok()) continue;
    if (status == Errc::not_done && ++changed < kLookAgain) continue;
    if (status == Errc::no_resource && may_reap) {
      may_reap = false;
      const std::lock_guard lock(state_.switching);
      if (reap_for_room(state_)) continue;
    }
    state_.failures.fetch_add(1, std::memory_order_relaxed);
    return status;
  }
  if (hull.size() >= kSealGrowthFrom) raw::madvise(hull.end - kPageBytes, kPageBytes, MADV_RANDOM);
  return {};
}

Status AddressSpace::release(std::uint64_t address, std::uint64_t length, SwitchGuard& guard) {
  if (length == 0 || address > UINT64_MAX - length - kPageBytes) return Errc::bounds;
  if (state_.in_child()) return Errc::invalid_state;
  if (state_.file < 0) return {};
  const Range hull = page_hull({address, address + length});
  if (hold_method(state_, false, true) == Blocker::protect && !all_threads_take_faults())
    return Errc::invalid_state;
  Mapping mapping;
  int changed = 0;
  for (std::uint64_t at = hull.begin; at < hull.end && state_.map_query.find(at, &mapping);) {
    if (mapping.range.begin >= hull.end) break;
    at = std::max(at, mapping.range.begin);
    const Range piece{at, std::min(hull.end, mapping.range.end)};
    if (!state_.is_ours(mapping) || mapping.offset != mapping.range.begin) {
      at = piece.end;
      continue;
    }
    const Range chunk{at, std::min(piece.end, at + chunk_bytes(state_, mapping))};
    Status status = guard.before_switch(chunk);
    if (status.ok()) {
      status = switch_out(state_, chunk);
      guard.after_switch(chunk, status.ok());
    }
    if (status.ok()) {
      at = chunk.end;
    } else if (status != Errc::not_done || ++changed >= kLookAgain) {
      return status;
    }
  }
  const std::lock_guard lock(state_.table);
  state_.extents.erase(hull);
  return {};
}

}  // namespace orrery::memory
