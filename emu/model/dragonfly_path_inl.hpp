// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// A path through a dragonfly. Inline for the sake of quote(): where it is called, some calls in a hundred
// take 20 ns longer (bench/results.md). Part of quote(); included nowhere else.
#pragma once

#include "emu/model/stretches.hpp"

#include <cstddef>
#include <cstdint>

namespace orrery::model {

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

// `crossings`: links between groups.
inline void set_length(const Pricing& p, const Come& come, std::int64_t crossings, Path* path) {
  path->hops = come.hops();
  path->stretches = static_cast<std::uint32_t>(come.bytes / sizeof(Stretch));
  path->latency = p.hop * path->hops + p.global_cable * crossings;
}

// find_path() where the network is a dragonfly.
template <Kept kKept>
[[gnu::always_inline]] inline void dragonfly_path(const Pricing& p, Routing routing, std::uint64_t seed,
                                                  NodeId src, NodeId dst, const LinkState* state,
                                                  Path* path) {
  const Dragonfly& d = p.dragonfly;
  const RouterId from_router = d.router_of(src), to_router = d.router_of(dst);
  if (from_router == to_router) return;
  // First: all else can be worked out while this is.
  const std::uint64_t choice = path_seed(routing, seed, src, dst);
  const GroupLinks<kKept> on(d, state, path);
  const Place from = on.place(from_router), to = on.place(to_router);
  path->cls = from.group == to.group ? 1 : 2;
  auto crossings = static_cast<std::int64_t>(path->cls - 1);
  Come come;
  if (routing == Routing::hashed_non_minimal) {
    const Place root = on.place(d.valiant_root(from_router, to_router, choice));
    const std::uint32_t own = d.own_blue_first() ? d.bundle() : 0;
    // Both are chosen before either is put down: neither waits for the other.
    const Crossing up = choose_crossing(on, from, root, choice, own);
    const Crossing down = choose_crossing(on, root, to, Dragonfly::seed_past_root(choice), own);
    crossings = static_cast<std::int64_t>((up.across & 1) + (down.across & 1));
    come = add_crossing<kKept, false>(on, up, come);
    come = add_crossing<kKept, false>(on, down, come);
  } else if constexpr (kKept == Kept::nothing) {
    path->hops = d.minimal_hops(from_router, to_router, choice);
    path->latency = p.hop * path->hops + p.global_cable * crossings;
    return;
  } else if (is_adaptive(routing)) {
    come = add_crossing<kKept, true>(on, choose_crossing(on, from, to, choice, 0), come);
  } else {
    come = add_crossing<kKept, false>(on, choose_crossing(on, from, to, choice, 0), come);
  }
  set_length(p, come, crossings, path);
}

}  // namespace orrery::model
