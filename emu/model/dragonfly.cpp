// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/dragonfly.hpp"

namespace orrery::model {

const char* colour_name(LinkColour colour) {
  switch (colour) {
    case LinkColour::green:
      return "green";
    case LinkColour::black:
      return "black";
    case LinkColour::blue:
      return "blue";
  }
  return "?";
}

Result<Dragonfly> Dragonfly::make(const DragonflyShape& shape) {
  if (shape.groups == 0 || shape.groups > kMaxGroups) return Errc::invalid_param;
  if (shape.last_group_chassis == 0 || shape.last_group_chassis > kChassis) return Errc::invalid_param;
  Dragonfly d;
  d.groups_ = shape.groups;
  d.last_chassis_ = shape.last_group_chassis;
  d.routers_ = (d.groups_ - 1) * kRoutersPerGroup + d.last_chassis_ * kSlots;
  d.own_blue_first_ = shape.own_blue_first;
  if (shape.groups == 1) {
    if (shape.cables_per_bundle != 0) return Errc::size;
    return d;
  }
  const std::uint32_t most = kCablesPerChassis * shape.last_group_chassis / (shape.groups - 1);
  d.bundle_ = shape.cables_per_bundle == 0 ? most : shape.cables_per_bundle;
  if (d.bundle_ == 0 || d.bundle_ > most) return Errc::size;
  for (std::uint32_t offset = 1; offset < shape.groups; ++offset) {
    for (std::uint32_t i = 0; i < d.bundle_; ++i) {
      const auto router = [&](std::uint32_t number) {
        return static_cast<std::uint8_t>(2 * number % kRoutersPerGroup);
      };
      const CableEnds ends{router((offset - 1) * d.bundle_ + i),
                           router((shape.groups - offset - 1) * d.bundle_ + i)};
      // To a group that far on, round the last one or not.
      d.cable_ends_[(shape.groups - 1 + offset) * d.bundle_ + i] = ends;
      d.cable_ends_[(offset - 1) * d.bundle_ + i] = ends;
    }
  }
  return d;
}

DragonflyPlace Dragonfly::place(NodeId node) const {
  const RouterId router = node / kNics;
  return {router / kRoutersPerGroup, router / kSlots % kChassis, router % kSlots, node % kNics};
}

LinkColour Dragonfly::colour(LinkId link) const {
  const std::uint32_t port = link % kPorts;
  if (port < kGreen) return LinkColour::green;
  return port < kGreen + kBlack ? LinkColour::black : LinkColour::blue;
}

bool Dragonfly::has_link(LinkId link) const {
  if (link >= link_slots()) return false;
  const RouterId router = link / kPorts;
  const std::uint32_t port = link % kPorts, group = group_of_router(router);
  if (port < kGreen) return true;
  if (port < kGreen + kBlack) {
    const std::uint32_t chassis = router / kSlots % kChassis;
    std::uint32_t peer = (port - kGreen) / kBlackPerPeer;
    if (peer >= chassis) ++peer;
    return peer < chassis_in(group);
  }
  const std::uint32_t pair = router % kRoutersPerGroup / 2, connector = (port - kGreen - kBlack) / 2;
  return connector * pairs_in(group) + pair < cables_used_per_group();
}

LinkEnds Dragonfly::ends(LinkId link) const {
  const RouterId from = link / kPorts;
  const std::uint32_t port = link % kPorts, group = group_of_router(from);
  const std::uint32_t slot = from % kSlots;
  if (port < kGreen) return {from, from - slot + (port < slot ? port : port + 1)};
  if (port < kGreen + kBlack) {
    const std::uint32_t chassis = from / kSlots % kChassis;
    std::uint32_t peer = (port - kGreen) / kBlackPerPeer;
    if (peer >= chassis) ++peer;
    return {from, (group * kChassis + peer) * kSlots + slot};
  }
  const std::uint32_t local = from % kRoutersPerGroup, blue_port = port - kGreen - kBlack;
  const std::uint32_t cable = blue_port / 2 * pairs_in(group) + local / 2;
  const std::uint32_t offset = cable / bundle_ + 1, index = cable % bundle_;
  const std::uint32_t peer_group = group + offset < groups_ ? group + offset : group + offset - groups_;
  const std::uint32_t peer_cable = (groups_ - offset - 1) * bundle_ + index;
  const std::uint32_t peer_pair = peer_cable % pairs_in(peer_group);
  return {from, peer_group * kRoutersPerGroup + 2 * peer_pair + local % 2};
}

LinkId Dragonfly::blue(std::uint32_t from_group, std::uint32_t to_group, std::uint32_t index) const {
  const std::uint32_t offset =
      to_group > from_group ? to_group - from_group : to_group + groups_ - from_group;
  const std::uint32_t cable = (offset - 1) * bundle_ + index / kLinksPerCable, wire = index % kLinksPerCable;
  const std::uint32_t pairs = pairs_in(from_group), pair = cable % pairs, connector = cable / pairs;
  const RouterId router = from_group * kRoutersPerGroup + 2 * pair + wire / 2;
  return router * kPorts + kGreen + kBlack + connector * 2 + wire % 2;
}

LinkEnds Dragonfly::blue_ends(std::uint32_t a, std::uint32_t b, std::uint32_t index) const {
  const std::uint32_t side = index % kLinksPerCable / 2;
  const auto router_in = [&](std::uint32_t group, std::uint32_t cable) {
    return group * kRoutersPerGroup + 2 * (cable % pairs_in(group)) + side;
  };
  const std::uint32_t offset = b > a ? b - a : b + groups_ - a, cable = index / kLinksPerCable;
  return {router_in(a, (offset - 1) * bundle_ + cable),
          router_in(b, (groups_ - offset - 1) * bundle_ + cable)};
}

std::uint32_t Dragonfly::own_blue(RouterId from, RouterId to, Choices* choices) const {
  // Cable i of the bundle lies at pair (first + i) mod pairs.
  const std::uint32_t a = group_of_router(from), b = group_of_router(to);
  const std::uint32_t offset = b > a ? b - a : b + groups_ - a, pairs = pairs_in(a);
  const std::uint32_t first = (offset - 1) * bundle_ % pairs, pair = from % kRoutersPerGroup / 2;
  const std::uint32_t own = pair >= first ? pair - first : pair + pairs - first;
  if (own >= bundle_) return choices->below(links_per_bundle());
  const std::uint32_t cable = own + pairs * choices->below((bundle_ - 1 - own) / pairs + 1);
  return cable * kLinksPerCable + from % 2 * 2 + choices->below(2);
}

void Dragonfly::in_group(RouterId from, RouterId to, Choices* choices, Route* out) const {
  const std::uint32_t to_slot = to % kSlots, to_chassis = to / kSlots % kChassis;
  if (from % kSlots != to_slot) {
    out->push(green(from, to_slot));
    from = from - from % kSlots + to_slot;
  }
  if (from != to) out->push(black(from, to_chassis, choices->below(kBlackPerPeer)));
}

void Dragonfly::across(RouterId from, RouterId to, LinkId blue, Choices* choices, Route* out) const {
  in_group(from, blue / kPorts, choices, out);
  out->push(blue);
  in_group(ends(blue).to, to, choices, out);
}

void Dragonfly::minimal(RouterId from, RouterId to, std::uint64_t seed, Route* out) const {
  Choices choices(seed);
  const std::uint32_t a = group_of_router(from), b = group_of_router(to);
  if (a == b) return in_group(from, to, &choices, out);
  across(from, to, blue(a, b, choices.below(links_per_bundle())), &choices, out);
}

namespace {

constexpr std::uint32_t hops_in_group(std::uint32_t a, std::uint32_t b) {
  return (a % Dragonfly::kSlots != b % Dragonfly::kSlots) + (a / Dragonfly::kSlots != b / Dragonfly::kSlots);
}

}  // namespace

std::uint32_t Dragonfly::minimal_hops(RouterId from, RouterId to, std::uint64_t seed) const {
  const std::uint32_t a = group_of_router(from), b = group_of_router(to);
  if (a == b) return hops_in_group(from, to);
  Choices choices(seed);
  const LinkEnds blue = pick_blue(from % kRoutersPerGroup, a, b, 0, ~std::uint64_t{0}, &choices);
  return hops_in_group(from % kRoutersPerGroup, blue.from) + 1 +
         hops_in_group(blue.to, to % kRoutersPerGroup);
}

void Dragonfly::minimal_by_own_link(RouterId from, RouterId to, std::uint64_t seed, Route* out) const {
  const std::uint32_t a = group_of_router(from), b = group_of_router(to);
  if (a == b) return minimal(from, to, seed, out);
  Choices choices(seed);
  const std::uint32_t index = own_blue(from, to, &choices);
  across(from, to, blue(a, b, index), &choices, out);
}

RouterId Dragonfly::valiant(RouterId from, RouterId to, std::uint64_t seed, Route* out,
                            std::size_t* up) const {
  const RouterId root = valiant_root(from, to, seed);
  const std::size_t before = out->size();
  const auto half = own_blue_first_ ? &Dragonfly::minimal_by_own_link : &Dragonfly::minimal;
  (this->*half)(from, root, seed, out);
  if (up != nullptr) *up = out->size() - before;
  (this->*half)(root, to, seed_past_root(seed), out);
  return root;
}

std::uint32_t Dragonfly::virtual_channel(const Route& route, std::size_t hop,
                                         std::size_t links_before_root) const {
  std::uint32_t channel = hop >= links_before_root ? 1 : 0;
  for (std::size_t i = 0; i < hop; ++i) channel += colour(route[i]) == LinkColour::blue ? 1 : 0;
  return channel;
}

}  // namespace orrery::model
