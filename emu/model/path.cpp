// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/path.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace orrery::model {

namespace {

void add_bundle(Path* path, std::uint32_t bundle, std::uint32_t before, std::uint8_t price) {
  path->at[path->stretches++] = {{bundle, 0, 0, 0, 0}, bundle, 1, static_cast<std::uint16_t>(before), price,
                                 Stretch::bundle};
}

void prefetch_bundle(const LinkState& state, std::uint32_t bundle) {
  if (state.exact()) {
    state.prefetch_bundle(bundle);
  } else {
    state.prefetch_counter(bundle);
  }
}

// A torus line's part, as stretch `slot`. Put together as four words: ten narrow stores are a third of what a
// torus path costs.
void put(Path* path, std::uint32_t slot, const LinePart& part, std::uint32_t counter, std::uint32_t before,
         std::uint32_t price) {
  static_assert(std::endian::native == std::endian::little && sizeof(Stretch) == 32 &&
                offsetof(LinePart, first) == 4 && offsetof(LinePart, links) == 8 &&
                offsetof(LinePart, line_first) == 12 && offsetof(LinePart, line_links) == 16 &&
                offsetof(Stretch, counter) == 20 && offsetof(Stretch, links) == 24 &&
                offsetof(Stretch, before) == 26 && offsetof(Stretch, price) == 28 && Stretch::line == 0);
  const std::uint64_t words[4] = {
      part.line | std::uint64_t{part.first} << 32, part.links | std::uint64_t{part.line_first} << 32,
      part.line_links | std::uint64_t{counter} << 32, part.links | before << 16 | std::uint64_t{price} << 32};
  // Word by word: copied as a whole they would be read back wider than they were written, which stalls.
  auto* at = reinterpret_cast<std::byte*>(&path->at[slot]);
  for (std::size_t i = 0; i < 4; ++i) std::memcpy(at + 8 * i, &words[i], 8);
}

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
template <bool kExact>
void torus_stretches(const Torus& t, const TorusWay& way, const std::uint8_t* order, NodeId src,
                     const LinkState& state, Path* path) {
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
    std::uint32_t counter = 0;
    if constexpr (kExact) {
      state.prefetch_line_or_nic(count != 0, base[i] + within, src);
    } else {
      // One link of those that are crossed stands for all.
      const std::uint32_t drawn =
          position + (static_cast<std::uint32_t>(way.ties >> (16 * i + 8) & 0xffff) * count >> 16);
      counter = line_first + drawn - (drawn >= n ? n : 0);
      state.prefetch_counter_or_nic(count != 0, counter, src);
    }
    const std::uint32_t turn = (static_cast<std::uint32_t>(way.counts[a] != 0) & done_a) +
                               (static_cast<std::uint32_t>(way.counts[b] != 0) & done_b);
    const std::uint32_t travelled = (way.counts[a] & done_a) + (way.counts[b] & done_b);
    put(path, count != 0 ? turn : 3, {base[i] + within, line_first + position, count, line_first, n}, counter,
        travelled, i);
  }
}

void torus_path(const Pricing& p, Routing routing, std::uint64_t seed, NodeId src, NodeId dst,
                const LinkState* state, Path* path) {
  const Torus& t = p.torus;
  const auto& g = t.grid();
  TorusWay way;
  way.from = t.router_coordinates(t.router_of(src));
  way.to = t.router_coordinates(t.router_of(dst));
  way.ties = path_seed(routing, seed, src, dst);
  std::uint32_t minus = 0, used = 0;
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
    path->cls |= static_cast<std::uint32_t>(way.counts[i] != 0) << i;
    used += way.counts[i] != 0;
  }
  path->hops = way.counts[0] + way.counts[1] + way.counts[2];
  path->latency = p.hop * path->hops;
  if (state == nullptr) return;
  path->stretches = used;
  // Blue Gene's deterministic packets go x, y, z whatever the sign.
  const bool by_dimension = p.network == Network::bluegene_torus && !is_adaptive(routing);
  const std::uint8_t* order = kBefore[by_dimension ? 0 : minus];
  if (state->exact()) {
    torus_stretches<true>(t, way, order, src, *state, path);
  } else {
    torus_stretches<false>(t, way, order, src, *state, path);
  }
}

// One green or black link out of `router`.
void add_local(const Dragonfly& d, RouterId router, std::uint32_t port, bool adaptive, const LinkState* state,
               Path* path) {
  if (state != nullptr) {
    const std::uint32_t counters = d.groups() * d.groups();
    // A decayed state counts adaptive packets for the router: which link each takes is not known.
    const std::uint32_t own =
        adaptive ? counters + router : counters + d.routers() + router * Dragonfly::kLocal + port;
    const std::uint8_t price = adaptive && !state->exact() ? kSpreadPrice : kLocalPrice;
    if (state->exact()) {
      state->prefetch_line(router);
    } else {
      state->prefetch_counter(own);
    }
    path->at[path->stretches++] = {router_part(router, port),
                                   own,
                                   1,
                                   static_cast<std::uint16_t>(path->hops),
                                   price,
                                   adaptive ? Stretch::spread : Stretch::router};
  }
  ++path->hops;
}

// The way from router to router of a group. The packets of an adaptive message leave its own router over
// all of its links where they must; past that they are spread and no router's links are theirs.
void add_leg(const Dragonfly& d, RouterId from, RouterId to, Choices* pick, bool adaptive,
             const LinkState* state, Path* path) {
  if (adaptive && path->hops > 0) state = nullptr;
  const std::uint32_t slot = from % Dragonfly::kSlots, to_slot = to % Dragonfly::kSlots;
  if (slot != to_slot) {
    add_local(d, from, d.green(from, to_slot) - from * Dragonfly::kPorts, adaptive, state, path);
    from = from - slot + to_slot;
    if (adaptive) state = nullptr;
  }
  if (from == to) return;
  const std::uint32_t to_chassis = to / Dragonfly::kSlots % Dragonfly::kChassis;
  const LinkId link = d.black(from, to_chassis, pick->below(Dragonfly::kBlackPerPeer));
  add_local(d, from, link - from * Dragonfly::kPorts, adaptive, state, path);
}

// The stretches of Dragonfly::minimal(from, to, seed), or of minimal_by_own_link().
void add_minimal(const Dragonfly& d, RouterId from, RouterId to, std::uint64_t seed, bool own_first,
                 bool adaptive, const LinkState* state, Path* path) {
  Choices pick(seed);
  const std::uint32_t a = d.group_of_router(from), b = d.group_of_router(to);
  if (a == b) return add_leg(d, from, to, &pick, adaptive, state, path);
  if (state != nullptr) prefetch_bundle(*state, a * d.groups() + b);
  const std::uint32_t index = own_first ? d.own_blue(from, to, &pick) : pick.below(d.links_per_bundle());
  const LinkEnds blue = d.blue_ends(a, b, index);
  add_leg(d, from, blue.from, &pick, adaptive, state, path);
  if (state != nullptr) add_bundle(path, a * d.groups() + b, path->hops, kBundlePrice);
  ++path->hops;
  add_leg(d, blue.to, to, &pick, adaptive, state, path);
}

void dragonfly_path(const Pricing& p, Routing routing, std::uint64_t seed, NodeId src, NodeId dst,
                    const LinkState* state, Path* path) {
  const Dragonfly& d = p.dragonfly;
  const RouterId from = d.router_of(src), to = d.router_of(dst);
  if (from == to) return;
  path->cls = d.group_of_router(from) == d.group_of_router(to) ? 1 : 2;
  const std::uint64_t choice = path_seed(routing, seed, src, dst);
  if (routing == Routing::hashed_non_minimal) {
    const RouterId root = d.valiant_root(from, to, choice);
    const bool own = d.own_blue_first();
    add_minimal(d, from, root, choice, own, false, state, path);
    add_minimal(d, root, to, Dragonfly::seed_past_root(choice), own, false, state, path);
  } else if (state == nullptr) {
    path->hops = d.minimal_hops(from, to, choice);
  } else {
    add_minimal(d, from, to, choice, false, is_adaptive(routing), state, path);
  }
  path->latency = p.hop * path->hops;
}

void tree_path(const Pricing& p, NodeId src, NodeId dst, const LinkState* state, Path* path) {
  if (src == dst) return;
  const std::uint32_t level = FatTree::nca_level(src, dst);
  path->cls = level + 1;
  path->hops = 2 * level + 1;
  path->latency = p.tree_latency[path->cls];
  if (state == nullptr || level == 0) return;
  // Subtrees of one level are numbered after those below; up and down alternate.
  std::uint32_t base = 0;
  for (std::uint32_t l = 0; l < level; ++l) base += p.nodes >> (2 * l);
  const std::uint32_t up = 2 * (base + (src >> (2 * level))), down = 2 * (base + (dst >> (2 * level))) + 1;
  prefetch_bundle(*state, up);
  prefetch_bundle(*state, down);
  add_bundle(path, up, 0, static_cast<std::uint8_t>(level));
  add_bundle(path, down, path->hops - 1, static_cast<std::uint8_t>(level));
}

// Delay that a bundle would cause a message whose head leaves at `head`, in picoseconds: what the adaptive
// choice compares.
std::int64_t bundle_load(const Pricing& p, const LinkState& state, std::uint32_t bundle, std::uint64_t bytes,
                         std::int64_t now, std::int64_t head) {
  const PerByte price = p.shared_link[kBundlePrice];
  if (!state.exact()) {
    const std::int64_t busy = price(state.level(bundle, now)).count();
    return price(bytes).count() * queue_wait_256(utilisation_256(busy)) / 256;
  }
  // One hop on, where a message without local links reserves it.
  const std::int64_t arrive = head + p.hop.count();
  return state.peek_bundle(bundle, arrive, price(bytes).count()) - arrive;
}

}  // namespace

void find_path(const Pricing& p, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
               const LinkState* state, Path* path) {
  switch (p.network) {
    case Network::gemini_torus:
    case Network::seastar_torus:
    case Network::bluegene_torus:
      return torus_path(p, routing, seed, tx, rx, state, path);
    case Network::dragonfly:
      return dragonfly_path(p, routing, seed, tx, rx, state, path);
    case Network::fat_tree:
      return tree_path(p, tx, rx, state, path);
    case Network::crossbar:
      return;
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
  const std::int64_t extra = p.shared_link[kBundlePrice](p.packet.payload).count() * bias.add;
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
  const RouterId root = via * Dragonfly::kRoutersPerGroup + pick.below(d.chassis_in(via) * Dragonfly::kSlots);
  path->hops = path->stretches = 0;
  add_minimal(d, from, root, mix64(seed), false, true, &state, path);
  add_minimal(d, root, to, mix64(seed + 1), false, true, &state, path);
  path->latency = p.hop * path->hops;
  path->detoured = true;
}

}  // namespace orrery::model
