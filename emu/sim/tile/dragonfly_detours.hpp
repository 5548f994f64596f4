// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// New routing tables of a dragonfly of Aries routers that has lost green links, or routers.
//
// Source: Faanes et al. (SC 2012), section V: where adaptive routing has no other link, the supervisory
// system updates the tables to avoid the loss, quiescing the network where need be. By which ways it does not
// say. Here:
// - where a green link is lost, by two green links over a router of the chassis that has all of its green
//   links to routers that are left, a hub;
// - where the router is lost at which a green link is to be followed by a black one, to another chassis, by a
//   column: a slot of which no chassis with a router left has lost its router. A green link leads to it, a
//   black one to the other chassis, a green one on. In both chassis its router is a hub.
// Random roots never are failed routers. Blue links of failed routers are lost with them.
//
// No deadlock, with the channels that are there. Within one virtual channel:
// 1. From a green link to another packets go at a hub only, coming from a router that is none and going to
//    one that is none. The second link ends at no hub, so no third one follows.
// 2. From a black link to a green one they go in a column only, in a chassis where it is a hub, and on to a
//    slot that some chassis has lost: no column. By 1. no green link follows that one, and after the black
//    one of that slot nothing does. So nothing that comes after such a turn leads back to one, and without
//    them there are green links, two at most, and then a black one.
// A test walks the chains.
//
// LIMITATIONS: refused where a chassis with a lost link keeps no hub, where two groups keep no blue link, and
// where some two chassis have no column that is a hub in both.
#pragma once

#include "emu/model/dragonfly.hpp"
#include "emu/sim/failure/losses.hpp"
#include "emu/sim/scene/result.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace orrery::sim {

// Immutable after make(): any thread may ask. A chassis is named by the number of a router of it / 16.
class DragonflyDetours {
 public:
  DragonflyDetours() = default;
  // Tables for a dragonfly without `lost` (REQUIRES: links that it has) and without the routers `dead`, all
  // of whose links are among them. Outcomes: the tables, empty where no green links are lost; a refusal where
  // they do not lead round.
  static Refusal make(const model::Dragonfly& dragonfly, std::span<const FailedLink> lost,
                      std::span<const Node> dead, DragonflyDetours* out);
  bool needed() const { return !hubs_.empty(); }
  // Slots of a chassis whose routers are left and have all of their green links to others that are.
  // REQUIRES, of all below: needed().
  std::uint16_t hubs(std::uint32_t chassis) const { return hubs_[chassis]; }
  bool dead(Node router) const {
    return !(left_[router / model::Dragonfly::kSlots] >> router % model::Dragonfly::kSlots & 1);
  }
  // Slots by which packets go from a chassis to another of its group where the router between is lost.
  std::uint16_t columns(std::uint32_t from, std::uint32_t to) const {
    return static_cast<std::uint16_t>(columns_[from / model::Dragonfly::kChassis] & hubs_[from] & hubs_[to]);
  }

 private:
  Refusal find_columns(const model::Dragonfly& dragonfly, std::uint32_t group);
  std::vector<std::uint16_t> hubs_, left_;  // by chassis: bit of a slot
  std::vector<std::uint16_t> columns_;      // by group
};

}  // namespace orrery::sim
