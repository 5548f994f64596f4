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
  std::uint32_t routers() const { return (groups_ - 1) * kRoutersPerGroup + last_chassis_ * kSlots; }
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
  // The ends of the link that own_blue() finds where `own_cables` is bundle(), or of any of the bundle's
  // where it is 0, and the same draws: what the hot path needs, without branches. `a`, `b`: the groups of
  // `from` and of where it goes. Where it is not `wanted` they may be the same, the ends are any, and there
  // are no draws.
  LinkEnds pick_blue(RouterId from, std::uint32_t a, std::uint32_t b, std::uint32_t own_cables, bool wanted,
                     Choices* choices) const;

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
  template <bool kAllFull>
  LinkEnds pick_blue_of(RouterId from, std::uint32_t a, std::uint32_t b, std::uint32_t own_cables,
                        bool wanted, Choices* choices) const;

  std::uint32_t groups_ = 1;
  std::uint32_t bundle_ = 0;
  std::uint32_t last_chassis_ = kChassis;
  bool own_blue_first_ = true;
  // Of full groups, by the offset of the other one: the pair where the bundle's first cable lies.
  std::array<std::uint8_t, kMaxGroups + 1> first_pair_{};
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

template <bool kAllFull>
[[gnu::always_inline]] inline LinkEnds Dragonfly::pick_blue_of(RouterId from, std::uint32_t a,
                                                               std::uint32_t b, std::uint32_t own_cables,
                                                               bool wanted, Choices* choices) const {
  constexpr std::uint32_t kFull = kRoutersPerGroup / 2;
  const std::uint32_t pairs_a = kAllFull ? kFull : pairs_in(a), pairs_b = kAllFull ? kFull : pairs_in(b);
  const std::uint32_t offset = b - a + either(b < a, groups_, 0);
  // Cable i of the bundle lies at pair (first + i) mod pairs.
  const std::uint32_t first = kAllFull ? first_pair_[offset] : (offset - 1) * bundle_ % pairs_a;
  const std::uint32_t peer_first =
      kAllFull ? first_pair_[groups_ - offset] : (groups_ - offset - 1) * bundle_ % pairs_b;
  const std::uint32_t pair = from % kRoutersPerGroup / 2;
  std::uint32_t own = pair - first + either(pair < first, pairs_a, 0);
  // Whether the router has one itself is as good as random to a branch.
  const bool has_own = own < own_cables;
  std::uint32_t drawn;
  if constexpr (kAllFull) {
    // Whichever of its cables it is, the routers are the same.
    drawn = choices->below_if(wanted, links_per_bundle());
  } else {
    const std::uint32_t of_own = (bundle_ - 1 - own) / pairs_a + 1;
    drawn = choices->below_if(wanted, either(has_own, of_own, links_per_bundle()));
    own += pairs_a * drawn;
  }
  choices->below_if(wanted & has_own, 2);  // which of the two wires to this router
  const std::uint32_t cable = either(has_own, own, drawn / kLinksPerCable);
  const std::uint32_t side = either(has_own, from, drawn / (kLinksPerCable / 2)) % 2;
  return {a * kRoutersPerGroup + 2 * ((first + cable) % pairs_a) + side,
          b * kRoutersPerGroup + 2 * ((peer_first + cable) % pairs_b) + side};
}

[[gnu::always_inline]] inline LinkEnds Dragonfly::pick_blue(RouterId from, std::uint32_t a, std::uint32_t b,
                                                            std::uint32_t own_cables, bool wanted,
                                                            Choices* choices) const {
  return last_chassis_ == kChassis ? pick_blue_of<true>(from, a, b, own_cables, wanted, choices)
                                   : pick_blue_of<false>(from, a, b, own_cables, wanted, choices);
}

inline RouterId Dragonfly::valiant_root(RouterId from, RouterId to, std::uint64_t seed) const {
  Choices choices(seed ^ 0x76616c69616e74u);
  const std::uint32_t a = group_of_router(from);
  const bool same = a == group_of_router(to);
  const std::uint32_t first = either(same, a * kRoutersPerGroup, 0);
  const std::uint32_t roots = either(same, chassis_in(a) * kSlots, routers());
  return first + choices.below(roots);
}

}  // namespace orrery::model
