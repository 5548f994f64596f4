// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What a message passes on its way, as quote() sees it: how many hops, which class of path (its rate), and
// which aggregates of the link state it shares with others. Part of quote(); included nowhere else.
//
// Lines, in this order. Torus: those along x, y, z, each plus and minus; links are numbered line by line.
// Dragonfly: the routers; bundles are numbered from group x groups + to. A fat tree's links are not among
// them (circuits.hpp).
#pragma once

#include "emu/model/link_state.hpp"
#include "emu/model/pricing.hpp"

#include <cstdint>

namespace orrery::model {

// Something shared that a message passes. Of an exact state all of it counts, of a decayed one `cell`,
// `links` and `price`. `line_first` and `line_links` are set for a torus line only; `links` and `before` not
// on a dragonfly's hashed and ordered paths, whose stretches are their links one by one.
struct Stretch {
  enum Kind : std::uint8_t {
    line,    // links of a torus line
    bundle,  // between two dragonfly groups
    router,  // a green or black link
    spread,  // the same, of packets that may go round it when it is loaded, one link more
  };
  std::uint32_t links;   // that many, ...
  std::uint32_t first;   // ... from this number of their line's
  std::byte* cell;       // of an exact state; of a decayed one a counter, that stands for them all
  std::uint16_t before;  // hops travelled before it
  std::uint8_t price;    // index into shared_link
  Kind kind;
  std::uint32_t line_first, line_links;  // its line's own links
  std::uint32_t unused;                  // places are shifts, not multiplications
};

struct Path {
  // A detour over a third group: two routes of five links, each a stretch, and two bundles.
  static constexpr std::uint32_t kMost = 12;
  std::uint32_t cls = 0, hops = 0;
  Picos latency;
  std::uint32_t stretches = 0;
  bool detoured = false;
  Stretch at[kMost + 1];  // the last is never one: where those that turn out not to be are written
};

// Prices of a dragonfly's shared links.
inline constexpr std::uint8_t kBundlePrice = 0, kLocalPrice = 1, kSpreadPrice = 2;

// One of a dragonfly router's servers: its green and black links by port, then the one of packets that spread
// over all of them.
constexpr LinePart router_part(RouterId router, std::uint32_t server) {
  return {router, server, 1, router * kRouterServers, kRouterServers};
}

// Which links those are, of a line or a router, in an exact state.
inline LinePart part_of(const Stretch& s, const LinkState& state) {
  const std::uint32_t line = state.line_at(s.cell);
  if (s.kind == Stretch::line) return {line, s.first, s.links, s.line_first, s.line_links};
  return router_part(line, s.first);
}

// The path of the data from `tx` to `rx`: minimal, or through the root that a hashed mode picks. Pure;
// stretches only where `state` is not nullptr, which is not looked into but for its kind.
void find_path(const Pricing& pricing, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
               const LinkState* state, Path* path);

// What is kept of the links that a path is for.
enum class Kept { nothing, intervals, counters };
constexpr Kept kept_in(const LinkState* state) {
  return state == nullptr ? Kept::nothing : state->exact() ? Kept::intervals : Kept::counters;
}

// The same where it is known what is kept, and that the network is no dragonfly (dragonfly_path_inl.hpp).
template <Kept kKept>
void find_other_path(const Pricing& pricing, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
                     const LinkState* state, Path* path);

// What a dragonfly's bundle makes a message of `bytes` wait, in picoseconds, when `level` bytes of one
// half-life go over it (decayed states).
inline std::int64_t bundle_wait(const Pricing& p, std::uint64_t level, std::uint64_t bytes) {
  const PerByte price = p.shared_link[0][kBundlePrice];
  return price(bytes).count() * queue_wait_256(utilisation_256(price(level).count())) / 256;
}
// The wait, in picoseconds, past which an adaptive message looks for a detour.
inline std::int64_t detour_past(const Pricing& p, Routing routing) {
  return p.shared_link[0][kBundlePrice](p.packet.payload).count() * bias_of(routing).add;
}

// Dragonfly, adaptive modes, between groups: takes a detour over a third group instead where the bundle is
// loaded for a message of `bytes` whose head leaves at `head`. REQUIRES: one caller at a time if `state` is
// exact.
void choose_group(const Pricing& pricing, Routing routing, std::uint64_t seed, std::uint64_t bytes,
                  std::int64_t now, std::int64_t head, NodeId tx, NodeId rx, const LinkState& state,
                  Path* path);

// Blue Gene/L, adaptive modes: takes the links of a way on which every packet goes where it can go first, for
// a message whose head comes at `head`, and returns how long it waits. `shared`: the reverse direction is
// busy. REQUIRES: `state` exact, one caller at a time.
std::int64_t walk_torus(const Pricing& pricing, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
                        std::uint64_t bytes, bool shared, std::int64_t head, std::int64_t horizon,
                        const LinkState& state);

}  // namespace orrery::model
