// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/link_state.hpp"

#include <algorithm>
#include <new>

namespace orrery::model {

namespace {

constexpr int kHalfLifeShift = 22;
static_assert(Picos{std::int64_t{1} << kHalfLifeShift} == kHalfLife);

// A holder keeps a cell for some tens of nanoseconds; one that was descheduled returns within a time
// slice. After this many looks (about 10 ms) it is taken for dead.
constexpr std::uint32_t kLooksBeforeTakeover = 1u << 20;

constexpr std::array<std::uint32_t, 256> make_wait_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t rho = 0; rho < 256; ++rho) table[rho] = 256 * rho / (2 * (256 - rho));
  return table;
}
// 2^16 * 512 / (512 + part): what makes a level a rate, by how much of the epoch has passed.
constexpr std::array<std::uint32_t, 256> make_steady_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t part = 0; part < 256; ++part) table[part] = (512u << 16) / (512 + part);
  return table;
}
constexpr auto kSteady = make_steady_table();
constexpr auto kWaits = make_wait_table();

}  // namespace

std::uint32_t queue_wait_256(std::uint32_t per_256) { return kWaits[std::min<std::uint32_t>(per_256, 255)]; }

std::uint32_t LinkState::aggregates(const Pricing& p) {
  switch (p.network) {
    case Network::gemini_torus:
    case Network::seastar_torus:
    case Network::bluegene_torus: {
      const auto& g = p.torus.grid();
      return 2 * (g[1] * g[2] + g[0] * g[2] + g[0] * g[1]);
    }
    case Network::dragonfly:
      return p.dragonfly.groups() * p.dragonfly.groups() + p.dragonfly.routers();
    case Network::fat_tree: {
      std::uint32_t subtrees = 0;
      for (std::uint32_t level = 0; level < p.tree.levels(); ++level) subtrees += p.nodes >> (2 * level);
      return 2 * subtrees;
    }
    case Network::crossbar:
      return 0;
  }
  return 0;
}

std::size_t LinkState::bytes_needed(const Pricing& p, Kind kind) {
  const std::size_t cells = aggregates(p);
  const std::size_t nics = sizeof(LinkStateHeader) + p.nodes * sizeof(NicCell);
  return kind == Kind::exact ? nics + (p.nodes + cells) * sizeof(IntervalCell)
                             : nics + cells * sizeof(CounterCell);
}

void LinkState::point_at(std::span<std::byte> memory, const Pricing& p, Kind kind) {
  std::byte* at = memory.data();
  header_ = reinterpret_cast<LinkStateHeader*>(at);
  at += sizeof(LinkStateHeader);
  nics_ = reinterpret_cast<NicCell*>(at);
  at += p.nodes * sizeof(NicCell);
  if (kind == Kind::exact) {
    receivers_ = reinterpret_cast<IntervalCell*>(at);
    cells_ = receivers_ + p.nodes;
  } else {
    counters_ = reinterpret_cast<CounterCell*>(at);
  }
}

Result<LinkState> LinkState::create(std::span<std::byte> memory, const Pricing& p, Kind kind) {
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % 64 != 0) return Errc::alignment;
  if (memory.size() < bytes_needed(p, kind)) return Errc::size;
  LinkState s;
  s.point_at(memory, p, kind);
  new (s.header_) LinkStateHeader{};
  for (std::uint32_t i = 0; i < p.nodes; ++i) new (&s.nics_[i]) NicCell{};
  const std::uint32_t cells = aggregates(p);
  if (kind == Kind::exact) {
    for (std::size_t i = 0; i < std::size_t{p.nodes} + cells; ++i) new (&s.receivers_[i]) IntervalCell{};
  } else {
    for (std::uint32_t i = 0; i < cells; ++i) new (&s.counters_[i]) CounterCell{};
  }
  s.header_->version = kVersion;
  s.header_->kind = static_cast<std::uint32_t>(kind);
  s.header_->nodes = p.nodes;
  s.header_->aggregates = cells;
  s.header_->size = bytes_needed(p, kind);
  // Last, so that attach() sees a complete block or none.
  std::atomic_ref(s.header_->magic).store(kMagic, std::memory_order_release);
  return s;
}

Result<LinkState> LinkState::attach(std::span<std::byte> memory, const Pricing& p) {
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % 64 != 0) return Errc::alignment;
  if (memory.size() < sizeof(LinkStateHeader)) return Errc::size;
  auto* header = reinterpret_cast<LinkStateHeader*>(memory.data());
  if (std::atomic_ref(header->magic).load(std::memory_order_acquire) != kMagic) return Errc::corrupt;
  if (header->version != kVersion || (header->kind != 1 && header->kind != 2)) return Errc::corrupt;
  const Kind kind = static_cast<Kind>(header->kind);
  if (header->nodes != p.nodes || header->aggregates != aggregates(p) ||
      header->size != bytes_needed(p, kind)) {
    return Errc::corrupt;
  }
  if (memory.size() < header->size) return Errc::size;
  LinkState s;
  s.point_at(memory, p, kind);
  return s;
}

__attribute__((noinline)) void LinkState::acquire_slowly(IntervalCell& cell) const {
  for (std::uint32_t look = 0; look < kLooksBeforeTakeover; ++look) {
    std::uint32_t free = 0;
    if (cell.lock.load(std::memory_order_relaxed) == 0 &&
        cell.lock.compare_exchange_weak(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) {
      return;
    }
  }
  header_->stolen.fetch_add(1, std::memory_order_relaxed);
}

void LinkState::merge_into(IntervalCell& cell, const IntervalCell::Interval& interval) const {
  // The interval that grows least takes the new one in.
  std::uint32_t best = 0;
  std::int64_t least = INT64_MAX;
  for (std::uint32_t i = 0; i < cell.count; ++i) {
    const auto& e = cell.at[i];
    const std::int64_t grown =
        std::max(e.end, interval.end) - std::min(e.start, interval.start) - (e.end - e.start);
    if (grown < least) {
      least = grown;
      best = i;
    }
  }
  auto& e = cell.at[best];
  e.start = std::min(e.start, interval.start);
  e.end = std::max(e.end, interval.end);
  e.links |= interval.links;
  header_->merged.fetch_add(1, std::memory_order_relaxed);
}

std::int64_t LinkState::reserve_in(IntervalCell& cell, std::int64_t want, std::int64_t length,
                                   std::uint64_t links, std::int64_t horizon) const {
  if (length <= 0) return want;
  acquire(cell);
  std::uint32_t kept = 0;
  const std::uint32_t count = std::min(cell.count, IntervalCell::kIntervals);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (cell.at[i].end <= horizon) continue;
    if (kept != i) cell.at[kept] = cell.at[i];
    ++kept;
  }
  cell.count = kept;
  std::int64_t start = want;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t i = 0; i < kept; ++i) {
      const auto& e = cell.at[i];
      if ((e.links & links) == 0 || start >= e.end || start + length <= e.start) continue;
      start = e.end;
      moved = true;
    }
  }
  const IntervalCell::Interval mine{start, start + length, links};
  bool joined = false;
  for (std::uint32_t i = 0; i < kept && !joined; ++i) {
    auto& e = cell.at[i];
    if (e.links == links && e.end == start) {
      e.end = mine.end;
      joined = true;
    }
  }
  if (joined) {
    // Nothing more: a back-to-back stream stays one interval.
  } else if (kept < IntervalCell::kIntervals) {
    cell.at[kept] = mine;
    cell.count = kept + 1;
  } else {
    merge_into(cell, mine);
  }
  cell.lock.store(0, std::memory_order_release);
  return start;
}

std::int64_t LinkState::peek(std::uint32_t aggregate, std::int64_t want) const {
  if (kind() == Kind::exact) {
    IntervalCell& cell = cells_[aggregate];
    acquire(cell);
    std::int64_t start = want;
    for (std::uint32_t i = 0; i < std::min(cell.count, IntervalCell::kIntervals); ++i) {
      if (start >= cell.at[i].start && start < cell.at[i].end) start = cell.at[i].end;
    }
    cell.lock.store(0, std::memory_order_release);
    return start;
  }
  return want;
}

std::uint64_t LinkState::count_in(DecayedCounter& c, std::int64_t now, std::uint64_t bytes) const {
  const std::int64_t epoch = now >> kHalfLifeShift;
  const std::int64_t seen = c.epoch.load(std::memory_order_relaxed);
  std::uint64_t before = c.before.load(std::memory_order_relaxed);
  std::uint64_t current = c.now.load(std::memory_order_relaxed);
  if (seen < epoch) {
    const std::int64_t passed = epoch - seen;
    before = passed >= 60 ? 0 : (before + current) >> passed;
    current = 0;
    c.epoch.store(epoch, std::memory_order_relaxed);
    c.before.store(before, std::memory_order_relaxed);
  }
  c.now.store(current + bytes, std::memory_order_relaxed);
  // A steady rate of r bytes a half-life makes `before` r and `before` + `now` r (1 + f) where f of the
  // epoch has passed; half of `before` has decayed by its end.
  const auto part =
      static_cast<std::uint64_t>(now & ((std::int64_t{1} << kHalfLifeShift) - 1)) >> (kHalfLifeShift - 8);
  const std::uint64_t level = (before * (512 - part) >> 9) + current;
  return level * kSteady[part] >> 16;
}

}  // namespace orrery::model
