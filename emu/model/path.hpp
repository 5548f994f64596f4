// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What a message passes on its way, as quote() sees it: how many hops, which class of path (its rate), and
// which aggregates of the link state it shares with others. Part of quote(), nobody else includes it.
//
// Lines, in this order. Torus: those along x, y, z, each plus and minus; links are numbered line by line.
// Dragonfly: the routers; bundles are numbered from group x groups + to. Fat tree: bundles are the subtrees
// of each level, up and down.
#pragma once

#include "emu/model/link_state.hpp"
#include "emu/model/pricing.hpp"

#include <cstdint>

namespace orrery::model {

// Something shared that a message passes.
struct Stretch {
  enum Kind : std::uint8_t {
    line,    // links of a torus line
    bundle,  // `part.line` is the bundle, the rest of `part` is not used
    router,  // a green or black link
    spread,  // the same, of packets that may go round it when it is loaded, one link more
  };
  LinePart part;          // of an exact state
  std::uint32_t counter;  // of a decayed state, that stands for
  std::uint16_t links;    // this many links
  std::uint16_t before;   // hops travelled before it
  std::uint8_t price;     // index into shared_link
  Kind kind;
};

struct Path {
  // A detour over a third group: two routes of five links, each a stretch, and two bundles.
  static constexpr std::uint32_t kMost = 12;
  std::uint32_t cls = 0, hops = 0;
  Picos latency;
  std::uint32_t stretches = 0;
  bool detoured = false;
  Stretch at[kMost];
};

// Prices of a dragonfly's shared links.
inline constexpr std::uint8_t kBundlePrice = 0, kLocalPrice = 1, kSpreadPrice = 2;

// One of a dragonfly router's servers: its green and black links by port, then the one of packets that spread
// over all of them.
constexpr LinePart router_part(RouterId router, std::uint32_t server) {
  return {router, router * kRouterServers + server, 1, router * kRouterServers, kRouterServers};
}

// The path of the data from `tx` to `rx`: minimal, or through the root that a hashed mode picks. Pure;
// stretches only where `state` is not nullptr, which is not looked into but for its kind.
void find_path(const Pricing& pricing, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
               const LinkState* state, Path* path);

// Dragonfly, adaptive modes, between groups: takes a detour over a third group instead where the bundle is
// loaded for a message of `bytes` whose head leaves at `head`. REQUIRES: `state` held if exact.
void choose_group(const Pricing& pricing, Routing routing, std::uint64_t seed, std::uint64_t bytes,
                  std::int64_t now, std::int64_t head, NodeId tx, NodeId rx, const LinkState& state,
                  Path* path);

// Blue Gene/L, adaptive modes: takes the links of a way on which every packet goes where it can go first, for
// a message whose head comes at `head`, and returns how long it waits. REQUIRES: `state` exact and held.
std::int64_t walk_torus(const Pricing& pricing, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
                        std::uint64_t bytes, std::int64_t head, std::int64_t horizon, const LinkState& state);

}  // namespace orrery::model
