// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/structure.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace orrery::model {

namespace {

using Fact = std::optional<double>;
using Numbers = std::array<std::uint32_t, 3>;

// Longest (or mean) route over a fixed sample of router pairs and choices.
enum class Routes : std::uint8_t { minimal_group, minimal, valiant_group, valiant };
struct Lengths {
  std::size_t longest = 0;
  double mean = 0;
  std::uint32_t channels = 0;
};

Lengths lengths(const Dragonfly& d, Routes which) {
  constexpr int kSamples = 10000;
  const bool one_group = which == Routes::minimal_group || which == Routes::valiant_group;
  const bool up_first = which == Routes::valiant_group || which == Routes::valiant;
  Choices pick(1);
  Lengths out;
  double sum = 0;
  int counted = 0;
  for (int i = 0; i < kSamples; ++i) {
    const RouterId from = pick.below(d.routers()), to = pick.below(d.routers());
    if (one_group != (d.group_of_router(from) == d.group_of_router(to))) continue;
    Route route;
    std::size_t up = 0;
    const std::uint64_t seed = mix64(static_cast<std::uint64_t>(i));
    if (up_first) {
      d.valiant(from, to, seed, &route, &up);
    } else {
      d.minimal(from, to, seed, &route);
    }
    out.longest = std::max(out.longest, route.size());
    for (std::size_t hop = 0; hop < route.size(); ++hop) {
      out.channels = std::max(out.channels, d.virtual_channel(route, hop, up_first ? up : route.size()) + 1);
    }
    sum += static_cast<double>(route.size());
    ++counted;
  }
  out.mean = counted == 0 ? 0 : sum / counted;
  return out;
}

Fact dragonfly_fact(const Machine& m, std::string_view name, const Numbers& n) {
  const Dragonfly& d = m.pricing.dragonfly;
  const DerivedRates r = derive_rates(m.description);
  using D = Dragonfly;
  if (name == "nodes_per_router") return D::kNics;
  if (name == "network_tiles") return D::kPorts;
  if (name == "router_ports") return D::kPorts + 2 * D::kNics;
  if (name == "routers_per_chassis") return D::kSlots;
  if (name == "group_nodes") return D::kNodesPerGroup;
  if (name == "green_links") return D::kGreen;
  if (name == "black_per_peer") return D::kBlackPerPeer;
  if (name == "blue_links") return D::kBlue;
  if (name == "blue_per_group") return D::kBlue * D::kRoutersPerGroup;
  if (name == "cables_per_group") return D::kCablesPerGroup;
  if (name == "max_groups") return D::kMaxGroups;
  if (name == "max_nodes") return D::kMaxNodes;
  if (name == "local_green") return 1.0 / D::kSlots;
  if (name == "local_black") return 1.0 / D::kChassis;
  if (name == "link") return r.link.gigabytes_per_second();
  if (name == "global_link") return r.global_link.gigabytes_per_second();
  const double blue = D::kBlue * r.global_link.gigabytes_per_second();
  if (name == "intra_over_inter") return (D::kGreen + D::kBlack) * r.link.gigabytes_per_second() / blue;
  if (name == "largest_bundle" && n[0] >= 2) return D::largest_bundle(n[0]);
  if (name == "total_cables" && n[1] >= 2) return static_cast<double>(D::total_cables(n[0], n[1]));
  if (name == "cables_used" && n[1] >= 2) {
    const auto made = D::make({n[1], n[0], D::kChassis});
    return made.ok() ? Fact(made.value().cables_used_per_group()) : std::nullopt;
  }
  if (name == "longest_minimal_in_group")
    return static_cast<double>(lengths(d, Routes::minimal_group).longest);
  if (name == "longest_minimal") return static_cast<double>(lengths(d, Routes::minimal).longest);
  if (name == "longest_valiant_in_group")
    return static_cast<double>(lengths(d, Routes::valiant_group).longest);
  if (name == "longest_valiant" || name == "mean_valiant" || name == "virtual_channels") {
    const bool own_first = m.description.value("topology.own_blue_first") != 0;
    const auto other = D::make({n[0], 0, D::kChassis, own_first});
    if (!other.ok()) return std::nullopt;
    const Lengths found = lengths(other.value(), Routes::valiant);
    return name == "mean_valiant"      ? found.mean
           : name == "longest_valiant" ? static_cast<double>(found.longest)
                                       : found.channels;
  }
  if (name == "candidates") return kMinimalCandidates + kNonMinimalCandidates;
  if (name == "longest_minimal_ns")
    return static_cast<double>(lengths(d, Routes::minimal).longest) * m.pricing.hop.nanos();
  if (name == "global_per_node") return blue / D::kNics;
  if (name == "wire_efficiency") return r.wire_shared * 100;
  if (name == "global_payload") return blue / D::kNics * r.wire_shared;
  if (name == "bisection" && n[0] >= 2) {
    const double groups = n[0];
    return groups / (2 * (groups - 1)) * r.global_link.gigabytes_per_second() * D::kBlue *
           D::kRoutersPerGroup * groups;
  }
  if (name == "bisection_over_global" && n[0] >= 2) return n[0] / (2.0 * (n[0] - 1));
  return std::nullopt;
}

Fact torus_fact(const Machine& m, std::string_view name, const Numbers& n) {
  const Torus& t = m.pricing.torus;
  const PacketPrice& p = m.pricing.packet;
  const DerivedRates r = derive_rates(m.description);
  const auto& links = t.shape().torus_links;
  if (name == "nodes_per_router") return t.shape().nodes_per_router;
  if (name == "torus_links") return 2 * (links[0] + links[1] + links[2]);
  if (name == "tile_links") return t.links_per_router();
  if (name == "tiles_per_torus_link") return t.shape().tiles_per_torus_link;
  if (name == "tile_links_towards" && n[0] < 3) return t.parallel(static_cast<Direction>(n[0]));
  if (name == "router_ports") return t.links_per_router() + 1;
  if (name == "unidirectional_links") return 2 * t.links_per_router();
  if (name == "cabled_links_per_chassis") return gemini_cabled_links_per_chassis();
  if (name == "put_request_phits") return p.put_request_phits(n[0]);
  if (name == "put_response_phits") return p.put_response;
  if (name == "get_request_phits") return p.get_request;
  if (name == "get_response_phits") return p.get_response_phits(n[0]);
  if (name == "largest_data_phits") return p.data_phits(p.payload);
  if (name == "wire_efficiency") return r.wire_shared * 100;
  if (name == "payload_share") return r.wire_lone * 100;
  if (name == "link") return r.link.gigabytes_per_second();
  if (name == "torus_link") return r.torus_link.gigabytes_per_second();
  if (name == "torus_link_payload") return r.torus_link.gigabytes_per_second() * r.wire_shared;
  if (name == "nic") return r.nic.gigabytes_per_second();
  if (name == "host_put") return r.host_put.gigabytes_per_second();
  if (name == "host_shared") return r.host_shared.gigabytes_per_second();
  if (name == "node_rate") return r.link.gigabytes_per_second() * t.links_per_router();
  if (name == "byte_ns") return 1 / r.link.gigabytes_per_second();
  if (name == "nodes") return t.nodes();
  if (name == "class_nodes") {
    const auto shape = gemini_shape(static_cast<int>(n[0]), n[1], n[2]);
    if (!shape.ok()) return std::nullopt;
    const auto& x = shape.value().nodes;
    return static_cast<double>(x[0]) * x[1] * x[2];
  }
  if (name == "bisection_links" && n[0] < 3)
    return static_cast<double>(t.bisection_links(static_cast<int>(n[0])));
  if (name == "bisection" || name == "global") {
    // The paper computes with the link speed as it prints it, cut to two decimals.
    const double speed = std::floor(r.torus_link.gigabytes_per_second() * 100) / 100;
    const double bisection = 2 * static_cast<double>(t.smallest_bisection_links()) * speed;
    return name == "bisection" ? bisection : 2 * bisection;
  }
  if (name == "peak_utilisation" && n[0] * n[1] * n[2] > 0) {
    return (n[0] + n[1] + n[2]) / (3.0 * std::max({n[0], n[1], n[2]})) * 100;
  }
  if (name == "peak_payload" && n[0] * n[1] * n[2] > 0) {
    return (n[0] + n[1] + n[2]) / (3.0 * std::max({n[0], n[1], n[2]})) * r.wire_lone * 100;
  }
  if (name == "alltoall_payload") {
    return static_cast<double>(m.description.value("share.alltoall_links")) / 1e4 * r.wire_lone;
  }
  if (name == "plane_broadcast") {
    return r.link.gigabytes_per_second() * 1e3 *
           static_cast<double>(m.description.value("count.plane_links")) *
           static_cast<double>(m.description.value("share.alltoall_links")) / 1e6 * r.wire_lone *
           static_cast<double>(m.description.value("share.plane_fill")) / 1e6;
  }
  if (name == "region_links") return 6.0 * n[0] * n[0];
  return std::nullopt;
}

Fact tree_fact(const Machine& m, std::string_view name, const Numbers& n) {
  const FatTree& t = m.pricing.tree;
  if (name == "nodes") return t.nodes();
  if (name == "levels") return t.levels();
  if (name == "switch_links") return 2 * FatTree::kArity;
  if (name == "switches") return t.switches();
  const auto other = FatTree::make(n[0]);
  if (name == "nodes_of" && other.ok()) return other.value().nodes();
  if (name == "switches_of" && other.ok()) return other.value().switches();
  if (name == "elites_packaged") return QuadricsPackaging{}.elites();
  if (name == "bottom_switches") return QuadricsPackaging{}.bottom_switches;
  if (name == "top_switches") return QuadricsPackaging{}.top_switches;
  if (name == "bisection_per_node" && other.ok()) {
    return static_cast<double>(other.value().bisection_links()) / other.value().nodes();
  }
  return std::nullopt;
}

}  // namespace

Fact structure(const Machine& m, std::span<const std::string_view> arguments) {
  Numbers n{};
  if (arguments.empty() || arguments.size() > n.size() + 1) return std::nullopt;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view text = arguments[i];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n[i - 1]);
    if (error != std::errc{} || end != text.data() + text.size() || n[i - 1] > 1000000) return std::nullopt;
  }
  const std::string_view name = arguments[0];
  if (name == "host_put") return derive_rates(m.description).host_put.gigabytes_per_second();
  if (name == "host_shared") return derive_rates(m.description).host_shared.gigabytes_per_second();
  switch (m.pricing.network) {
    case Network::dragonfly:
      return dragonfly_fact(m, name, n);
    case Network::gemini_torus:
    case Network::seastar_torus:
    case Network::bluegene_torus:
      return torus_fact(m, name, n);
    case Network::fat_tree:
      return tree_fact(m, name, n);
    case Network::crossbar:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace orrery::model
