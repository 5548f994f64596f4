// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Blue Gene/L's dynamic packets: at every router the hinted direction whose link is free first. Used where a
// line of the message's way is not idle; until then all ways are as good.
#include "emu/model/path.hpp"

#include <algorithm>
#include <limits>

namespace orrery::model {

namespace {

struct Walk {
  const Pricing& p;
  const LinkState& state;
  std::int64_t horizon;
  Coordinates from;
  std::uint32_t left[3];  // hops to go, by dimension
  std::uint32_t down[3];  // whether they go minus

  LinePart link(std::uint32_t i, const Coordinates& at) const {
    const auto& g = p.torus.grid();
    static constexpr std::uint8_t kAcross[3][2] = {{1, 2}, {0, 2}, {0, 1}};
    const std::uint32_t base[3] = {0, 2 * g[1] * g[2], 2 * (g[1] * g[2] + g[0] * g[2])};
    const std::size_t a = kAcross[i][0], b = kAcross[i][1];
    const std::uint32_t within = 2 * (at.at[a] + g[a] * at.at[b]) + down[i], n = g[i];
    const std::uint32_t first = 2 * i * p.torus.routers() + within * n;
    return {base[i] + within, down[i] != 0 ? n - 1 - at.at[i] : at.at[i], 1, first, n};
  }

  // One packet, or as many as go the same way: how long its head waits in all.
  std::int64_t go(std::int64_t head, std::int64_t length, std::uint64_t ties) const {
    const auto& g = p.torus.grid();
    const std::int64_t hop = p.hop.count();
    Coordinates at = from;
    std::uint32_t to_go[3] = {left[0], left[1], left[2]};
    std::int64_t waited = 0;
    for (std::uint32_t n = left[0] + left[1] + left[2]; n > 0; --n) {
      std::uint32_t best = 3;
      std::int64_t soonest = std::numeric_limits<std::int64_t>::max();
      LinePart taken{};
      // Ties go to the dimension that the message's seed says.
      for (std::uint32_t k = 0, i = static_cast<std::uint32_t>((ties >> 8) % 3); k < 3;
           ++k, i = i == 2 ? 0 : i + 1) {
        if (to_go[i] == 0) continue;
        const LinePart part = link(i, at);
        const std::int64_t start = state.peek_link(part, hop, head, length);
        if (start >= soonest) continue;
        soonest = start;
        best = i;
        taken = part;
      }
      const std::int64_t wait = state.reserve_line(taken, hop, head, length, horizon);
      waited += wait;
      head += wait + hop;
      ties = mix64(ties);
      --to_go[best];
      std::uint32_t& c = at.at[best];
      c = down[best] != 0 ? (c == 0 ? g[best] - 1 : c - 1) : (c + 1 == g[best] ? 0 : c + 1);
    }
    return waited;
  }
};

}  // namespace

std::int64_t walk_torus(const Pricing& p, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
                        std::uint64_t bytes, bool shared, std::int64_t head, std::int64_t horizon,
                        const LinkState& state) {
  const Torus& t = p.torus;
  const std::uint64_t ties = path_seed(routing, seed, tx, rx);
  Walk walk{p, state, horizon, t.router_coordinates(t.router_of(tx)), {}, {}};
  const auto steps = t.steps_between(walk.from, t.router_coordinates(t.router_of(rx)), ties);
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    walk.down[i] = steps[i] < 0;
    walk.left[i] = static_cast<std::uint32_t>(steps[i] < 0 ? -steps[i] : steps[i]);
    used += steps[i] != 0;
  }
  // A long message's packets use its dimensions side by side.
  const std::uint64_t packets = (bytes + p.packet.payload - 1) / p.packet.payload;
  const std::uint64_t parts = std::max<std::uint64_t>(1, std::min(used, packets));
  const std::int64_t length = p.shared_link[shared][0]((bytes + parts - 1) / parts).count();
  std::int64_t waited = 0;
  for (std::uint64_t part = 0; part < parts; ++part)
    waited = std::max(waited, walk.go(head, length, mix64(ties + part)));
  return waited;
}

}  // namespace orrery::model
