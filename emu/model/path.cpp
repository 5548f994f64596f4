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

// Where a path's stretches go, and the state that they are of. A copy of all that it takes: what is read by
// reference is read again after each stretch that was written.
template <Kept kKept>
struct Stretches {
  Stretches(const LinkState* state, Path* path) : stretches(reinterpret_cast<std::byte*>(path->at)) {
    if constexpr (kKept == Kept::nothing) return;
    lines = kKept == Kept::intervals ? state->lines() : state->counters();
    bundles = kKept == Kept::intervals ? state->bundles() : state->counters();
  }

  std::byte* line(std::size_t line) const { return lines + kLineBytes * line; }
  std::byte* bundle(std::size_t bundle) const { return bundles + kBundleBytes * bundle; }
  // Writes the stretch that begins at byte `at`, in as few stores as it is read with: narrower ones are a
  // third of what a path costs.
  [[gnu::always_inline]] inline void put(std::size_t at, std::byte* cell, std::uint32_t before,
                                         std::uint32_t price, Stretch::Kind kind) const {
    static_assert(std::endian::native == std::endian::little && offsetof(Stretch, cell) == 8 &&
                  offsetof(Stretch, before) == 16 && offsetof(Stretch, price) == 18 &&
                  offsetof(Stretch, kind) == 19);
    store(at + 8, cell);
    store(at + 16, before | price << 16 | std::uint32_t{kind} << 24);
  }
  [[gnu::always_inline]] inline void put_first(std::size_t at, std::uint32_t first) const {
    static_assert(offsetof(Stretch, first) == 4);
    store(at + 4, first);
  }
  [[gnu::always_inline]] inline void put_links(std::size_t at, std::uint32_t first,
                                               std::uint32_t links) const {
    static_assert(offsetof(Stretch, links) == 0 && offsetof(Stretch, first) == 4);
    store(at, links | std::uint64_t{first} << 32);
  }
  [[gnu::always_inline]] inline void put_line(std::size_t at, std::uint32_t first,
                                              std::uint32_t links) const {
    static_assert(offsetof(Stretch, line_first) == 20 && offsetof(Stretch, line_links) == 24);
    store(at + 20, first | std::uint64_t{links} << 32);
  }

 private:
  static constexpr std::size_t kLineBytes = kKept == Kept::intervals ? sizeof(LineCell) : sizeof(CounterCell);
  static constexpr std::size_t kBundleBytes =
      kKept == Kept::intervals ? sizeof(BundleCell) : sizeof(CounterCell);
  // Each word by itself: out of an array, or in a loop, they would go through memory and be read back wider
  // than they were written, which stalls.
  template <typename Word>
  [[gnu::always_inline]] inline void store(std::size_t offset, Word word) const {
    std::memcpy(stretches + offset, &word, sizeof word);
  }
  std::byte* stretches;
  std::byte *lines = nullptr, *bundles = nullptr;
};

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

// How far a path has come. Passed by value: counted in the path itself, each stretch would wait for the last
// one's store.
struct Come {
  std::size_t bytes = 0;         // of stretches, each one hop
  std::uint32_t other_hops = 0;  // that are none of these
  std::uint32_t hops() const { return static_cast<std::uint32_t>(bytes / sizeof(Stretch)) + other_hops; }
};

// A router, and where its group's links are counted.
struct Place {
  std::uint32_t group;
  std::uint32_t local;  // numbered within the group
  RouterId base;        // first of the group
  std::byte* links;     // the cells of the group's first router (intervals) or of its first link (counters)
};

// What a dragonfly's stretches are made of.
template <Kept kKept>
struct GroupLinks {
  GroupLinks(const Dragonfly& dragonfly, const LinkState* state, Path* path)
      : d(dragonfly), to(state, path) {}

  Place place(RouterId router) const {
    const std::uint32_t group = d.group_of_router(router);
    return place_in(group, router - group * Dragonfly::kRoutersPerGroup);
  }
  Place place_in(std::uint32_t group, std::uint32_t local) const {
    const RouterId base = group * Dragonfly::kRoutersPerGroup;
    if constexpr (kKept == Kept::nothing) return {group, local, base, nullptr};
    return {group, local, base,
            to.line(kKept == Kept::intervals ? base : first_link + base * Dragonfly::kLocal)};
  }

  // The next stretch, if it `is` one: a green or black link of a router of a group whose links begin at
  // `links`. Without branches, since whether a leg has a green and a black link is as good as random.
  [[gnu::always_inline]] inline Come add(std::uint64_t is, std::byte* links, std::uint32_t router,
                                         std::uint32_t port, Come come) const {
    if constexpr (kKept != Kept::nothing) {
      std::byte* const cell =
          links + (kKept == Kept::intervals ? sizeof(LineCell) * router
                                            : sizeof(CounterCell) * (Dragonfly::kLocal * router + port));
      // Also where there turns out to be nothing: that costs less than finding out.
      prefetch_to_write(cell);
      to.put(come.bytes, cell, 0, kLocalPrice, Stretch::router);
      if (kKept == Kept::intervals) to.put_first(come.bytes, port);
    }
    return {come.bytes + (sizeof(Stretch) & is), come.other_hops};
  }
  // The same of packets that may take another.
  [[gnu::always_inline]] inline Come add_spread(std::uint64_t is, RouterId router, std::uint32_t port,
                                                Come come) const {
    if constexpr (kKept != Kept::nothing) {
      // They count for the router: which link each takes is not known.
      constexpr bool kExact = kKept == Kept::intervals;
      std::byte* const cell = to.line(kExact ? router : bundles + router);
      prefetch_to_write(cell);
      to.put(come.bytes, cell, come.hops(), kExact ? kLocalPrice : kSpreadPrice, Stretch::spread);
      to.put_links(come.bytes, kExact ? port : 0, 1);
    }
    return {come.bytes + (sizeof(Stretch) & is), come.other_hops};
  }

  const Dragonfly& d;
  const Stretches<kKept> to;
  const std::uint32_t bundles = d.groups() * d.groups(), first_link = bundles + d.routers();
};

// The way from router to router of one group, numbered within it. The packets of an adaptive message leave
// its own router over all of its links where they must; past that they are spread and no router's links are
// theirs.
template <Kept kKept, bool kAdaptive>
[[gnu::always_inline]] inline Come add_leg(const GroupLinks<kKept>& on, const Place& group,
                                           std::uint32_t from, std::uint32_t to, Choices* pick, Come come) {
  constexpr std::uint32_t kSlots = Dragonfly::kSlots;
  const std::uint32_t differ = from ^ to, slots = differ % kSlots, to_slot = to % kSlots;
  const std::uint64_t green = ones_if_less(0, slots), black = ones_if_less(kSlots - 1, differ);
  // The ports of Dragonfly::green() and black(); any where there is no such link to take.
  const std::uint32_t green_port = to_slot - (to_slot > from % kSlots);
  const std::uint32_t black_port = Dragonfly::kGreen +
                                   (to / kSlots - (to > from)) * Dragonfly::kBlackPerPeer +
                                   pick->below_if(black, Dragonfly::kBlackPerPeer);
  if constexpr (kAdaptive) {
    const std::uint32_t greens = green & 1, blacks = black & 1;
    if (come.hops() != 0) return {come.bytes, come.other_hops + greens + blacks};
    come = on.add_spread(green | black, group.base + from, either(green, green_port, black_port), come);
    return {come.bytes, come.other_hops + (greens & blacks)};
  }
  come = on.add(green, group.links, from, green_port, come);
  return on.add(black, group.links, from ^ slots, black_port, come);
}

// A minimal route between routers, which may be of one group: where it leaves the first group and enters the
// second. In one group it leaves where it goes to, and does no more.
struct Crossing {
  const Place &from, &to;  // not copies: those go through memory, in pieces that are read back wider
  std::byte* bundle;
  std::uint32_t out, in;
  std::uint64_t across;  // all ones, or zeros
  Choices pick;
};

// The choices of Dragonfly::minimal(from, to, seed), or of minimal_by_own_link() with the bundle's cables as
// `own_cables`, else 0.
template <Kept kKept>
[[gnu::always_inline]] inline Crossing choose_crossing(const GroupLinks<kKept>& on, const Place& from,
                                                       const Place& to, std::uint64_t seed,
                                                       std::uint32_t own_cables) {
  const std::uint64_t across = ones_if_less(0, from.group ^ to.group);
  std::byte* bundle = nullptr;
  if constexpr (kKept != Kept::nothing) {
    bundle = on.to.bundle(from.group * on.d.groups() + to.group);
    prefetch_to_write(bundle);
  }
  Choices pick(seed);
  const LinkEnds blue = on.d.pick_blue(from.local, from.group, to.group, own_cables, across, &pick);
  return {from,   to,  bundle, either(across, blue.from, to.local), either(across, blue.to, to.local),
          across, pick};
}

template <Kept kKept, bool kAdaptive>
[[gnu::always_inline]] inline Come add_crossing(const GroupLinks<kKept>& on, Crossing c, Come come) {
  come = add_leg<kKept, kAdaptive>(on, c.from, c.from.local, c.out, &c.pick, come);
  if constexpr (kKept != Kept::nothing) {
    on.to.put(come.bytes, c.bundle, kAdaptive ? come.hops() : 0, kBundlePrice, Stretch::bundle);
    if (kAdaptive) on.to.put_links(come.bytes, 0, 1);
    if (kKept == Kept::intervals) on.to.put_first(come.bytes, 0);
  }
  come.bytes += sizeof(Stretch) & c.across;
  return add_leg<kKept, kAdaptive>(on, c.to, c.in, c.to.local, &c.pick, come);
}

void set_length(const Pricing& p, const Come& come, Path* path) {
  path->hops = come.hops();
  path->stretches = static_cast<std::uint32_t>(come.bytes / sizeof(Stretch));
  path->latency = p.hop * path->hops;
}

template <Kept kKept>
void tree_path(const Pricing& p, NodeId src, NodeId dst, const LinkState* state, Path* path) {
  if (src == dst) return;
  const std::uint32_t level = FatTree::nca_level(src, dst);
  path->cls = level + 1;
  path->hops = 2 * level + 1;
  path->latency = p.tree_latency[path->cls];
  if (kKept == Kept::nothing || level == 0) return;
  // Subtrees of one level are numbered after those below; up and down alternate.
  std::uint32_t base = 0;
  for (std::uint32_t l = 0; l < level; ++l) base += p.nodes >> (2 * l);
  if constexpr (kKept != Kept::nothing) {
    const std::uint32_t up = 2 * (base + (src >> (2 * level))), down = 2 * (base + (dst >> (2 * level))) + 1;
    const Stretches<kKept> to(state, path);
    prefetch_to_write(to.bundle(up));
    prefetch_to_write(to.bundle(down));
    to.put(0, to.bundle(up), 0, level, Stretch::bundle);
    to.put(sizeof(Stretch), to.bundle(down), 2 * level, level, Stretch::bundle);
    to.put_links(0, 0, 1);
    to.put_links(sizeof(Stretch), 0, 1);
    path->stretches = 2;
  }
}

// Delay that a bundle would cause a message whose head leaves at `head`, in picoseconds: what the adaptive
// choice compares.
std::int64_t bundle_load(const Pricing& p, const LinkState& state, std::uint32_t bundle, std::uint64_t bytes,
                         std::int64_t now, std::int64_t head) {
  const PerByte price = p.shared_link[0][kBundlePrice];
  if (!state.exact()) {
    const std::int64_t busy = price(state.level(bundle, now)).count();
    return price(bytes).count() * queue_wait_256(utilisation_256(busy)) / 256;
  }
  // One hop on, where a message without local links reserves it.
  const std::int64_t arrive = head + p.hop.count();
  return state.peek_bundle(bundle, arrive, price(bytes).count()) - arrive;
}

template <Kept kKept>
void dragonfly_path(const Pricing& p, Routing routing, std::uint64_t seed, NodeId src, NodeId dst,
                    const LinkState* state, Path* path) {
  const Dragonfly& d = p.dragonfly;
  const RouterId from_router = d.router_of(src), to_router = d.router_of(dst);
  if (from_router == to_router) return;
  // First: all else can be worked out while this is.
  const std::uint64_t choice = path_seed(routing, seed, src, dst);
  const GroupLinks<kKept> on(d, state, path);
  const Place from = on.place(from_router), to = on.place(to_router);
  path->cls = from.group == to.group ? 1 : 2;
  Come come;
  if (routing == Routing::hashed_non_minimal) {
    const Place root = on.place(d.valiant_root(from_router, to_router, choice));
    const std::uint32_t own = d.own_blue_first() ? d.bundle() : 0;
    // Both are chosen before either is put down: neither waits for the other.
    const Crossing up = choose_crossing(on, from, root, choice, own);
    const Crossing down = choose_crossing(on, root, to, Dragonfly::seed_past_root(choice), own);
    come = add_crossing<kKept, false>(on, up, come);
    come = add_crossing<kKept, false>(on, down, come);
  } else if constexpr (kKept == Kept::nothing) {
    path->hops = d.minimal_hops(from_router, to_router, choice);
    path->latency = p.hop * path->hops;
    return;
  } else if (is_adaptive(routing)) {
    come = add_crossing<kKept, true>(on, choose_crossing(on, from, to, choice, 0), come);
  } else {
    come = add_crossing<kKept, false>(on, choose_crossing(on, from, to, choice, 0), come);
  }
  set_length(p, come, path);
}

}  // namespace

template <Kept kKept, bool kDragonfly>
void find_path_in(const Pricing& p, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
                  const LinkState* state, Path* path) {
  if constexpr (kDragonfly) return dragonfly_path<kKept>(p, routing, seed, tx, rx, state, path);
  switch (p.network) {
    case Network::gemini_torus:
    case Network::seastar_torus:
    case Network::bluegene_torus:
      return torus_path<kKept>(p, routing, seed, tx, rx, state, path);
    case Network::fat_tree:
      return tree_path<kKept>(p, tx, rx, state, path);
    case Network::dragonfly:
    case Network::crossbar:
      return;
  }
}

using FindPath = void(const Pricing&, Routing, std::uint64_t, NodeId, NodeId, const LinkState*, Path*);
template FindPath find_path_in<Kept::nothing, false>;
template FindPath find_path_in<Kept::nothing, true>;
template FindPath find_path_in<Kept::intervals, false>;
template FindPath find_path_in<Kept::intervals, true>;
template FindPath find_path_in<Kept::counters, false>;
template FindPath find_path_in<Kept::counters, true>;

void find_path(const Pricing& p, Routing routing, std::uint64_t seed, NodeId tx, NodeId rx,
               const LinkState* state, Path* path) {
  const auto find = [&]<Kept kKept> {
    p.network == Network::dragonfly ? find_path_in<kKept, true>(p, routing, seed, tx, rx, state, path)
                                    : find_path_in<kKept, false>(p, routing, seed, tx, rx, state, path);
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
  const std::int64_t extra = p.shared_link[0][kBundlePrice](p.packet.payload).count() * bias.add;
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
  set_length(p, come, path);
  path->detoured = true;
}

}  // namespace orrery::model
