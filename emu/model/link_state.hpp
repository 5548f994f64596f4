// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What the network is busy with: the only thing about quote() that is not pure. A block of memory that
// the caller owns, private or shared between processes (offsets, fixed widths, no pointers).
//
// Two kinds:
// - exact, for callers ordered by time (virtual clock): every server keeps the spans of time that it has
//   promised (promises.hpp). Servers: every NIC's receive side; on a torus every link (what is parallel in
//   one direction of a router is one server, as fast as all of it); on a dragonfly the bundle between two
//   groups and every green and black link; on a fat tree and on a crossbar nothing but the NICs.
//   Links come in lines: a torus line in one direction, or a dragonfly router's green and black links. The
//   one message that found a line idle is kept for the whole line, and one more beside it where each takes
//   one link and these are two; only when others come before those have passed do links get spans of their
//   own. So a message through quiet lines touches one cache line of each, however long its way, and a detour
//   that crosses a router a second time no other.
// - decayed, for callers that are not ordered (wall clock): a byte counter that loses half of its value every
//   kHalfLife; utilisation becomes a mean queueing delay (M/D/1). On a torus a message is counted on one
//   link of each line, drawn by its seed, for all that it crosses there. A dragonfly's green and black
//   links have one counter each, besides the one of their router.
// A fat tree's links have counters in both kinds, which circuits wait by (circuits.hpp).
//
// Invariants:
// 1. The exact kind has no lock of its own: ordered callers come one at a time, and what hands one its turn
//    (the virtual clock's token) orders its changes before the next one's. Decayed counters change by single
//    atomic loads and stores: of two processes that count in the same one at the same moment one may be lost.
//    They are a mean, a locked instruction in each is not worth its price. So does a NIC's transmit side.
// 2. A process may die at any instruction: a half-made change is at worst one span lost or one too many, and
//    any content of a cell is read without harm.
// 3. Spans that ended before a caller's horizon are dropped. In ordered use no later caller can want them.
// 4. A server that has more promises than spans of its own borrows room for many (Room) until they are over.
//    When that is all lent out, two neighbouring spans become one that is only partly promised: exact no
//    more, counted in merged(). Zero: exact. No more time is promised for it than was asked for.
//
//   std::vector<std::byte> memory(LinkState::bytes_needed(pricing, LinkState::Kind::exact));
//   auto state = LinkState::create(memory, pricing, LinkState::Kind::exact);
#pragma once

#include "emu/base/prefetch.hpp"
#include "emu/base/status.hpp"
#include "emu/model/circuits.hpp"
#include "emu/model/decayed_counter.hpp"
#include "emu/model/pricing.hpp"
#include "emu/model/promises.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace orrery::model {

// Of a dragonfly router: its green and black links, and one that stands for all of them together.
inline constexpr std::uint32_t kRouterServers = Dragonfly::kLocal + 1;

struct alignas(64) BundleCell {
  Promises<4> promises;
};
static_assert(sizeof(BundleCell) == 128);

// A torus line in one direction, its links numbered along that direction; or a dragonfly router.
// Laid out as promises of one span are, so that a message that takes one quiet thing writes the same words
// into either (take_quiet).
struct alignas(64) LineCell {
  std::int64_t latest;         // nothing that was promised on its links ends later
  std::uint32_t links;         // that many, ...
  std::uint32_t first;         // ... from this number of its own, each a hop later, are taken by ...
  std::int64_t start, unused;  // ... the one message not yet in the links' own spans; links 0: none
  std::int64_t length;
  // Equal to `start`: a second message, on another one link, is not in its link's spans either. Any other
  // number: what was kept beside an earlier first message, and is over.
  std::int64_t beside = INT64_MIN;
  std::int64_t second_start;
  std::uint32_t second_first;
  std::uint32_t second_length;  // ps
};
static_assert(sizeof(LineCell) == 64 && offsetof(LineCell, latest) == offsetof(Promises<4>, latest) &&
              offsetof(LineCell, links) == offsetof(Promises<4>, count) &&
              offsetof(LineCell, start) == offsetof(Promises<4>, at) + offsetof(Span, start) &&
              offsetof(LineCell, length) == offsetof(Promises<4>, at) + offsetof(Span, busy) &&
              offsetof(LineCell, first) == 12 && sizeof(Span) == 24 && offsetof(Promises<4>, at) == 16);

// Where a message goes along one line: `links` of its links, from number `first` of the line's, which are
// `line_links` and number `line_first` of all the first; round the end of the line where they go past it.
struct LinePart {
  std::uint32_t line, first, links, line_first, line_links;
};

// Room for the promises of a server that has many. Free as soon as the last of them is over: the server that
// borrowed it sees by `owner` that another one has it. Its spans lie behind all rooms.
struct Room {
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  std::int64_t latest;
  std::uint32_t owner, count;
};
static_assert(sizeof(Room) == 16);
inline constexpr std::uint32_t kMoreSpans = 512;  // servers that may have many promises at a time, ...
inline constexpr std::uint32_t kMostSpans = 32;   // ... and very many
inline constexpr std::uint32_t kRooms = kMoreSpans + kMostSpans;
constexpr std::uint32_t room_capacity(std::uint32_t room) { return room < kMoreSpans ? 31 : 1023; }
constexpr std::size_t room_begin(std::uint32_t room) {
  return room < kMoreSpans ? std::size_t{room} * room_capacity(0)
                           : std::size_t{kMoreSpans} * room_capacity(0) +
                                 std::size_t{room - kMoreSpans} * room_capacity(kMoreSpans);
}

struct alignas(16) CounterCell {
  DecayedCounter counter;
};
static_assert(sizeof(CounterCell) == 16);

// What both kinds keep of a NIC, written by every process of the node and by those that send to it.
struct NicCell {
  std::atomic<std::int64_t> transmit_free;  // when the next operation may start
  std::atomic<std::int64_t> receive_until;  // when the last promised arrival ends
  // When its block engine may take the next descriptor; on a fat tree until when its circuits are counted.
  std::atomic<std::int64_t> engine;
};

struct alignas(64) ExactNicCell {
  NicCell nic;
  Promises<6> receive;
};
static_assert(sizeof(ExactNicCell) == 192 && offsetof(ExactNicCell, receive) == 24);

struct alignas(64) DecayedNicCell {
  NicCell nic;
  DecayedCounter receive;
  std::atomic<std::uint32_t> last_source;  // of a circuit to it, fat tree only
};
static_assert(sizeof(DecayedNicCell) == 64 && offsetof(DecayedNicCell, receive) == 24);

// First bytes of the block.
struct alignas(64) LinkStateHeader {
  std::uint64_t magic;
  std::uint32_t version, kind;
  std::uint32_t nodes, cells;
  std::uint64_t size;
  std::atomic<std::uint64_t> merged;  // intervals made inexact
  std::uint32_t lent;                 // exact kind: which room was lent last
};
static_assert(sizeof(LinkStateHeader) == 64 && offsetof(LinkStateHeader, merged) == 32);

class LinkState {
 public:
  enum class Kind : std::uint32_t { exact = 1, decayed = 2 };
  static constexpr std::uint64_t kMagic = 0x4f525245'4c494e4bu;
  static constexpr std::uint32_t kVersion = 13;

  LinkState() = default;

  static std::size_t bytes_needed(const Pricing& pricing, Kind kind);
  // Lines and bundles (exact), or counters (decayed).
  static std::uint32_t cells(const Pricing& pricing, Kind kind);
  // Lays a quiet network out in `memory`, which must outlive the object and be aligned to 64 bytes.
  // Outcomes: Errc::alignment; Errc::size where it is shorter than bytes_needed().
  static Result<LinkState> create(std::span<std::byte> memory, const Pricing& pricing, Kind kind);
  // Uses a block that another process laid out. Outcomes: Errc::corrupt where it is not one of this
  // machine and version; Errc::alignment, Errc::size as above.
  static Result<LinkState> attach(std::span<std::byte> memory, const Pricing& pricing);

  Kind kind() const { return kind_; }
  bool exact() const { return kind_ == Kind::exact; }
  std::uint64_t merged() const { return header_->merged.load(std::memory_order_relaxed); }

  NicCell& nic(NodeId node) const { return exact() ? exact_nics_[node].nic : decayed_nics_[node].nic; }
  // The same for a caller that knows the kind.
  template <Kind kKind>
  NicCell& nic_of(NodeId node) const {
    if constexpr (kKind == Kind::exact) return exact_nics_[node].nic;
    return decayed_nics_[node].nic;
  }

  // A fat tree's links.
  CircuitCell* circuits() const { return circuits_; }

  // Where the things that messages share lie: the lines of an exact state one after the other, then its
  // bundles; the counters of a decayed one.
  std::byte* lines() const { return reinterpret_cast<std::byte*>(lines_); }
  std::byte* bundles() const { return reinterpret_cast<std::byte*>(bundles_); }
  std::byte* counters() const { return reinterpret_cast<std::byte*>(counters_); }
  static DecayedCounter& counter_at(std::byte* cell) { return reinterpret_cast<CounterCell*>(cell)->counter; }
  std::uint32_t line_at(const std::byte* cell) const {
    return static_cast<std::uint32_t>(reinterpret_cast<const LineCell*>(cell) - lines_);
  }
  std::uint32_t bundle_at(const std::byte* cell) const {
    return static_cast<std::uint32_t>(reinterpret_cast<const BundleCell*>(cell) - bundles_);
  }
  // Promises `length` from `want` on, in the cell of a line, of `links` links each a `hop` later (number
  // `first` of the line is the first), or of a bundle (1), if nothing that was promised there ends after
  // `horizon`: what reserve_line() and reserve_bundle() then do. False: nothing was done. REQUIRES: one
  // caller at a time; length > 0.
  static bool take_quiet(std::byte* cell, std::uint32_t first, std::uint32_t links, std::int64_t hop,
                         std::int64_t want, std::int64_t length, std::int64_t horizon) {
    std::int64_t latest;
    std::memcpy(&latest, cell, sizeof latest);
    if (latest > horizon) [[unlikely]]
      return false;
    const auto store = [cell](std::size_t at, auto word) { std::memcpy(cell + at, &word, sizeof word); };
    store(0, want + hop * (links - 1) + length);
    store(8, links);
    store(12, first);
    store(16, want);
    store(24, want + length);
    store(32, length);
    return true;
  }

  // Exact kind; REQUIRES for all of these: one caller at a time. Promises `length` at or after `want` and
  // returns when it starts. `horizon`: promises that end before it are over.
  std::int64_t reserve_bundle(std::uint32_t bundle, std::int64_t want, std::int64_t length,
                              std::int64_t horizon) const {
    return reserve_in_cell(&bundles_[bundle].promises, first_bundle_ + bundle, want, length, horizon);
  }
  std::int64_t reserve_receive(NodeId node, std::int64_t want, std::int64_t length,
                               std::int64_t horizon) const {
    return reserve_in_cell(&exact_nics_[node].receive, first_nic_ + node, want, length, horizon);
  }
  // A way along a line for a head that comes at `arrive` and needs `hop` from link to link. Returns how long
  // it waits, all in all.
  std::int64_t reserve_line(const LinePart& part, std::int64_t hop, std::int64_t arrive, std::int64_t length,
                            std::int64_t horizon) const {
    LineCell& cell = lines_[part.line];
    if (cell.latest <= horizon) [[likely]] {
      cell.latest = arrive + hop * (part.links - 1) + length;
      cell.start = arrive;
      cell.length = length;
      cell.first = part.first;
      cell.links = part.links;
      return 0;
    }
    return reserve_links(part, hop, arrive, length, horizon);
  }
  // Nothing in the line reaches past `now`: a reservation would start when it wants to.
  bool line_idle(std::uint32_t line, std::int64_t now) const { return lines_[line].latest <= now; }
  // The start that reserving would find, with no time promised. `part`: one link.
  std::int64_t peek_link(const LinePart& part, std::int64_t hop, std::int64_t want,
                         std::int64_t length) const {
    return lines_[part.line].latest <= want ? want : peek_links(part, hop, want, length);
  }
  std::int64_t peek_bundle(std::uint32_t bundle, std::int64_t want, std::int64_t length) const {
    const Promises<4>& cell = bundles_[bundle].promises;
    if (cell.latest > want && cell.count >= 4 && cell.at[0].busy < 0) [[unlikely]]
      return peek_many(first_bundle_ + bundle, cell.at, want, length);
    return peek(cell, want, length);
  }

  // Decayed kind. The bytes of one half-life at the present rate; writes nothing.
  std::uint64_t level(std::uint32_t aggregate, const DecayMoment& now) const {
    return level_of(counters_[aggregate].counter, now);
  }
  // Adds `bytes` and returns the sums before them.
  DecayedSums add_received(NodeId node, const DecayMoment& now, std::uint64_t bytes) const {
    return add_bytes(decayed_nics_[node].receive, now, bytes);
  }
  // Whether the circuit before this one to `node` was of the same source, which then had ended.
  bool same_source(NodeId node, NodeId source) const {
    std::atomic<std::uint32_t>& last = decayed_nics_[node].last_source;
    if (last.load(std::memory_order_relaxed) == source) return true;
    last.store(source, std::memory_order_relaxed);
    return false;
  }
  std::uint64_t level_receive(NodeId node, const DecayMoment& now) const {
    return level_of(decayed_nics_[node].receive, now);
  }

 private:
  std::int64_t reserve_links(const LinePart& part, std::int64_t hop, std::int64_t arrive, std::int64_t length,
                             std::int64_t horizon) const;
  std::int64_t peek_links(const LinePart& part, std::int64_t hop, std::int64_t want,
                          std::int64_t length) const;
  Span* spans_of(std::uint32_t link) const { return &links_[std::size_t{link} * spans_]; }
  // A server that promises, in numbers: the links, the NICs' receive sides, the bundles.
  struct Server {
    std::uint32_t number;
    Span* own;               // all of its spans are taken
    std::uint32_t capacity;  // so many are its own
  };
  Span* spans_in(std::uint32_t room) const { return room_spans_ + room_begin(room); }
  std::uint32_t borrowed_by(std::uint32_t server, const Span* own) const;
  std::uint32_t free_room(std::uint32_t first, std::uint32_t last, std::int64_t horizon) const;
  void lend(std::uint32_t room, const Server& server, const Span* promised, std::uint32_t count,
            std::int64_t latest) const;
  std::int64_t reserve_many(const Server& server, std::int64_t* latest, std::int64_t want,
                            std::int64_t length, std::int64_t horizon) const;
  std::int64_t peek_many(std::uint32_t server, const Span* own, std::int64_t want, std::int64_t length) const;
  template <std::uint32_t kSpans>
  std::int64_t reserve_in_cell(Promises<kSpans>* cell, std::uint32_t number, std::int64_t want,
                               std::int64_t length, std::int64_t horizon) const {
    if (length <= 0) return want;
    if (cell->latest <= horizon || cell->count < kSpans) [[likely]]
      return reserve(*cell, want, length, horizon, &header_->merged);
    const std::int64_t start = reserve_many({number, cell->at, kSpans}, &cell->latest, want, length, horizon);
    cell->count = spans_used(cell->at, kSpans);
    return start;
  }
  static std::uint32_t spans_used(const Span* at, std::uint32_t capacity) {
    std::uint32_t count = 0;
    while (count < capacity && at[count].end > at[count].start) ++count;
    return count;
  }
  void tell_links(LineCell* cell, const LinePart& part, std::int64_t hop) const;
  void tell_link(std::uint32_t link, std::int64_t start, std::int64_t length) const;
  void point_at(std::span<std::byte> memory, const Pricing& pricing, Kind kind);

  Kind kind_ = Kind::exact;
  LinkStateHeader* header_ = nullptr;
  ExactNicCell* exact_nics_ = nullptr;              // exact
  LineCell* lines_ = nullptr;                       // exact, torus and dragonfly
  Span* links_ = nullptr;                           // exact, torus and dragonfly; `spans_` for each link
  Room* rooms_ = nullptr;                           // exact: kRooms of them
  Span* room_spans_ = nullptr;                      // exact
  std::uint32_t spans_ = 0;                         // of a link
  std::uint32_t first_nic_ = 0, first_bundle_ = 0;  // numbers as servers
  BundleCell* bundles_ = nullptr;                   // exact, dragonfly
  DecayedNicCell* decayed_nics_ = nullptr;          // decayed
  CounterCell* counters_ = nullptr;                 // decayed
  CircuitCell* circuits_ = nullptr;                 // fat tree
};

// Utilisation, in units of 1/256 and capped at 255, of something busy for `busy` ps of each half-life.
inline std::uint32_t utilisation_256(std::int64_t busy) {
  return static_cast<std::uint32_t>(std::min<std::int64_t>(busy / (kHalfLife.count() / 256), 255));
}

// Whether that is 0.
constexpr bool is_idle(std::int64_t busy) { return busy < kHalfLife.count() / 256; }
// The most bytes of a half-life for which that is 0 at a price.
constexpr std::uint64_t idle_bytes(PerByte price) {
  constexpr std::uint64_t kStep = (std::uint64_t{kHalfLife.count() / 256} << PerByte::kShift) - 1;
  return price.scaled() == 0 ? ~std::uint64_t{0} : kStep / price.scaled();
}

// Mean wait of an M/D/1 queue, in service times, at a utilisation of `per_256` / 256, capped at 255.
// In units of 1/256 service time.
std::uint32_t queue_wait_256(std::uint32_t per_256);

}  // namespace orrery::model
