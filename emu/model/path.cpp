// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/dragonfly_path_inl.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/model/stretches.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace orrery::model {

namespace {

// Which dimensions (as bits) are travelled before x, y and z where those of the index's bits go minus:
// X+ Y+ Z+ X- Y- Z-.
constexpr std::uint8_t kBefore[8][3] = {{0, 1, 3}, {6, 0, 2}, {0, 5, 1}, {4, 5, 0},
                                        {0, 1, 3}, {2, 0, 3}, {0, 1, 3}, {0, 1, 3}};

// What a torus path is made of, before it is cut into lines.
struct TorusWay {
  Coordinates from, to;
  std::uint32_t counts[3], down[3];  // hops by dimension, and whether they go minus
  std::uint64_t ties;
};

// Which dimensions are travelled and in which order is as good as random, so there are no branches: each
// dimension's stretch is written where its turn is, one without hops past the last.
template <Kept kKept>
void torus_stretches(const Torus& t, const TorusWay& way, const std::uint8_t* order,
                     const Stretches<kKept> to) {
  const auto& g = t.grid();
  const std::uint32_t base[3] = {0, 2 * g[1] * g[2], 2 * (g[1] * g[2] + g[0] * g[2])};
  // The other two dimensions, which name a line.
  static constexpr std::uint8_t kAcross[3][2] = {{1, 2}, {0, 2}, {0, 1}};
#pragma GCC unroll 3
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::size_t a = kAcross[i][0], b = kAcross[i][1];
    const std::uint32_t n = g[i], count = way.counts[i], down = way.down[i], earlier = order[i];
    // All ones where the other dimension has been travelled.
    const std::uint32_t done_a = 0u - (earlier >> a & 1), done_b = 0u - (earlier >> b & 1);
    // The line lies at the coordinates reached when the dimension is entered.
    const std::uint32_t at_a = way.from.at[a] ^ ((way.from.at[a] ^ way.to.at[a]) & done_a);
    const std::uint32_t at_b = way.from.at[b] ^ ((way.from.at[b] ^ way.to.at[b]) & done_b);
    const std::uint32_t within = 2 * (at_a + g[a] * at_b) + down;
    // Positions along the direction of travel, so that plus and minus share the arithmetic.
    const std::uint32_t position = (way.from.at[i] ^ (0u - down)) + (n & (0u - down));
    const std::uint32_t line_first = 2 * i * t.routers() + within * n;
    std::uint32_t server = base[i] + within;
    if constexpr (kKept == Kept::counters) {
      // One link of those that are crossed stands for all.
      const std::uint32_t drawn =
          position + (static_cast<std::uint32_t>(way.ties >> (16 * i + 8) & 0xffff) * count >> 16);
      server = line_first + drawn - (drawn >= n ? n : 0);
    }
    std::byte* const cell = to.line(server);
    prefetch_to_write(cell);
    const std::uint32_t turn = (static_cast<std::uint32_t>(way.counts[a] != 0) & done_a) +
                               (static_cast<std::uint32_t>(way.counts[b] != 0) & done_b);
    const std::uint32_t travelled = (way.counts[a] & done_a) + (way.counts[b] & done_b);
    const std::size_t at = sizeof(Stretch) * (turn | 3 * static_cast<std::uint32_t>(count == 0));
    to.put(at, cell, travelled, i, Stretch::line);
    to.put_links(at, position, count);
    if constexpr (kKept == Kept::intervals) to.put_line(at, line_first, n);
  }
}

template <Kept kKept>
void torus_path(const Pricing& p, Routing routing, std::uint64_t seed, NodeId src, NodeId dst,
                const LinkState* state, Path* path) {
  const Torus& t = p.torus;
  const auto& g = t.grid();
  TorusWay way;
  way.from = t.router_coordinates(t.router_of(src));
  way.to = t.router_coordinates(t.router_of(dst));
  way.ties = path_seed(routing, seed, src, dst);
  std::uint32_t minus = 0, used = 0, cls = 0;
#pragma GCC unroll 3
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto n = static_cast<std::int32_t>(g[i]);
    const auto delta = static_cast<std::int32_t>(way.to.at[i]) - static_cast<std::int32_t>(way.from.at[i]);
    const std::int32_t plain = std::abs(delta), round = n - plain;
    // The other way round changes the sign; half way round is a tie.
    const bool closed = t.shape().closed[i], other = closed & (round < plain),
               tie = closed & (round == plain);
    const bool by_seed = static_cast<bool>((way.ties >> i) & 1);
    way.counts[i] = static_cast<std::uint32_t>(other ? round : plain);
    way.down[i] = static_cast<std::uint32_t>((tie & by_seed) | (!tie & ((delta < 0) != other)));
    minus |= way.down[i] << i;
    cls |= static_cast<std::uint32_t>(way.counts[i] != 0) << i;
    used += way.counts[i] != 0;
  }
  path->cls = cls;
  path->hops = way.counts[0] + way.counts[1] + way.counts[2];
  path->latency = p.hop * path->hops;
  if constexpr (kKept == Kept::nothing) return;
  path->stretches = used;
  // Blue Gene's deterministic packets go x, y, z whatever the sign.
  const bool by_dimension = p.network == Network::bluegene_torus && !is_adaptive(routing);
  const std::uint8_t* order = kBefore[by_dimension ? 0 : minus];
  torus_stretches(t, way, order, Stretches<kKept>(state, path));
}

// Which links a circuit takes is not the path's business (circuits.hpp).
void tree_path(const Pricing& p, NodeId src, NodeId dst, Path* path) {
  if (src == dst) return;
  const std::uint32_t level = FatTree::nca_level(src, dst);
  path->cls = level + 1;
  path->hops = 2 * level + 1;
  path->latency = p.tree_latency[path->cls];
}

// Delay that a bundle would cause a message whose head leaves at `head`, in picoseconds: what the adaptive
// choice compares.
std::int64_t bundle_load(const Pricing& p, const LinkState& state, std::uint32_t bundle, std::uint64_t bytes,
                         std::int64_t now, std::int64_t head) {
  if (!state.exact()) return bundle_wait(p, state.level(bundle, now), bytes);
  // One hop on, where a message without local links reserves it.
  const std::int64_t arrive = head + p.hop.count();
  const PerByte price = p.shared_link[0][kBundlePrice];
  return state.peek_bundle(bundle, arrive, price(bytes).count()) - arrive;
}

}  // namespace

template <Kept kKept>
void find_other_path(const Pricing& p, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
                     const LinkState* state, Path* path) {
  switch (p.network) {
    case Network::gemini_torus:
    case Network::seastar_torus:
    case Network::bluegene_torus:
      return torus_path<kKept>(p, routing, seed, tx, rx, state, path);
    case Network::fat_tree:
      return tree_path(p, tx, rx, path);
    case Network::dragonfly:
    case Network::crossbar:
      return;
  }
}

using FindPath = void(const Pricing&, Routing, std::uint64_t, NodeId, NodeId, const LinkState*, Path*);
template FindPath find_other_path<Kept::nothing>;
template FindPath find_other_path<Kept::intervals>;
template FindPath find_other_path<Kept::counters>;

ORRERY_TIMED_PATH void find_path(const Pricing& p, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
                                 const LinkState* state, Path* path) {
  const auto find = [&]<Kept kKept> {
    p.network == Network::dragonfly ? dragonfly_path<kKept>(p, routing, seed, tx, rx, state, path)
                                    : find_other_path<kKept>(p, routing, seed, tx, rx, state, path);
  };
  switch (kept_in(state)) {
    case Kept::nothing:
      return find.operator()<Kept::nothing>();
    case Kept::intervals:
      return find.operator()<Kept::intervals>();
    case Kept::counters:
      return find.operator()<Kept::counters>();
  }
}

void choose_group(const Pricing& p, Routing routing, std::uint64_t seed, std::uint64_t bytes,
                  std::int64_t now, std::int64_t head, NodeId tx, NodeId rx, const LinkState& state,
                  Path* path) {
  const Dragonfly& d = p.dragonfly;
  const RouterId from = d.router_of(tx), to = d.router_of(rx);
  const std::uint32_t a = d.group_of_router(from), b = d.group_of_router(to), groups = d.groups();
  if (a == b || groups < 3) return;
  // Two non-minimal candidates against the one bundle that all minimal routes share.
  const AdaptiveBias bias = bias_of(routing);
  const std::int64_t direct = bundle_load(p, state, a * groups + b, bytes, now, head);
  const std::int64_t extra = detour_past(p, routing);
  if (direct <= extra) return;
  Choices pick(mix64(seed ^ static_cast<std::uint64_t>(now)));
  std::int64_t lightest = direct;
  std::uint32_t via = groups;
  for (int i = 0; i < kNonMinimalCandidates; ++i) {
    const std::uint32_t c = pick.below(groups);
    if (c == a || c == b) continue;
    const std::int64_t load = std::max(bundle_load(p, state, a * groups + c, bytes, now, head),
                                       bundle_load(p, state, c * groups + b, bytes, now, head));
    const std::int64_t weighted = (load << bias.shift) + extra;
    if (weighted < lightest) {
      lightest = weighted;
      via = c;
    }
  }
  if (via == groups) return;
  const std::uint32_t local = pick.below(d.chassis_in(via) * Dragonfly::kSlots);
  const auto both = [&]<Kept kKept>(const GroupLinks<kKept>& on) {
    const Place start = on.place(from), root = on.place_in(via, local), end = on.place(to);
    const Crossing up = choose_crossing(on, start, root, mix64(seed), 0);
    const Crossing down = choose_crossing(on, root, end, mix64(seed + 1), 0);
    return add_crossing<kKept, true>(on, down, add_crossing<kKept, true>(on, up, {}));
  };
  const Come come = state.exact() ? both(GroupLinks<Kept::intervals>(d, &state, path))
                                  : both(GroupLinks<Kept::counters>(d, &state, path));
  set_length(p, come, 2, path);
  path->detoured = true;
}

}  // namespace orrery::model
