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
         layout.bundles * sizeof(BundleCell) + kRooms * sizeof(Room) + room_begin(kRooms) * sizeof(Span) +
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
  rooms_ = reinterpret_cast<Room*>(at);
  at += kRooms * sizeof(Room);
  room_spans_ = reinterpret_cast<Span*>(at);
  at += room_begin(kRooms) * sizeof(Span);
  links_ = reinterpret_cast<Span*>(at);
  first_nic_ = static_cast<std::uint32_t>(layout.links);
  first_bundle_ = first_nic_ + p.nodes;
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
    // Their spans are written before they are read.
    for (std::uint32_t i = 0; i < kRooms; ++i)
      new (&s.rooms_[i]) Room{.latest = INT64_MIN, .owner = Room::kNobody, .count = 0};
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

// A server that has borrowed says in all of its own spans which room it is, as a promise of less than no
// time. kRooms: it has lost that room, whose promises were over.
std::uint32_t LinkState::borrowed_by(std::uint32_t server, const Span* own) const {
  const std::int64_t which = -1 - own->busy;
  if (which < 0 || which >= kRooms) return kRooms;
  const auto room = static_cast<std::uint32_t>(which);
  // A caller that died may have left anything here.
  return rooms_[room].owner == server && rooms_[room].count <= room_capacity(room) ? room : kRooms;
}

// One of those from `first` on, before `last`; kRooms: none is free.
std::uint32_t LinkState::free_room(std::uint32_t first, std::uint32_t last, std::int64_t horizon) const {
  const std::uint32_t rooms = last - first, from = header_->lent % rooms;
  for (std::uint32_t look = 1; look <= rooms; ++look) {
    const std::uint32_t room = first + (from + look) % rooms;
    if (rooms_[room].latest <= horizon) return room;
  }
  return kRooms;
}

void LinkState::lend(std::uint32_t room, const Server& server, const Span* promised, std::uint32_t count,
                     std::int64_t latest) const {
  header_->lent = room;
  std::copy(promised, promised + count, spans_in(room));
  rooms_[room] = {.latest = latest, .owner = server.number, .count = count};
  std::fill(server.own, server.own + server.capacity,
            Span{.start = 0, .end = 1, .busy = -1 - std::int64_t{room}});
}

// Promises time of a server whose own spans are all taken. Returns when it starts.
__attribute__((noinline)) std::int64_t LinkState::reserve_many(const Server& server, std::int64_t* latest,
                                                               std::int64_t want, std::int64_t length,
                                                               std::int64_t horizon) const {
  Span* const own = server.own;
  std::uint32_t room = kRooms;
  if (own->busy >= 0) {
    room = free_room(0, kMoreSpans, horizon);
    if (room == kRooms) room = free_room(kMoreSpans, kRooms, horizon);
    if (room == kRooms) {
      // Nothing is free: its own spans will have to do.
      std::uint32_t count = server.capacity;
      const std::int64_t start =
          reserve_in(latest, &count, own, server.capacity, want, length, horizon, &header_->merged);
      std::fill(own + count, own + server.capacity, Span{});
      return start;
    }
    lend(room, server, own, server.capacity, *latest);
  } else if ((room = borrowed_by(server.number, own)) == kRooms) {
    // What it had borrowed for is over, and another server has the room.
    std::fill(own, own + server.capacity, Span{});
    own[0] = {want, want + length, length};
    *latest = std::max(*latest, want + length);
    return want;
  } else if (rooms_[room].count == room_capacity(0) && room < kMoreSpans && spans_in(room)->end > horizon) {
    // Full, and nothing in it is over.
    const std::uint32_t larger = free_room(kMoreSpans, kRooms, horizon);
    if (larger != kRooms) {
      lend(larger, server, spans_in(room), rooms_[room].count, rooms_[room].latest);
      rooms_[room] = {.latest = INT64_MIN, .owner = Room::kNobody, .count = 0};
      room = larger;
    }
  }
  Room& more = rooms_[room];
  Span* const spans = spans_in(room);
  const std::int64_t start = reserve_in(&more.latest, &more.count, spans, room_capacity(room), want, length,
                                        horizon, &header_->merged);
  *latest = std::max(*latest, more.latest);
  if (more.count >= server.capacity) return start;
  // It does without again. Fewer than its own, so that it does not borrow at once.
  std::copy(spans, spans + more.count, own);
  std::fill(own + more.count, own + server.capacity, Span{});
  more.owner = Room::kNobody;
  more.latest = INT64_MIN;
  return start;
}

// The start that reserving would find, of a server that has borrowed.
std::int64_t LinkState::peek_many(std::uint32_t server, const Span* own, std::int64_t want,
                                  std::int64_t length) const {
  const std::uint32_t room = borrowed_by(server, own);
  return room == kRooms ? want : find_in(spans_in(room), rooms_[room].count, want, length).start;
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
    const std::uint32_t had = spans_used(at, spans_);
    if (had == spans_) [[unlikely]] {
      head = reserve_many({link, at, spans_}, &latest, head, length, horizon) + hop;
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
  const std::uint32_t count = spans_used(at, spans_);
  if (count == spans_ && at->busy < 0) [[unlikely]]
    return peek_many(link, at, want, length);
  return find_in(at, count, want, length).start;
}

}  // namespace orrery::model
