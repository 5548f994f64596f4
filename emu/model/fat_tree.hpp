// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Quaternary fat tree of Elite switches (Quadrics QsNet, ASCI Q): a 4-ary n-tree.
//
// Source: Petrini et al., "Scalable collective communication on the ASCI Q machine" (2003), sections 3
// and 4.1. 4^n nodes, n levels of 4^(n-1) switches. Switch (level l, index w): w has n-1 base-4 digits.
// Node p hangs on switch (0, p/4). Up port u of (l, w) leads to (l+1, w with digit l := u); down port d
// of (l+1, w) leads to (l, w with digit l := d). A packet climbs to the level of the highest digit in
// which its ends differ, by any up port, then has one way down.
//
// Links: boundary l lies below level l (boundary 0 joins nodes and level 0). Up links are numbered
// l * 4^n + position, down links (n + l) * 4^n + position; the position is 4 w + port of the lower
// switch for up links (the node at boundary 0) and of the upper switch for down links.
//
// LIMITATIONS: one segment; the supertop that joins two segments is not described well enough.
//
// Value type, immutable after make(), all functions pure and thread safe.
//   FatTree t = FatTree::make(5).value();  t.route(3, 1000, seed, &route);
#pragma once

#include "emu/base/status.hpp"
#include "emu/model/route.hpp"

#include <cstdint>
#include <span>

namespace orrery::model {

class FatTree {
 public:
  static constexpr std::uint32_t kArity = 4;
  static constexpr std::uint32_t kMaxLevels = 8;

  FatTree() = default;  // one switch, four nodes
  // `levels` 1..8. Errc::invalid_param otherwise.
  static Result<FatTree> make(std::uint32_t levels);

  std::uint32_t levels() const { return levels_; }
  std::uint32_t nodes() const { return std::uint32_t{1} << (2 * levels_); }
  std::uint32_t switches_per_level() const { return nodes() / kArity; }
  std::uint32_t switches() const { return levels_ * switches_per_level(); }
  LinkId link_slots() const { return 2 * levels_ * nodes(); }
  bool has_link(LinkId link) const { return link < link_slots(); }

  // Vertices: switch (l, w) is l * switches_per_level() + w; node p is switches() + p.
  RouterId switch_id(std::uint32_t level, std::uint32_t index) const {
    return level * switches_per_level() + index;
  }
  RouterId vertex_of(NodeId node) const { return switches() + node; }

  bool is_up(LinkId link) const { return link < levels_ * nodes(); }
  std::uint32_t boundary_of(LinkId link) const { return (link >> (2 * levels_)) % levels_; }
  LinkId up_link(std::uint32_t boundary, std::uint32_t position) const {
    return boundary * nodes() + position;
  }
  LinkId down_link(std::uint32_t boundary, std::uint32_t position) const {
    return (levels_ + boundary) * nodes() + position;
  }
  LinkEnds ends(LinkId link) const;

  // Level of the nearest common ancestors: index of the highest differing base-4 digit.
  // REQUIRES: a != b, both below nodes().
  static std::uint32_t nca_level(NodeId a, NodeId b) {
    return static_cast<std::uint32_t>(31 - __builtin_clz(a ^ b)) / 2;
  }
  std::uint32_t switches_crossed(NodeId a, NodeId b) const { return a == b ? 0 : 2 * nca_level(a, b) + 1; }

  // Up by the ports that `seed` picks, down the only way. Empty where src == dst; else
  // 2 * (nca_level + 1) links, the node's own two included.
  void route(NodeId src, NodeId dst, std::uint64_t seed, Route* out) const;
  // Appends the only way down from switch (level, index) to `dst`. REQUIRES: dst lies below it.
  void descend(std::uint32_t level, std::uint32_t index, NodeId dst, Route* out) const;
  // Index of the switch one level up by `port`.
  std::uint32_t up_from(std::uint32_t level, std::uint32_t index, std::uint32_t port) const;

  // Hardware multicast from `src` to the contiguous nodes first..last: up by port 0 to the leftmost
  // switch that covers all of them, then fanned out. `root_level` is where it turns; `branches` the down
  // links that carry a copy. Outcomes: Errc::invalid_param for an empty or out-of-range set.
  struct Multicast {
    std::uint32_t root_level = 0;
    RouterId root = 0;
    std::uint32_t branches = 0;
  };
  Result<Multicast> multicast(NodeId src, NodeId first, NodeId last) const;
  // The contiguity rule: the hardware serves only a set of neighbouring node numbers (sorted input).
  static bool contiguous(std::span<const NodeId> sorted);

  // Down links that cross the middle of the machine at the top level: linear in the nodes.
  std::uint32_t bisection_links() const { return nodes() / 2; }

 private:
  std::uint32_t levels_ = 1;
};

// Packaging of the 1,024-node segment: Elites in 64U64D bottom and 16U16D top switches.
struct QuadricsPackaging {
  std::uint32_t bottom_switches = 16, elites_per_bottom = 48, top_switches = 64, elites_per_top = 8;
  constexpr std::uint32_t elites() const {
    return bottom_switches * elites_per_bottom + top_switches * elites_per_top;
  }
};

}  // namespace orrery::model
