// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// New routing tables of a dragonfly of Aries routers that has lost green links.
//
// Source: Faanes et al. (SC 2012), section V: where adaptive routing has no other link, the supervisory
// system updates the tables to avoid the loss, quiescing the network where need be. By which ways it does not
// say. Here: by two green links, over a router of the chassis that has all of its green links, a hub.
//
// No deadlock, with the channels that are there: within one virtual channel packets go from green links to
// black ones only, and from a green link to another only at a hub, coming from a router that is none and
// going to one that is none. The second link ends at no hub, so no third one follows. A test walks the
// chains.
//
// LIMITATIONS: refused where a chassis with a lost link keeps no hub.
#pragma once

#include "emu/model/dragonfly.hpp"
#include "emu/sim/losses.hpp"
#include "emu/sim/result.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace orrery::sim {

// Immutable after make(): any thread may ask.
class DragonflyDetours {
 public:
  DragonflyDetours() = default;
  // Outcomes: the tables, empty where `lost` has no green links; a refusal where a chassis keeps no hub.
  static Refusal make(const model::Dragonfly& dragonfly, std::span<const FailedLink> lost,
                      DragonflyDetours* out);
  bool needed() const { return !hubs_.empty(); }
  // Slots of a chassis (router / 16) that have all of their green links. REQUIRES: needed().
  std::uint16_t hubs(std::uint32_t chassis) const { return hubs_[chassis]; }

 private:
  std::vector<std::uint16_t> hubs_;
};

}  // namespace orrery::sim
