// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/dragonfly_detours.hpp"

#include <fmt/format.h>

namespace orrery::sim {

Refusal DragonflyDetours::make(const model::Dragonfly& dragonfly, std::span<const FailedLink> lost,
                               DragonflyDetours* out) {
  using model::Dragonfly;
  static_assert(Dragonfly::kSlots == 16);
  DragonflyDetours made;
  for (const FailedLink& link : lost) {
    const model::LinkId id = link.router * Dragonfly::kPorts + link.port;
    if (dragonfly.colour(id) != model::LinkColour::green) continue;
    if (made.hubs_.empty()) made.hubs_.assign(dragonfly.routers() / Dragonfly::kSlots, 0xffff);
    const model::LinkEnds ends = dragonfly.ends(id);
    std::uint16_t& hubs = made.hubs_[link.router / Dragonfly::kSlots];
    hubs = static_cast<std::uint16_t>(
        hubs & ~(1u << ends.from % Dragonfly::kSlots | 1u << ends.to % Dragonfly::kSlots));
    if (hubs == 0) {
      const model::DragonflyPlace at = dragonfly.place(link.router * Dragonfly::kNics);
      return {
          fmt::format("lost green links at every router of chassis {} of group {}: expected one without, "
                      "that packets go round by",
                      at.chassis, at.group)};
    }
  }
  *out = std::move(made);
  return {};
}

}  // namespace orrery::sim
