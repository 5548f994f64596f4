// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/link_state.hpp"

#include "emu/base/timed_path.hpp"

#include <algorithm>
#include <cstdint>
#include <new>

namespace orrery::model {

namespace {

constexpr std::array<std::uint32_t, 256> make_wait_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t rho = 0; rho < 256; ++rho) table[rho] = 256 * rho / (2 * (256 - rho));
  return table;
}
constexpr auto kWaits = make_wait_table();

}  // namespace

std::uint32_t queue_wait_256(std::uint32_t per_256) { return kWaits[std::min<std::uint32_t>(per_256, 255)]; }

namespace {

// How much of what an exact state of a machine has.
struct Layout {
  std::size_t lines = 0, links = 0, spans = 0, bundles = 0;
  std::size_t cells() const { return lines + bundles; }
};

Layout layout_of(const Pricing& p) {
  switch (p.network) {
    case Network::gemini_torus:
    case Network::seastar_torus:
    case Network::bluegene_torus: {
      const auto& g = p.torus.grid();
      return {.lines = 2 * (std::size_t{g[1]} * g[2] + std::size_t{g[0]} * g[2] + std::size_t{g[0]} * g[1]),
              .links = std::size_t{kDirections} * p.torus.routers(),
              .spans = 5};
    }
    case Network::dragonfly:
      // Two spans a link: the largest machine has 717,216 of them and 64 MiB.
      return {.lines = p.dragonfly.routers(),
              .links = std::size_t{p.dragonfly.routers()} * kRouterServers,
              .spans = 2,
              .bundles = std::size_t{p.dragonfly.groups()} * p.dragonfly.groups()};
    case Network::fat_tree:
    case Network::crossbar:
      return {};
  }
  return {};
}

}  // namespace

std::uint32_t LinkState::cells(const Pricing& p, Kind kind) {
  const Layout layout = layout_of(p);
  std::size_t cells = layout.cells();
  if (kind == Kind::decayed) {
    if (p.network == Network::dragonfly) cells += std::size_t{p.dragonfly.routers()} * Dragonfly::kLocal;
    // A torus counts by link.
    if (layout.lines != 0 && layout.bundles == 0) cells = layout.links;
  }
  return static_cast<std::uint32_t>(cells);
}

std::size_t LinkState::bytes_needed(const Pricing& p, Kind kind) {
  const std::size_t nodes = p.nodes, circuits = circuit_cells(p) * sizeof(CircuitCell);
  if (kind == Kind::decayed)
    return sizeof(LinkStateHeader) + nodes * sizeof(DecayedNicCell) + cells(p, kind) * sizeof(CounterCell) +
           circuits;
  const Layout layout = layout_of(p);
  return sizeof(LinkStateHeader) + nodes * sizeof(ExactNicCell) + layout.lines * sizeof(LineCell) +
         layout.bundles * sizeof(BundleCell) + (layout.links != 0 ? kMoreSpans * sizeof(MoreSpans) : 0) +
         layout.links * layout.spans * sizeof(Span) + circuits;
}

void LinkState::point_at(std::span<std::byte> memory, const Pricing& p, Kind kind) {
  kind_ = kind;
  header_ = reinterpret_cast<LinkStateHeader*>(memory.data());
  std::byte* at = memory.data() + sizeof(LinkStateHeader);
  if (kind == Kind::decayed) {
    decayed_nics_ = reinterpret_cast<DecayedNicCell*>(at);
    counters_ = reinterpret_cast<CounterCell*>(at + p.nodes * sizeof(DecayedNicCell));
    circuits_ = reinterpret_cast<CircuitCell*>(counters_ + cells(p, kind));
    return;
  }
  const Layout layout = layout_of(p);
  spans_ = static_cast<std::uint32_t>(layout.spans);
  exact_nics_ = reinterpret_cast<ExactNicCell*>(at);
  at += p.nodes * sizeof(ExactNicCell);
  lines_ = reinterpret_cast<LineCell*>(at);
  at += layout.lines * sizeof(LineCell);
  bundles_ = reinterpret_cast<BundleCell*>(at);
  at += layout.bundles * sizeof(BundleCell);
  if (layout.links != 0) {
    more_ = reinterpret_cast<MoreSpans*>(at);
    at += kMoreSpans * sizeof(MoreSpans);
  }
  links_ = reinterpret_cast<Span*>(at);
  circuits_ = reinterpret_cast<CircuitCell*>(links_ + layout.links * layout.spans);
}

Result<LinkState> LinkState::create(std::span<std::byte> memory, const Pricing& p, Kind kind) {
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % 64 != 0) return Errc::alignment;
  if (memory.size() < bytes_needed(p, kind)) return Errc::size;
  LinkState s;
  s.point_at(memory, p, kind);
  new (s.header_) LinkStateHeader{};
  const std::uint32_t count = cells(p, kind);
  if (kind == Kind::exact) {
    const Layout layout = layout_of(p);
    for (std::size_t i = 0; i < p.nodes; ++i) new (&s.exact_nics_[i]) ExactNicCell{};
    for (std::size_t i = 0; i < layout.lines; ++i) new (&s.lines_[i]) LineCell{};
    for (std::size_t i = 0; i < layout.bundles; ++i) new (&s.bundles_[i]) BundleCell{};
    for (std::size_t i = 0; i < layout.links * layout.spans; ++i) new (&s.links_[i]) Span{};
    for (std::uint32_t i = 0; s.more_ != nullptr && i < kMoreSpans; ++i)
      new (&s.more_[i]) MoreSpans{.latest = INT64_MIN, .link = MoreSpans::kNobody, .count = 0, .at = {}};
  } else {
    for (std::uint32_t i = 0; i < p.nodes; ++i) new (&s.decayed_nics_[i]) DecayedNicCell{};
    for (std::uint32_t i = 0; i < count; ++i) new (&s.counters_[i]) CounterCell{};
  }
  for (std::size_t i = 0; i < circuit_cells(p); ++i) new (&s.circuits_[i]) CircuitCell{};
  s.header_->version = kVersion;
  s.header_->kind = static_cast<std::uint32_t>(kind);
  s.header_->nodes = p.nodes;
  s.header_->cells = count;
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
  if (header->nodes != p.nodes || header->cells != cells(p, kind) || header->size != bytes_needed(p, kind)) {
    return Errc::corrupt;
  }
  if (memory.size() < header->size) return Errc::size;
  LinkState s;
  s.point_at(memory, p, kind);
  return s;
}

namespace {

// A link's spans have no count: those that are not used are empty, and come last.
std::uint32_t count_of(const Span* at, std::uint32_t capacity) {
  std::uint32_t count = 0;
  while (count < capacity && at[count].end > at[count].start) ++count;
  return count;
}

}  // namespace

// All that the link had was over when this message came.
void LinkState::tell_link(std::uint32_t link, std::int64_t start, std::int64_t length) const {
  Span* at = spans_of(link);
  at[0] = {start, start + length, length};
  for (std::uint32_t n = 1; n < spans_; ++n) at[n] = {};
}

// Hands what is known to the line alone to its links.
ORRERY_TIMED_PATH void LinkState::tell_links(LineCell* cell, const LinePart& part, std::int64_t hop) const {
  // A caller that died may have left anything here.
  const std::uint32_t links = std::min(cell->links, part.line_links);
  std::uint32_t position = cell->first;
  for (std::uint32_t i = 0; i < links; ++i, ++position) {
    if (position >= part.line_links) position = 0;
    tell_link(part.line_first + position, cell->start + hop * i, cell->length);
  }
  if (cell->beside == cell->start && cell->second_first < part.line_links)
    tell_link(part.line_first + cell->second_first, cell->second_start, cell->second_length);
  cell->links = 0;
}

// A link that has borrowed says in all of its own spans which room it is, as a promise of less than no time.
MoreSpans* LinkState::borrowed_by(std::uint32_t link) const {
  const std::int64_t which = -1 - spans_of(link)->busy;
  if (which < 0 || which >= kMoreSpans) return nullptr;
  MoreSpans& more = more_[which];
  // A caller that died may have left anything here.
  return more.link == link && more.count <= MoreSpans::kSpans ? &more : nullptr;
}

// Promises time of a link whose own spans are all taken. Returns when it starts.
__attribute__((noinline)) std::int64_t LinkState::reserve_many(std::uint32_t link, std::int64_t* latest,
                                                               std::int64_t want, std::int64_t length,
                                                               std::int64_t horizon) const {
  Span* const own = spans_of(link);
  const bool borrowed = own->busy < 0;
  MoreSpans* more = borrowed ? borrowed_by(link) : nullptr;
  if (!borrowed) {
    std::uint32_t which = header_->lent;
    for (std::uint32_t look = 0; look < kMoreSpans && more == nullptr; ++look) {
      which = (which + 1) % kMoreSpans;
      if (more_[which].latest <= horizon) more = &more_[which];
    }
    if (more == nullptr) {
      // Nothing is free: its own spans will have to do.
      std::uint32_t count = spans_;
      const std::int64_t start =
          reserve_in(latest, &count, own, spans_, want, length, horizon, &header_->merged);
      std::fill(own + count, own + spans_, Span{});
      return start;
    }
    header_->lent = which;
    more->link = link;
    more->count = spans_;
    more->latest = *latest;
    std::copy(own, own + spans_, more->at);
    std::fill(own, own + spans_, Span{.start = 0, .end = 1, .busy = -1 - std::int64_t{which}});
  } else if (more == nullptr) {
    // What it had borrowed for is over, and another link has the room.
    std::fill(own, own + spans_, Span{});
    own[0] = {want, want + length, length};
    *latest = std::max(*latest, want + length);
    return want;
  }
  const std::int64_t start = reserve_in(&more->latest, &more->count, more->at, MoreSpans::kSpans, want,
                                        length, horizon, &header_->merged);
  *latest = std::max(*latest, more->latest);
  if (more->count >= spans_) return start;
  // It does without again. Fewer than its own, so that it does not borrow at once.
  std::copy(more->at, more->at + more->count, own);
  std::fill(own + more->count, own + spans_, Span{});
  more->link = MoreSpans::kNobody;
  more->latest = INT64_MIN;
  return start;
}

ORRERY_TIMED_PATH __attribute__((noinline)) std::int64_t LinkState::reserve_links(
    const LinePart& part, std::int64_t hop, std::int64_t arrive, std::int64_t length,
    std::int64_t horizon) const {
  LineCell& cell = lines_[part.line];
  // A path that crosses a router twice pays for no links' spans, which are seldom in any cache.
  if (cell.links == 1 && part.links == 1 && cell.first != part.first && cell.beside != cell.start &&
      length <= UINT32_MAX) {
    cell.beside = cell.start;
    cell.second_start = arrive;
    cell.second_first = part.first;
    cell.second_length = static_cast<std::uint32_t>(length);
    cell.latest = std::max(cell.latest, arrive + length);
    return 0;
  }
  if (cell.links != 0) tell_links(&cell, part, hop);
  std::int64_t latest = cell.latest, head = arrive;
  std::uint32_t position = part.first;
  for (std::uint32_t i = 0; i < part.links; ++i, ++position) {
    if (position >= part.line_links) position = 0;
    const std::uint32_t link = part.line_first + position;
    Span* at = spans_of(link);
    const std::uint32_t had = count_of(at, spans_);
    if (had == spans_) [[unlikely]] {
      head = reserve_many(link, &latest, head, length, horizon) + hop;
      continue;
    }
    std::uint32_t count = had;
    head = reserve_in(&latest, &count, at, spans_, head, length, horizon, &header_->merged) + hop;
    for (std::uint32_t n = count; n < had; ++n) at[n] = {};
  }
  cell.latest = latest;
  return head - arrive - hop * part.links;
}

ORRERY_TIMED_PATH std::int64_t LinkState::peek_links(const LinePart& part, std::int64_t hop,
                                                     std::int64_t want, std::int64_t length) const {
  LineCell& cell = lines_[part.line];
  if (cell.links != 0) tell_links(&cell, part, hop);
  const std::uint32_t link = part.line_first + part.first;
  const Span* at = spans_of(link);
  const std::uint32_t count = count_of(at, spans_);
  if (count == spans_ && at->busy < 0) [[unlikely]] {
    const MoreSpans* const more = borrowed_by(link);
    return more == nullptr ? want : find_in(more->at, more->count, want, length).start;
  }
  return find_in(at, count, want, length).start;
}

}  // namespace orrery::model
