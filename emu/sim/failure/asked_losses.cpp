// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/failure/asked_losses.hpp"

#include "emu/sim/failure/failed_links.hpp"
#include "emu/sim/failure/without_nodes.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery::sim {

namespace {

constexpr double kMostRerouteUs = 1e5;

void when(const RunSpec& spec, double tick_ns, Losses* losses) {
  losses->at = static_cast<Tick>(spec.fail_at_us * 1000 / tick_ns);
  losses->reroute = static_cast<Tick>((spec.reroute_us < 0 ? kRerouteUs : spec.reroute_us) * 1000 / tick_ns);
}

// "2" (drawn by the seed) or "1.0.3,2.2.2": routers. `at(a, b, c, &router)`: false where there is none;
// `form`: what coordinates are.
template <typename At>
Refusal parse_routers(const std::string& words, Node routers, std::uint64_t seed, const At& at,
                      const std::string& form, std::vector<Node>* out) {
  unsigned count = 0;
  char rest = 0;
  if (std::sscanf(words.c_str(), "%u%c", &count, &rest) == 1) {
    if (count == 0 || count > routers / 4)
      return {fmt::format("{} failed routers: expected 1 to {}, a quarter of them", count, routers / 4)};
    Random random(seed, 0x64656164u);
    while (out->size() < count) {
      const Node router = random.below(routers);
      if (std::find(out->begin(), out->end(), router) == out->end()) out->push_back(router);
    }
    return {};
  }
  for (std::size_t from = 0; from <= words.size();) {
    const std::size_t comma = std::min(words.find(',', from), words.size());
    unsigned a = 0, b = 0, c = 0;
    Node router = 0;
    if (std::sscanf(words.substr(from, comma - from).c_str(), "%u.%u.%u%c", &a, &b, &c, &rest) != 3 ||
        !at(a, b, c, &router))
      return {fmt::format("failed nodes '{}': expected a number of routers, or {} such as 1.0.2,0.1.1", words,
                          form)};
    out->push_back(router);
    from = comma + 1;
  }
  return {};
}

Refusal parse_routers(const std::string& words, const model::Torus& torus, std::uint64_t seed,
                      std::vector<Node>* out) {
  const auto& grid = torus.grid();
  const auto at = [&](unsigned x, unsigned y, unsigned z, Node* router) {
    if (x >= grid[0] || y >= grid[1] || z >= grid[2]) return false;
    *router = torus.router_at({{x, y, z}});
    return true;
  };
  return parse_routers(words, torus.routers(), seed, at,
                       fmt::format("coordinates of {}x{}x{} of them", grid[0], grid[1], grid[2]), out);
}

Refusal parse_routers(const std::string& words, const model::Dragonfly& dragonfly, std::uint64_t seed,
                      std::vector<Node>* out) {
  using model::Dragonfly;
  const auto at = [&](unsigned group, unsigned chassis, unsigned slot, Node* router) {
    if (group >= dragonfly.groups() || chassis >= dragonfly.chassis_in(group) || slot >= Dragonfly::kSlots)
      return false;
    *router = dragonfly.router_of(dragonfly.node_at({group, chassis, slot, 0}));
    return true;
  };
  return parse_routers(words, dragonfly.routers(), seed, at,
                       fmt::format("group.chassis.slot of {} groups of {} chassis of {}", dragonfly.groups(),
                                   Dragonfly::kChassis, Dragonfly::kSlots),
                       out);
}

// `workload` keeps off the nodes of the routers that fail, `nics` each of `nodes`.
Refusal keep_off(const RunSpec& spec, const Losses& losses, Node nodes, std::uint32_t nics,
                 std::unique_ptr<Workload>* workload) {
  std::vector<bool> failed(nodes);
  for (const Node router : losses.routers)
    for (std::uint32_t n = 0; n < nics; ++n) failed[router * nics + n] = true;
  if (std::count(failed.begin(), failed.end(), false) < 2)
    return {fmt::format("failed nodes '{}': expected at least two others", spec.failed_nodes)};
  *workload = std::make_unique<WithoutNodes>(std::move(*workload), std::move(failed),
                                             WithoutNodes::redraws(spec), losses.at);
  return {};
}

}  // namespace

Refusal check_losses(const RunSpec& spec, model::Network network) {
  using model::Network;
  const bool cray =
      network == Network::gemini_torus || network == Network::seastar_torus || network == Network::dragonfly;
  if (spec.failed_links != 0 && network != Network::gemini_torus && network != Network::dragonfly &&
      network != Network::fat_tree)
    return {
        fmt::format("{} failed links on {}: expected 0, only gemini, aries and asci-q have other links in "
                    "their place",
                    spec.failed_links, spec.machine)};
  if (spec.severed != 0 && !cray)
    return {
        fmt::format("{} severed neighbours on {}: expected 0, only gemini, seastar and aries have routing "
                    "tables",
                    spec.severed, spec.machine)};
  if (!spec.failed_nodes.empty() && network != Network::bluegene_torus && !cray)
    return {fmt::format(
        "failed nodes on {}: expected none, only bluegene-l's hint bits and the tables of gemini, "
        "seastar and aries lead round them",
        spec.machine)};
  if (!spec.failed_nodes.empty())
    if (Refusal no = WithoutNodes::accepts(spec); no.refused()) return no;
  if (!(spec.fail_at_us >= 0 && spec.fail_at_us <= 1e9))
    return {fmt::format("what fails at {} us: expected 0 to 1e9", spec.fail_at_us)};
  const bool tables = spec.severed != 0 || !spec.failed_nodes.empty();
  if (spec.fail_at_us > 0 && (!cray || (spec.failed_links == 0 && !tables)))
    return {fmt::format(
        "what fails at {} us: expected failed links, severed neighbours or failed nodes of gemini, "
        "seastar or aries with it",
        spec.fail_at_us)};
  if (spec.reroute_us >= 0 && (spec.fail_at_us == 0 || !tables))
    return {
        fmt::format("{} us for new tables: expected severed neighbours or nodes that fail in the run with it",
                    spec.reroute_us)};
  if (!(spec.reroute_us <= kMostRerouteUs))
    return {fmt::format("{} us for new tables: expected 0 to {}", spec.reroute_us, kMostRerouteUs)};
  return {};
}

Refusal losses_of(const RunSpec& spec, const model::Torus& torus, double tick_ns, Losses* losses,
                  TorusDetours* detours, std::unique_ptr<Workload>* workload) {
  when(spec, tick_ns, losses);
  if (Refusal no = pick_failed_links(torus, spec.failed_links, spec.seed, &losses->links); no.refused())
    return no;
  if (Refusal no = pick_severed(torus, spec.severed, spec.seed, &losses->links); no.refused()) return no;
  std::vector<Node>& dead = losses->routers;
  if (!spec.failed_nodes.empty()) {
    if (Refusal no = parse_routers(spec.failed_nodes, torus, spec.seed, &dead); no.refused()) return no;
    for (const Node router : dead) sever_router(torus, router, &losses->links);
    if (Refusal no = keep_off(spec, *losses, torus.nodes(), torus.shape().nodes_per_router, workload);
        no.refused())
      return no;
  }
  return TorusDetours::make(torus, losses->links, dead, detours);
}

Refusal losses_of(const RunSpec& spec, const model::Dragonfly& dragonfly, double tick_ns, Losses* losses,
                  DragonflyDetours* detours, std::unique_ptr<Workload>* workload) {
  when(spec, tick_ns, losses);
  if (Refusal no = pick_failed_links(dragonfly, spec.failed_links, spec.seed, &losses->links); no.refused())
    return no;
  if (Refusal no = pick_severed(dragonfly, spec.severed, spec.seed, &losses->links); no.refused()) return no;
  std::vector<Node>& dead = losses->routers;
  if (!spec.failed_nodes.empty()) {
    if (Refusal no = parse_routers(spec.failed_nodes, dragonfly, spec.seed, &dead); no.refused()) return no;
    for (const Node router : dead) sever_router(dragonfly, router, &losses->links);
    if (Refusal no = keep_off(spec, *losses, dragonfly.nodes(), model::Dragonfly::kNics, workload);
        no.refused())
      return no;
  }
  return DragonflyDetours::make(dragonfly, losses->links, dead, detours);
}

}  // namespace orrery::sim
