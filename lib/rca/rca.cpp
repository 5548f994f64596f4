// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"
#include "emu/job/job.hpp"
#include "emu/model/machine.hpp"

#include "include/rca/rca_lib.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace {

constexpr std::uint64_t kNode = 1;  // type of a component that is a node

rs_node_t name_of(std::uint32_t nid) {
  rs_node_t node;
  node.rs_node_flat = 0;
  node.rs_node_s._type = kNode;
  node.rs_node_s._node_id = nid;
  return node;
}

using orrery::model::Coordinates;
using orrery::model::Dragonfly;
using orrery::model::Network;
using orrery::model::Pricing;

// The machine whose layout counts, and whether it ends where that machine does.
struct Layout {
  std::unique_ptr<orrery::model::Machine> machine;
  bool bounded = false;
};

const Layout& layout() {
  static const Layout* const one = [] {
    auto* const made = new Layout;
    const std::string machine = orrery::config::text("ORRERY_MACHINE");
    made->bounded = !machine.empty();
    made->machine = std::move(
        orrery::model::build_machine(made->bounded ? machine : orrery::config::text("ORRERY_DEVICE"))
            .machine);
    return made;
  }();
  return *one;
}

bool is_torus(const Pricing& pricing) {
  return pricing.network == Network::gemini_torus || pricing.network == Network::seastar_torus ||
         pricing.network == Network::bluegene_torus;
}

// Of the router that `nid` hangs on. Beyond the machine, where it is not bounded, x goes on.
std::optional<Coordinates> coordinates_of(std::uint32_t nid) {
  if (layout().machine == nullptr) return std::nullopt;
  const Pricing& pricing = layout().machine->pricing;
  if (layout().bounded && nid >= pricing.nodes) return std::nullopt;
  if (pricing.network == Network::dragonfly) {
    const std::uint32_t router = nid / Dragonfly::kNics;
    return Coordinates{{router / Dragonfly::kRoutersPerGroup,
                        router / Dragonfly::kSlots % Dragonfly::kChassis, router % Dragonfly::kSlots}};
  }
  if (!is_torus(pricing)) return std::nullopt;
  const std::uint32_t nodes = pricing.torus.nodes();
  Coordinates found = pricing.torus.coordinates(nid % nodes);
  found.at[0] += nid / nodes * pricing.torus.grid()[0];
  found.at[1] /= pricing.torus.shape().nodes_per_router;
  return found;
}

bool copy_out(const Coordinates& found, rca_mesh_coord_t* to) {
  for (const std::uint32_t one : found.at) {
    if (one > UINT16_MAX) return false;
  }
  *to = {static_cast<std::uint16_t>(found.at[0]), static_cast<std::uint16_t>(found.at[1]),
         static_cast<std::uint16_t>(found.at[2])};
  return true;
}

}  // namespace

extern "C" {

int rca_get_nodeid(rs_node_t* node) {
  if (node == nullptr) return -1;
  const auto job = orrery::job::Job::of_process();
  if (!job.ok()) return -1;
  *node = name_of(job.value()->nid());
  return 0;
}

int rca_get_sysnodes(rs_node_array_t* nodes) {
  if (nodes == nullptr) return -1;
  const auto job = orrery::job::Job::of_process();
  if (!job.ok()) return -1;
  std::set<std::uint32_t> nids;
  for (const auto& place : job.value()->placement().pes()) nids.insert(place.nid);
  nids.insert(job.value()->nid());
  auto* const list = static_cast<rs_node_t*>(std::calloc(nids.size(), sizeof(rs_node_t)));
  if (list == nullptr) return -1;
  nodes->na_len = static_cast<std::int32_t>(nids.size());
  nodes->na_ids = list;
  std::size_t i = 0;
  for (const std::uint32_t nid : nids) list[i++] = name_of(nid);
  return 0;
}

int rca_get_meshcoord(uint16_t nid, rca_mesh_coord_t* coordinates) {
  if (coordinates == nullptr) return -1;
  const auto found = coordinates_of(nid);
  return found && copy_out(*found, coordinates) ? 0 : -1;
}

int rca_get_max_dimension(rca_mesh_coord_t* largest) {
  if (largest == nullptr || layout().machine == nullptr) return -1;
  const Pricing& pricing = layout().machine->pricing;
  Coordinates most;
  if (is_torus(pricing)) {
    for (std::size_t i = 0; i < 3; ++i) most.at[i] = pricing.torus.grid()[i] - 1;
  } else if (pricing.network == Network::dragonfly) {
    most = {{pricing.dragonfly.groups() - 1, Dragonfly::kChassis - 1, Dragonfly::kSlots - 1}};
  } else {
    return -1;
  }
  if (!layout().bounded) {
    const auto job = orrery::job::Job::of_process();
    if (!job.ok()) return -1;
    std::uint32_t last = job.value()->nid();
    for (const auto& place : job.value()->placement().pes()) last = std::max(last, place.nid);
    // What clients can ask about: their type for a node is as narrow.
    const auto of_last = coordinates_of(static_cast<std::uint16_t>(last));
    if (of_last) most.at[0] = std::max(most.at[0], of_last->at[0]);
  }
  return copy_out(most, largest) ? 0 : -1;
}

}  // extern "C"
