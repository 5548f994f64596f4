// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/link_state.hpp"

#include <algorithm>
#include <limits>
#include <new>

namespace orrery::model {

namespace {

constexpr int kHalfLifeShift = 22;
static_assert(Picos{std::int64_t{1} << kHalfLifeShift} == kHalfLife);

// A holder keeps the lock for some tens of nanoseconds; one that was descheduled returns within a time
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

std::uint32_t LinkState::aggregates(const Pricing& p, Kind kind) {
  switch (p.network) {
    case Network::gemini_torus:
    case Network::seastar_torus:
    case Network::bluegene_torus: {
      const auto& g = p.torus.grid();
      return 2 * (g[1] * g[2] + g[0] * g[2] + g[0] * g[1]);
    }
    case Network::dragonfly:
      return p.dragonfly.groups() * p.dragonfly.groups() +
             p.dragonfly.routers() * (kind == Kind::exact ? 1 : 1 + Dragonfly::kLocal);
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
  const std::size_t cells = aggregates(p, kind), nodes = p.nodes;
  return sizeof(LinkStateHeader) + (kind == Kind::exact
                                        ? nodes * sizeof(ExactNicCell) + cells * sizeof(IntervalCell)
                                        : nodes * sizeof(DecayedNicCell) + cells * sizeof(CounterCell));
}

void LinkState::point_at(std::span<std::byte> memory, const Pricing& p, Kind kind) {
  kind_ = kind;
  header_ = reinterpret_cast<LinkStateHeader*>(memory.data());
  std::byte* at = memory.data() + sizeof(LinkStateHeader);
  if (kind == Kind::exact) {
    exact_nics_ = reinterpret_cast<ExactNicCell*>(at);
    cells_ = reinterpret_cast<IntervalCell*>(at + p.nodes * sizeof(ExactNicCell));
  } else {
    decayed_nics_ = reinterpret_cast<DecayedNicCell*>(at);
    counters_ = reinterpret_cast<CounterCell*>(at + p.nodes * sizeof(DecayedNicCell));
  }
}

Result<LinkState> LinkState::create(std::span<std::byte> memory, const Pricing& p, Kind kind) {
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % 64 != 0) return Errc::alignment;
  if (memory.size() < bytes_needed(p, kind)) return Errc::size;
  LinkState s;
  s.point_at(memory, p, kind);
  new (s.header_) LinkStateHeader{};
  const std::uint32_t cells = aggregates(p, kind);
  if (kind == Kind::exact) {
    for (std::uint32_t i = 0; i < p.nodes; ++i) new (&s.exact_nics_[i]) ExactNicCell{};
    for (std::uint32_t i = 0; i < cells; ++i) new (&s.cells_[i]) IntervalCell{};
  } else {
    for (std::uint32_t i = 0; i < p.nodes; ++i) new (&s.decayed_nics_[i]) DecayedNicCell{};
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
  if (header->nodes != p.nodes || header->aggregates != aggregates(p, kind) ||
      header->size != bytes_needed(p, kind)) {
    return Errc::corrupt;
  }
  if (memory.size() < header->size) return Errc::size;
  LinkState s;
  s.point_at(memory, p, kind);
  return s;
}

__attribute__((noinline)) void LinkState::acquire_slowly() const {
  for (std::uint32_t look = 0; look < kLooksBeforeTakeover; ++look) {
    std::uint32_t free = 0;
    if (header_->lock.load(std::memory_order_relaxed) == 0 &&
        header_->lock.compare_exchange_weak(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) {
      return;
    }
  }
  header_->stolen.fetch_add(1, std::memory_order_relaxed);
}

namespace {

Interval united(const Interval& a, const Interval& b) {
  return {std::min(a.start, b.start), std::max(a.end, b.end), a.links | b.links};
}

double links_by_time(const Interval& i) {
  return static_cast<double>(i.end - i.start) * __builtin_popcountll(i.links);
}

}  // namespace

__attribute__((noinline)) void LinkState::merge_into(Interval* at, std::uint32_t count,
                                                     const Interval& interval) const {
  std::uint32_t best = 0;
  double least = std::numeric_limits<double>::max();
  for (std::uint32_t i = 0; i < count; ++i) {
    const double added = links_by_time(united(at[i], interval)) - links_by_time(at[i]);
    if (added >= least) continue;
    least = added;
    best = i;
  }
  at[best] = united(at[best], interval);
  header_->merged.fetch_add(1, std::memory_order_relaxed);
}

namespace {

std::int64_t first_start(const Interval* at, std::uint32_t count, std::int64_t want, std::int64_t length,
                         std::uint64_t heeds) {
  std::int64_t start = want;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Interval& e = at[i];
      if ((e.links & heeds) == 0 || start >= e.end || start + length <= e.start) continue;
      start = e.end;
      moved = true;
    }
  }
  return start;
}

}  // namespace

std::int64_t LinkState::reserve_among(std::int64_t* latest, std::uint32_t* count, Interval* at,
                                      std::uint32_t capacity, std::int64_t want, std::int64_t length,
                                      std::uint64_t heeds, std::uint64_t takes, std::int64_t horizon) const {
  // A holder that died may have left anything up to 2^32 here.
  const std::uint32_t had = std::min(*count, capacity);
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < had; ++i) {
    if (at[i].end <= horizon) continue;
    if (kept != i) at[kept] = at[i];
    ++kept;
  }
  // Nothing reaches past `want`: no need to look for a gap.
  const std::int64_t start = *latest <= want ? want : first_start(at, kept, want, length, heeds);
  *latest = std::max(*latest, start + length);
  *count = kept;
  for (std::uint32_t i = 0; i < kept; ++i) {
    if (at[i].links == takes && at[i].end == start) {
      // A back-to-back stream stays one interval.
      at[i].end = start + length;
      return start;
    }
  }
  const Interval mine{start, start + length, takes};
  if (kept < capacity) {
    at[kept] = mine;
    *count = kept + 1;
  } else {
    merge_into(at, capacity, mine);
  }
  return start;
}

std::int64_t LinkState::peek_among(std::uint32_t aggregate, std::int64_t want, std::int64_t length,
                                   std::uint64_t heeds) const {
  const IntervalCell& cell = cells_[aggregate];
  return first_start(cell.at, std::min(cell.count, IntervalCell::kIntervals), want, length, heeds);
}

namespace {

// Bytes of one half-life at the rate that the two sums speak of. A steady rate of r bytes a half-life makes
// `before` r and `before` + `current` r (1 + f) where f of the epoch has passed; half of `before` has decayed
// by its end.
std::uint64_t steady(std::uint64_t before, std::uint64_t current, std::int64_t now) {
  const auto part =
      static_cast<std::uint64_t>(now & ((std::int64_t{1} << kHalfLifeShift) - 1)) >> (kHalfLifeShift - 8);
  return ((before * (512 - part) >> 9) + current) * kSteady[part] >> 16;
}

}  // namespace

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
  return steady(before, current, now);
}

std::uint64_t LinkState::level_in(const DecayedCounter& c, std::int64_t now) const {
  const std::int64_t passed = (now >> kHalfLifeShift) - c.epoch.load(std::memory_order_relaxed);
  std::uint64_t before = c.before.load(std::memory_order_relaxed);
  std::uint64_t current = c.now.load(std::memory_order_relaxed);
  if (passed > 0) {
    before = passed >= 60 ? 0 : (before + current) >> passed;
    current = 0;
  }
  return steady(before, current, now);
}

}  // namespace orrery::model
