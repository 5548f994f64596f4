// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/tile/dragonfly_detours.hpp"

#include <bit>

#include <fmt/format.h>

namespace orrery::sim {

using model::Dragonfly;

namespace {

constexpr std::uint32_t kFirstBlue = Dragonfly::kLocal;

// The link that leads back: of those between two routers the first back is the first there.
model::LinkId reverse(const Dragonfly& dragonfly, model::LinkId link) {
  const model::LinkEnds ends = dragonfly.ends(link);
  std::uint32_t rank = 0;
  for (model::LinkId other = ends.from * Dragonfly::kPorts; other < link; ++other)
    rank += dragonfly.has_link(other) && dragonfly.ends(other).to == ends.to;
  for (model::LinkId back = ends.to * Dragonfly::kPorts;; ++back)
    if (dragonfly.has_link(back) && dragonfly.ends(back).to == ends.from && rank-- == 0) return back;
}

// Every two groups with routers left keep a blue link.
Refusal check_blue(const Dragonfly& dragonfly, std::span<const FailedLink> lost,
                   const std::vector<bool>& group_left) {
  std::vector<bool> gone(dragonfly.link_slots());
  for (const FailedLink& link : lost) {
    if (link.port < kFirstBlue) continue;
    const model::LinkId id = link.router * Dragonfly::kPorts + link.port;
    gone[id] = gone[reverse(dragonfly, id)] = true;
  }
  const std::uint32_t groups = dragonfly.groups();
  std::vector<bool> joined(std::size_t{groups} * groups);
  for (model::LinkId link = 0; link < dragonfly.link_slots(); ++link) {
    if (link % Dragonfly::kPorts < kFirstBlue || !dragonfly.has_link(link) || gone[link]) continue;
    const model::LinkEnds ends = dragonfly.ends(link);
    joined[std::size_t{dragonfly.group_of_router(ends.from)} * groups + dragonfly.group_of_router(ends.to)] =
        true;
  }
  for (std::uint32_t a = 0; a < groups; ++a)
    for (std::uint32_t b = a + 1; b < groups; ++b)
      if (group_left[a] && group_left[b] && !joined[std::size_t{a} * groups + b])
        return {fmt::format("lost all blue links between groups {} and {}: expected one left", a, b)};
  return {};
}

}  // namespace

Refusal DragonflyDetours::make(const Dragonfly& dragonfly, std::span<const FailedLink> lost,
                               std::span<const Node> dead, DragonflyDetours* out) {
  static_assert(Dragonfly::kSlots == 16);
  DragonflyDetours made;
  const std::uint32_t chassis = dragonfly.routers() / Dragonfly::kSlots;
  made.left_.assign(chassis, 0xffff);
  for (const Node router : dead) {
    std::uint16_t& left = made.left_[router / Dragonfly::kSlots];
    left = static_cast<std::uint16_t>(left & ~(1u << router % Dragonfly::kSlots));
  }
  made.hubs_ = made.left_;
  bool green = false;
  for (const FailedLink& link : lost) {
    const model::LinkId id = link.router * Dragonfly::kPorts + link.port;
    if (dragonfly.colour(id) != model::LinkColour::green) continue;
    green = true;
    const model::LinkEnds ends = dragonfly.ends(id);
    if (made.dead(ends.from) || made.dead(ends.to)) continue;
    const std::uint32_t at = link.router / Dragonfly::kSlots;
    std::uint16_t& hubs = made.hubs_[at];
    hubs = static_cast<std::uint16_t>(
        hubs & ~(1u << ends.from % Dragonfly::kSlots | 1u << ends.to % Dragonfly::kSlots));
    if (hubs == 0)
      return {
          fmt::format("lost green links at every router of chassis {} of group {}: expected one without, "
                      "that packets go round by",
                      at % Dragonfly::kChassis, at / Dragonfly::kChassis)};
  }
  made.columns_.assign(dragonfly.groups(), 0);
  std::vector<bool> group_left(dragonfly.groups());
  for (std::uint32_t at = 0; at < chassis; ++at)
    if (made.left_[at] != 0) group_left[at / Dragonfly::kChassis] = true;
  if (Refusal no = check_blue(dragonfly, lost, group_left); no.refused()) return no;
  for (std::uint32_t group = 0; group < dragonfly.groups(); ++group)
    if (Refusal no = made.find_columns(dragonfly, group); no.refused()) return no;
  *out = green ? std::move(made) : DragonflyDetours();
  return {};
}

Refusal DragonflyDetours::find_columns(const Dragonfly& dragonfly, std::uint32_t group) {
  const std::uint32_t first = group * Dragonfly::kChassis, last = first + dragonfly.chassis_in(group);
  std::uint16_t& columns = columns_[group];
  columns = 0xffff;
  for (std::uint32_t at = first; at < last; ++at)
    if (left_[at] != 0) columns = static_cast<std::uint16_t>(columns & left_[at]);
  for (std::uint32_t from = first; from < last; ++from)
    for (std::uint32_t to = first; to < last; ++to) {
      // Slots of the one that have lost their router in the other.
      const auto missing = static_cast<std::uint16_t>(left_[to] & ~left_[from]);
      if (from == to || left_[from] == 0 || missing == 0 || this->columns(from, to) != 0) continue;
      return {
          fmt::format("failed routers leave no way from chassis {} to router {} of chassis {} of group {}: "
                      "expected a slot that no chassis has lost, with all of its green links in both",
                      from - first, std::countr_zero(missing), to - first, group)};
    }
  return {};
}

}  // namespace orrery::sim
