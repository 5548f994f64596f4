// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The Cascade dragonfly of Aries routers.
//
// Source: Faanes et al., "Cray Cascade: a Scalable HPC System based on a Dragonfly Network" (SC 2012),
// sections II.C, II.D, III. A node is (group, chassis 0..5, slot 0..15, nic 0..3). Router ports, as link
// slots: 15 green (every other slot of the chassis, 1 link each), 15 black (same slot of the 5 other
// chassis, 3 links each), 10 blue (to other groups). Blue links go in cables of 4; the cables of a group
// are dealt in equal bundles to all other groups.
//
// Blue placement (the paper is silent on it): two neighbouring routers share 5 cables, 2 links of each
// cable to either router. Cable i of the bundle to the group at offset o is number (o-1)*bundle + i of
// its group; consecutive numbers go to consecutive router pairs, so that a bundle touches as many pairs
// as it has cables. Offset o of group g faces offset G-o of group g+o, with the same i.
//
// LIMITATIONS: equal bundles only; within a group the order is green, then black; real sites' cable
// maps differ from the rule above.
//
// Value type, immutable after make(), all functions pure and thread safe.
//   Dragonfly d = Dragonfly::make({.groups = 8}).value();  d.minimal(0, 3071, seed, &route);
#pragma once

#include "emu/base/status.hpp"
#include "emu/model/route.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace orrery::model {

struct DragonflyShape {
  std::uint32_t groups = 1;              // 1..241
  std::uint32_t cables_per_bundle = 0;   // 0: as many as fit
  std::uint32_t last_group_chassis = 6;  // 1..6; all other groups are full
  bool own_blue_first = true;            // non-minimal routes prefer a blue link of the router at hand
};

enum class LinkColour : std::uint8_t { green, black, blue };
const char* colour_name(LinkColour colour);

struct DragonflyPlace {
  std::uint32_t group = 0, chassis = 0, slot = 0, nic = 0;
  friend constexpr bool operator==(const DragonflyPlace&, const DragonflyPlace&) = default;
};

class Dragonfly {
 public:
  static constexpr std::uint32_t kNics = 4, kSlots = 16, kChassis = 6;
  static constexpr std::uint32_t kRoutersPerGroup = kSlots * kChassis;       // 96
  static constexpr std::uint32_t kNodesPerGroup = kRoutersPerGroup * kNics;  // 384
  static constexpr std::uint32_t kGreen = kSlots - 1;                        // 15 links
  static constexpr std::uint32_t kBlackPerPeer = 3;
  static constexpr std::uint32_t kBlack = (kChassis - 1) * kBlackPerPeer;  // 15
  static constexpr std::uint32_t kLocal = kGreen + kBlack;                 // inside the group
  static constexpr std::uint32_t kBlue = 10;
  static constexpr std::uint32_t kPorts = kGreen + kBlack + kBlue;  // 40 network tiles
  static constexpr std::uint32_t kLinksPerCable = 4;
  static constexpr std::uint32_t kCablesPerChassis = kSlots * kBlue / kLinksPerCable;  // 40
  static constexpr std::uint32_t kCablesPerGroup = kChassis * kCablesPerChassis;       // 240
  static constexpr std::uint32_t kMaxGroups = kCablesPerGroup + 1;                     // 241
  static constexpr std::uint32_t kMaxNodes = kMaxGroups * kNodesPerGroup;              // 92,544
  static constexpr std::uint32_t kMaxMinimalHops = 5, kMaxHops = 10;

  Dragonfly() = default;  // one full group
  // Outcomes: the system; Errc::invalid_param for zero groups, more than 241, a last group of 0 or more
  // than 6 chassis; Errc::size where the bundles need more cables than the smallest group has.
  static Result<Dragonfly> make(const DragonflyShape& shape);

  // The paper's two cable formulas. groups >= 2.
  static std::uint32_t largest_bundle(std::uint32_t groups) { return kCablesPerGroup / (groups - 1); }
  static std::uint64_t total_cables(std::uint32_t bundle, std::uint32_t groups) {
    return std::uint64_t{bundle} * (groups - 1) * groups / 2;
  }

  std::uint32_t groups() const { return groups_; }
  std::uint32_t bundle() const { return bundle_; }  // cables between every two groups
  std::uint32_t links_per_bundle() const { return bundle_ * kLinksPerCable; }
  std::uint32_t cables_used_per_group() const { return bundle_ * (groups_ - 1); }
  // Which group is the last is as good as random to a branch.
  std::uint32_t chassis_in(std::uint32_t group) const {
    return kChassis - (kChassis - last_chassis_) * static_cast<std::uint32_t>(group + 1 == groups_);
  }
  std::uint32_t routers() const { return routers_; }
  std::uint32_t nodes() const { return routers() * kNics; }
  LinkId link_slots() const { return routers() * kPorts; }

  // REQUIRES for all below: ids in range.
  DragonflyPlace place(NodeId node) const;
  NodeId node_at(const DragonflyPlace& p) const {
    return ((p.group * kChassis + p.chassis) * kSlots + p.slot) * kNics + p.nic;
  }
  RouterId router_of(NodeId node) const { return node / kNics; }
  std::uint32_t group_of_router(RouterId router) const { return router / kRoutersPerGroup; }

  LinkColour colour(LinkId link) const;
  bool has_link(LinkId link) const;
  // REQUIRES: has_link(link).
  LinkEnds ends(LinkId link) const;

  // Link to the router of the same chassis at `slot` / the same slot of `chassis`, copy k of 3.
  LinkId green(RouterId from, std::uint32_t to_slot) const;
  LinkId black(RouterId from, std::uint32_t to_chassis, std::uint32_t k) const;
  // Blue link `index` (0..links_per_bundle()-1) of the bundle from group `from` to group `to`.
  LinkId blue(std::uint32_t from_group, std::uint32_t to_group, std::uint32_t index) const;

  // The routers that it joins, without the link.
  LinkEnds blue_ends(std::uint32_t from_group, std::uint32_t to_group, std::uint32_t index) const;

  // The index of a blue link of the router `from` itself to the other group, else of any of the bundle's.
  // REQUIRES: two groups.
  std::uint32_t own_blue(RouterId from, RouterId to, Choices* choices) const;
  // The ends, each numbered within its group, of the link that own_blue() finds where `own_cables` is
  // bundle(), or of any of the bundle's where it is 0, and the same draws: what the hot path needs, without
  // branches. From router `from` of group `a` to group `b`. `wanted`: all ones, or zeros; then they may be
  // the same, the ends are any, and there are no draws.
  LinkEnds pick_blue(std::uint32_t from, std::uint32_t a, std::uint32_t b, std::uint32_t own_cables,
                     std::uint64_t wanted, Choices* choices) const;

  // A minimal route between two routers: at most one green and one black in a group; between groups
  // exactly one blue, at most 5 links. `seed` picks the blue link and the black copies.
  void minimal(RouterId from, RouterId to, std::uint64_t seed, Route* out) const;
  // The same, but by a blue link of the router `from` itself where it has one to that group.
  void minimal_by_own_link(RouterId from, RouterId to, std::uint64_t seed, Route* out) const;
  // Length of minimal(from, to, seed) without its links: what the hot path needs.
  std::uint32_t minimal_hops(RouterId from, RouterId to, std::uint64_t seed) const;
  // Valiant: minimally to a random root router (of the same group if both ends share it, else of the
  // system), then minimally on. At most 10 links. Appends; also returns the root, and in `up` the number
  // of links that lead to it. With own_blue_first, blue links of the router at hand are preferred: only so
  // are most of these paths 6 or 7 links long "in all but the largest systems" (section III).
  RouterId valiant(RouterId from, RouterId to, std::uint64_t seed, Route* out,
                   std::size_t* up = nullptr) const;

  // The root of valiant() for a seed, and the seed of the way on from it.
  RouterId valiant_root(RouterId from, RouterId to, std::uint64_t seed) const;
  static std::uint64_t seed_past_root(std::uint64_t seed) { return mix64(seed); }
  bool own_blue_first() const { return own_blue_first_; }

  // Virtual channel of each link of a route: number of blue links crossed before, plus one past the
  // root (`links_before_root` links lead to it; pass route.size() for a minimal route).
  std::uint32_t virtual_channel(const Route& route, std::size_t hop, std::size_t links_before_root) const;

 private:
  void in_group(RouterId from, RouterId to, Choices* choices, Route* out) const;
  void across(RouterId from, RouterId to, LinkId blue, Choices* choices, Route* out) const;
  std::uint32_t pairs_in(std::uint32_t group) const { return chassis_in(group) * kSlots / 2; }
  // pick_blue() where all groups are full, and where the last is not.
  LinkEnds pick_full_blue(std::uint32_t from, std::uint32_t a, std::uint32_t b, std::uint32_t own_cables,
                          std::uint64_t wanted, Choices* choices) const;
  LinkEnds pick_uneven_blue(std::uint32_t from, std::uint32_t a, std::uint32_t b, std::uint32_t own_cables,
                            std::uint64_t wanted, Choices* choices) const;

  // The first routers, in their groups, of the pairs that a cable joins.
  struct CableEnds {
    std::uint8_t from, to;
  };

  std::uint32_t groups_ = 1;
  std::uint32_t bundle_ = 0;
  std::uint32_t last_chassis_ = kChassis;
  std::uint32_t routers_ = kRoutersPerGroup;
  bool own_blue_first_ = true;
  // Of full groups: cable i of the bundle from group a to b is number (groups_ - 1 + b - a) * bundle_ + i.
  std::array<CableEnds, 3 * kCablesPerGroup> cable_ends_{};
};

// What quote() needs of a path, inline for its sake.

inline LinkId Dragonfly::green(RouterId from, std::uint32_t to_slot) const {
  const std::uint32_t slot = from % kSlots;
  return from * kPorts + (to_slot < slot ? to_slot : to_slot - 1);
}

inline LinkId Dragonfly::black(RouterId from, std::uint32_t to_chassis, std::uint32_t k) const {
  const std::uint32_t chassis = from / kSlots % kChassis;
  const std::uint32_t peer = to_chassis < chassis ? to_chassis : to_chassis - 1;
  return from * kPorts + kGreen + peer * kBlackPerPeer + k;
}

[[gnu::always_inline]] inline LinkEnds Dragonfly::pick_full_blue(std::uint32_t from, std::uint32_t a,
                                                                 std::uint32_t b, std::uint32_t own_cables,
                                                                 std::uint64_t wanted,
                                                                 Choices* choices) const {
  const CableEnds* const bundle = &cable_ends_[(groups_ - 1 + b - a) * bundle_];
  // Cable i of the bundle lies at pair (first + i) mod pairs: how far from there, in routers. Two are a pair.
  std::uint32_t own = from - bundle->from;
  own += kRoutersPerGroup & static_cast<std::uint32_t>(ones_if_less(from, bundle->from));
  // Whether the router has one itself is as good as random to a branch. Whichever of its cables it is, the
  // routers are the same.
  const std::uint64_t has_own = ones_if_less(own, 2 * own_cables);
  const std::uint32_t drawn = choices->below_if(wanted, links_per_bundle());
  choices->skip_if(wanted & has_own);  // which of the two wires to this router
  const std::uint32_t side_of_cable = either(has_own, own, drawn / 2), side = side_of_cable % 2;
  return {bundle[side_of_cable / 2].from + side, bundle[side_of_cable / 2].to + side};
}

inline LinkEnds Dragonfly::pick_uneven_blue(std::uint32_t from, std::uint32_t a, std::uint32_t b,
                                            std::uint32_t own_cables, std::uint64_t wanted,
                                            Choices* choices) const {
  const std::uint32_t pairs_a = pairs_in(a), pairs_b = pairs_in(b);
  const std::uint32_t offset = b - a + either(ones_if_less(b, a), groups_, 0);
  const std::uint32_t first = (offset - 1) * bundle_ % pairs_a;
  const std::uint32_t peer_first = (groups_ - offset - 1) * bundle_ % pairs_b;
  const std::uint32_t pair = from / 2, own = pair - first + either(ones_if_less(pair, first), pairs_a, 0);
  const std::uint64_t has_own = ones_if_less(own, own_cables);
  const std::uint32_t of_own = (bundle_ - 1 - own) / pairs_a + 1;
  const std::uint32_t drawn = choices->below_if(wanted, either(has_own, of_own, links_per_bundle()));
  choices->skip_if(wanted & has_own);
  const std::uint32_t cable = either(has_own, own + pairs_a * drawn, drawn / kLinksPerCable);
  const std::uint32_t side = either(has_own, from, drawn / (kLinksPerCable / 2)) % 2;
  return {2 * ((first + cable) % pairs_a) + side, 2 * ((peer_first + cable) % pairs_b) + side};
}

[[gnu::always_inline]] inline LinkEnds Dragonfly::pick_blue(std::uint32_t from, std::uint32_t a,
                                                            std::uint32_t b, std::uint32_t own_cables,
                                                            std::uint64_t wanted, Choices* choices) const {
  return last_chassis_ == kChassis ? pick_full_blue(from, a, b, own_cables, wanted, choices)
                                   : pick_uneven_blue(from, a, b, own_cables, wanted, choices);
}

inline RouterId Dragonfly::valiant_root(RouterId from, RouterId to, std::uint64_t seed) const {
  Choices choices(seed ^ 0x76616c69616e74u);
  const std::uint32_t a = group_of_router(from), b = group_of_router(to);
  const std::uint64_t two = ones_if_less(a, b) | ones_if_less(b, a);
  const std::uint32_t first = static_cast<std::uint32_t>(~two) & (a * kRoutersPerGroup);
  const std::uint32_t in_group = std::min(routers_ - a * kRoutersPerGroup, kRoutersPerGroup);
  return first + choices.below(either(two, routers_, in_group));
}

}  // namespace orrery::model
