// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// New routing tables of a torus of Gemini or SeaStar routers that has lost whole directions: all links
// between two neighbours, or a router, which are those to its six.
//
// Source: "The Gemini Network" (Cray, 2010), "Gemini Fault Tolerance": where all connectivity between two
// Geminis is lost, also when a board is removed, management software computes tables that lead around. Which
// ways they hold it does not say. Here: those that keep to the order X+ Y+ Z+ X- Y- Z- of the routers, each
// direction at most once and less than once round, the shortest of them, and of equally short ones any, drawn
// for each pair: the order alone is what the argument below needs. Packets may so overshoot in a +
// direction and come back in the - direction of the same dimension, or go the other way round.
//
// No deadlock, with the channels that are there: a packet goes from a channel of one direction to one of a
// later direction, or on along its ring, which it leaves before it is back where it entered it; of a ring's
// two channels it takes the first as far as the dateline and over it, then the second, so the first waits for
// the second only and the second never for the dateline's link. No chain of channels comes back to its start.
// A test walks the chains of all pairs.
//
// LIMITATIONS: a torus that is whole but leaves some pair no way in that order is refused; all packets of a
// pair go one way; only pairs whose usual way is broken change theirs.
#pragma once

#include "emu/model/torus.hpp"
#include "emu/sim/failure/losses.hpp"
#include "emu/sim/scene/result.hpp"
#include "emu/sim/tile/torus_grid.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery::sim {

// Immutable after make(): any thread may ask.
class TorusDetours {
 public:
  struct Way {
    Node to = 0;
    TorusGrid::Packed turn = 0;  // where each dimension's + direction ends; its - direction ends at `to`
    std::uint8_t hints = 0;      // directions taken, as bits
  };
  TorusDetours() = default;
  // Tables for a torus without `lost` (REQUIRES: links that it has) and without the routers `dead`, all of
  // whose links are among them. Outcomes: the tables, empty where every direction keeps a link; a refusal
  // where the network is cut in two, or some pair has no way.
  static Refusal make(const model::Torus& torus, std::span<const FailedLink> lost, std::span<const Node> dead,
                      TorusDetours* out);

  // Whether any direction of a router is lost.
  bool needed() const { return !first_.empty(); }
  // The way of a pair of routers whose usual one is lost; nullptr for others. REQUIRES: needed().
  const Way* find(Node from, Node to) const {
    const Way *const begin = ways_.data() + first_[from], *const end = ways_.data() + first_[from + 1];
    const Way* const way =
        std::lower_bound(begin, end, to, [](const Way& w, Node node) { return w.to < node; });
    return way != end && way->to == to ? way : nullptr;
  }
  std::size_t pairs() const { return ways_.size(); }
  std::size_t bytes() const { return first_.capacity() * sizeof(first_[0]) + ways_.capacity() * sizeof(Way); }

 private:
  std::vector<std::uint32_t> first_;  // of a router's ways, which are in the order of `to`
  std::vector<Way> ways_;
};

}  // namespace orrery::sim
