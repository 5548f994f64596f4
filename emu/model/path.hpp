// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What a message passes on its way, as quote() sees it: how many hops, which class of path (its rate), and
// which aggregates of the link state it shares with others. Part of quote(), nobody else includes it.
//
// Aggregates, in this order. Torus: the lines along x, y, z, each plus and minus. Dragonfly: the bundle
// between every two groups, then one of each router for its green and black links, which are told apart
// by bits. Fat tree: the subtrees of each level, up and down.
#pragma once

#include "emu/model/link_state.hpp"
#include "emu/model/pricing.hpp"

#include <cstdint>

namespace orrery::model {

// One aggregate that a message passes.
struct Stretch {
  std::uint32_t aggregate;  // of an exact state
  std::uint32_t counter;    // the same of a decayed state
  std::uint16_t before;     // hops travelled before it
  std::uint16_t skew;       // hops that time is skewed by
  std::uint16_t line;       // the greatest skew of the aggregate
  std::uint8_t price;       // index into shared_link
  bool round;               // its packets may go round a loaded link, one link more
  std::uint64_t heeds;      // links that must be free
  std::uint64_t takes;      // links that it occupies
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

inline constexpr std::uint64_t kAllLinks = ~std::uint64_t{0};
// Prices of a dragonfly's shared links.
inline constexpr std::uint8_t kBundlePrice = 0, kLocalPrice = 1, kSpreadPrice = 2;
// A router's green and black links are bits 0..29 of its aggregate; this one stands for packets that
// spread over all of them.
inline constexpr std::uint64_t kSpread = std::uint64_t{1} << Dragonfly::kLocal;

// The path of the data from `tx` to `rx`: minimal, or through the root that a hashed mode picks. Pure;
// stretches only where `state` is not nullptr, which is not looked into but for its kind.
void find_path(const Pricing& pricing, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
               const LinkState* state, Path* path);

// Dragonfly, adaptive modes, between groups: takes a detour over a third group instead where the bundle is
// loaded for a message of `bytes` whose head leaves at `head`. REQUIRES: `state` held if exact.
void choose_group(const Pricing& pricing, Routing routing, std::uint64_t seed, std::uint64_t bytes,
                  std::int64_t now, std::int64_t head, NodeId tx, NodeId rx, const LinkState& state,
                  Path* path);

}  // namespace orrery::model
