// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/tile/tile_run.hpp"

#include "emu/base/wait.hpp"
#include "emu/sim/engine/engine.hpp"
#include "emu/sim/tile/tile_router_inl.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace orrery::sim {

DragonflyFabric::DragonflyFabric(const model::Dragonfly& dragonfly, const AriesTiming& timing,
                                 DragonflyDetours detours)
    : dragonfly_(dragonfly),
      timing_(timing),
      detours_(std::move(detours)),
      wires_(std::size_t{dragonfly.routers()} * model::Dragonfly::kPorts) {
  // The reverse of the i-th link from a to b is the i-th from b to a.
  std::map<std::pair<Node, Node>, std::vector<std::uint8_t>> between;
  for (model::LinkId link = 0; link < dragonfly.link_slots(); ++link) {
    if (!dragonfly.has_link(link)) continue;
    const model::LinkEnds ends = dragonfly.ends(link);
    between[{ends.from, ends.to}].push_back(static_cast<std::uint8_t>(link % model::Dragonfly::kPorts));
  }
  for (const auto& [ends, ports] : between) {
    const auto& reverse = between[{ends.second, ends.first}];
    ORRERY_CHECK(reverse.size() == ports.size(), "{} links one way, {} back", ports.size(), reverse.size());
    for (std::size_t i = 0; i < ports.size(); ++i)
      wires_[std::size_t{ends.first} * model::Dragonfly::kPorts + ports[i]] = {ends.second, reverse[i]};
  }
}

double torus_uniform_peak(const model::Torus& torus, const TorusTiming& timing, std::uint32_t payload) {
  const TorusFabric fabric(torus, timing);
  const double on_wire = timing.flit_ticks *
                         (fabric.flits_for(payload) + timing.nic.response_flits * fabric.packets_in(payload));
  double least = 1 / std::max(1.0, timing.nic.request_per_byte * payload +
                                       timing.nic.response * fabric.packets_in(payload));
  for (int d = 0; d < 3; ++d) {
    if (torus.grid()[static_cast<std::size_t>(d)] < 2) continue;
    // Half of the packets of either half cross; bisection links are torus links of `tiles` each.
    const double links = static_cast<double>(torus.bisection_links(d)) * torus.shape().tiles_per_torus_link;
    least = std::min(least, links / on_wire / (0.25 * torus.nodes()));
  }
  return least;
}

double aries_uniform_peak(const model::Dragonfly& dragonfly, const AriesTiming& timing,
                          std::uint32_t payload) {
  const std::uint32_t packets = (payload + 63) / 64;
  const double interval = payload < kFullPayload ? timing.nic.put_interval : 0;
  const double nic = 1 / (interval + timing.nic.request_per_byte * payload + timing.nic.response * packets);
  if (dragonfly.groups() == 1) return nic;
  const double full = timing.header_phits + (64.0 + timing.word - 1) / timing.word * timing.word_phits;
  const double phits = (std::floor(full) + timing.nic.response_flits) * payload / 64.0;
  const double remote = 1 - (model::Dragonfly::kNodesPerGroup - 1.0) / (dragonfly.nodes() - 1.0);
  const double global = dragonfly.links_per_bundle() * (dragonfly.groups() - 1.0) / timing.optical_phit /
                        phits / model::Dragonfly::kNodesPerGroup / remote;
  return std::min(nic, global);
}

namespace {

template <typename Fabric>
SimResult run_with(Fabric fabric, Workload& workload, const RunLimits& limits, std::uint64_t seed,
                   bool keep_link_busy, const Losses& losses) {
  TileRouter<Fabric> router(std::move(fabric), seed);
  router.plan(losses);
  if (keep_link_busy) router.keep_link_busy();
  Engine<TileRouter<Fabric>> engine(router, workload, limits);
  SimResult result;
  const std::int64_t started = monotonic_ns();
  result.outcome = engine.run();
  result.wall_seconds = static_cast<double>(monotonic_ns() - started) * 1e-9;
  result.nodes = router.nodes();
  result.links = router.links();
  result.quiesce = router.quiesce();
  result.tick_ns = kTileTickNs;
  result.threads = limits.threads;
  result.state_bytes = router.bytes() + workload.bytes();
  result.offered = workload.offered_per_node_tick();
  result.link_busy = router.link_busy();
  result.ports = router.fabric().ports();
  if (result.outcome.stop == Stop::deadlock) result.cycle = router.find_cycle(engine.partitions());
  return result;
}

}  // namespace

SimResult run_torus(const model::Torus& torus, const TorusTiming& timing, Workload& workload,
                    const RunLimits& limits, std::uint64_t seed, bool keep_link_busy, const Losses& losses,
                    TorusDetours detours) {
  SimResult result = run_with(TorusFabric(torus, timing, std::move(detours)), workload, limits, seed,
                              keep_link_busy, losses);
  const auto& n = torus.shape().nodes;
  result.shape = fmt::format("{}x{}x{}", n[0], n[1], n[2]);
  result.vc_names = {"request before dateline", "request after dateline", "response before dateline",
                     "response after dateline"};
  return result;
}

SimResult run_aries(const model::Dragonfly& dragonfly, const AriesTiming& timing, Workload& workload,
                    const RunLimits& limits, std::uint64_t seed, bool keep_link_busy, const Losses& losses,
                    DragonflyDetours detours) {
  SimResult result = run_with(DragonflyFabric(dragonfly, timing, std::move(detours)), workload, limits, seed,
                              keep_link_busy, losses);
  result.shape = fmt::format("{} groups", dragonfly.groups());
  for (int v = 0; v < 8; ++v)
    result.vc_names.push_back(fmt::format("{} {}", v < 4 ? "request" : "response", v % 4));
  return result;
}

}  // namespace orrery::sim
