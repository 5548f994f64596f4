// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/tile/tiers.hpp"

#include "emu/model/quote.hpp"
#include "emu/sim/bgl/bgl_run.hpp"
#include "emu/sim/quadrics/quadrics.hpp"
#include "emu/sim/scene/machine_timing.hpp"
#include "emu/sim/tile/tile_run.hpp"

#include <algorithm>
#include <cmath>
#include <new>

namespace orrery::sim {

namespace {

constexpr TierCase kCases[] = {{"bluegene-l", model::Op::send, {8, 8, 8}, 300},
                               {"gemini", model::Op::fma_put, {8, 16, 8}, 20},
                               {"seastar", model::Op::send, {8, 8, 8}, 20},
                               {"aries", model::Op::fma_put, {4, 1, 1}, 8},
                               {"asci-q", model::Op::fma_put, {4, 1, 1}, 200}};
constexpr double kHotFraction = 0.25;

// The machine as the simulator numbers its nodes: the NICs of a router side by side in x.
Box box_of(const model::Pricing& p) {
  switch (p.network) {
    case model::Network::gemini_torus:
    case model::Network::seastar_torus:
    case model::Network::bluegene_torus: {
      const auto& g = p.torus.grid();
      return {{g[0] * p.torus.shape().nodes_per_router, g[1], g[2]}};
    }
    default:
      return {{p.nodes, 1, 1}};
  }
}

Destinations destinations(const model::Pricing& p, const TierTraffic& traffic) {
  const Box box = box_of(p);
  std::array<std::uint32_t, 3> hot;
  for (std::size_t i = 0; i < 3; ++i) hot[i] = std::max(1u, box.sides[i] / 2);
  if (box.sides[1] == 1) hot[0] = std::max(1u, box.sides[0] / 8);
  return {traffic.pattern, box, kHotFraction, hot, traffic.seed};
}

// The simulator's node as the model numbers it.
model::NodeId model_node(const model::Pricing& p, Node node) {
  if (p.network != model::Network::gemini_torus) return node;
  const std::uint32_t nics = p.torus.shape().nodes_per_router;
  model::Coordinates at = p.torus.router_coordinates(node / nics);
  at.at[1] = at.at[1] * nics + node % nics;
  return p.torus.node_at(at);
}

}  // namespace

std::span<const TierCase> tier_cases() { return kCases; }

std::unique_ptr<model::Machine> network_alone(const TierCase& tier) {
  const model::BuiltMachine built = model::build_machine(tier.machine);
  if (built.machine == nullptr) return nullptr;
  model::Description d = built.machine->description;
  for (auto& [name, constant] : d.constants)
    if (name.rfind("stage.", 0) == 0) constant.value = 0;
  // A measured curve has the stages in it: rates instead.
  for (model::OpDescription& op : d.ops) op.knee.clear();
  // Sizes by nodes, whatever the file uses.
  if (auto it = d.constants.find("topology.class"); it != d.constants.end()) {
    const model::Constant any = it->second;
    for (const char* name : {"topology.class", "topology.cabinets", "topology.rows"}) d.constants.erase(name);
    for (const char* name : {"topology.x", "topology.y", "topology.z"}) d.constants.emplace(name, any);
  }
  const auto set = [&](const char* name, std::uint32_t value) {
    if (auto it = d.constants.find(name); it != d.constants.end()) it->second.value = value;
  };
  set("topology.x", tier.sides[0]);
  set("topology.y", tier.sides[1]);
  set("topology.z", tier.sides[2]);
  set("topology.groups", tier.sides[0]);
  set("topology.levels", tier.sides[0]);
  return model::compile(d).machine;
}

TierOutcome by_operations(const model::Machine& machine, const TierCase& tier, const TierTraffic& traffic) {
  const model::Pricing& p = machine.pricing;
  const std::size_t size = model::LinkState::bytes_needed(p, model::LinkState::Kind::exact);
  const std::unique_ptr<std::byte, void (*)(std::byte*)> block(
      static_cast<std::byte*>(::operator new (size, std::align_val_t{64})),
      [](std::byte* at) { ::operator delete (at, std::align_val_t{64}); });
  model::LinkState state =
      model::LinkState::create({block.get(), size}, p, model::LinkState::Kind::exact).value();
  Random random(traffic.seed, 77);
  const Destinations where = destinations(p, traffic);
  const double window = tier.window_us * 1000, from = window / 3;
  double now = 0, sum = 0;
  std::uint64_t there = 0;
  TierOutcome outcome;
  while (now < window) {
    now += -std::log(random.unit()) / (traffic.packets_per_node_ns * p.nodes);
    model::QuoteRequest r;
    r.op = tier.op;
    r.routing = model::Routing::adaptive_1;  // what the simulator's packets do unless asked otherwise
    const Node src = random.below(p.nodes);
    r.src = model_node(p, src);
    r.dst = model_node(p, where.pick(src, random));
    r.bytes = p.packet.payload;
    r.now = Picos{static_cast<std::int64_t>(now * 1000)};
    r.seed = random.next();
    const model::Quote q = model::quote(p, r, &state);
    ++outcome.work;
    const double at = static_cast<double>(q.data_at.count()) / 1000;
    if (at < from || at >= window) continue;
    sum += at - now;
    ++there;
  }
  outcome.latency_ns = sum / static_cast<double>(std::max<std::uint64_t>(there, 1));
  outcome.accepted = static_cast<double>(there) * p.packet.payload / (window - from) / p.nodes;
  outcome.inexact = state.merged();
  return outcome;
}

TierOutcome by_packets(const model::Machine& machine, const TierCase& tier, const TierTraffic& traffic) {
  const model::Pricing& p = machine.pricing;
  const double window = tier.window_us * 1000;
  if (p.network == model::Network::fat_tree) {
    if (traffic.pattern != Pattern::uniform) return {};
    QuadricsConfig config;
    if (timing_of(machine, &config).refused()) return {};
    config.seed = traffic.seed;
    Quadrics quadrics(config);
    const auto stream =
        quadrics.uniform(traffic.packets_per_node_ns * p.packet.payload / config.bytes_per_ns, window);
    return {stream.mean_latency, stream.accepted, stream.packets, 0};
  }
  RateTraffic::Options options;
  options.payload = static_cast<std::uint16_t>(p.packet.payload);
  options.seed = traffic.seed;
  RunLimits limits;
  limits.threads = traffic.threads;
  SimResult r;
  const auto limit = [&](double tick_ns) {
    options.packets_per_node_tick = traffic.packets_per_node_ns * tick_ns;
    limits.until = static_cast<Tick>(window / tick_ns);
    limits.warmup = limits.until / 3;
  };
  const auto workload = [&] { return RateTraffic(destinations(p, traffic), p.nodes, options); };
  if (p.network == model::Network::bluegene_torus) {
    BglConfig config;
    if (timing_of(machine, &config).refused()) return {};
    config.seed = traffic.seed;
    limit(config.tick_ns);
    options.fifos = config.injection_fifos;
    auto load = workload();
    r = run_bgl(config, load, limits);
  } else if (p.network == model::Network::dragonfly) {
    AriesTiming timing;
    if (timing_of(machine, &timing).refused()) return {};
    timing.nic.latency_in = 1;  // a tick: none would arrive before it was sent
    timing.nic.latency_out = 0;
    options.fifos = 1;
    limit(kTileTickNs);
    auto load = workload();
    r = run_aries(p.dragonfly, timing, load, limits, traffic.seed);
  } else {
    TorusTiming timing;
    if (timing_of(machine, &timing).refused()) return {};
    timing.nic.latency_in = 1;  // a tick: none would arrive before it was sent
    timing.nic.latency_out = 0;
    options.fifos = 1;
    limit(kTileTickNs);
    auto load = workload();
    r = run_torus(p.torus, timing, load, limits, traffic.seed);
  }
  return {r.mean_latency_ns(), r.payload_gb_per_node(), r.outcome.total.link_hops, 0};
}

double uniform_peak(const model::Machine& machine) {
  const model::Pricing& p = machine.pricing;
  const std::uint32_t bytes = p.packet.payload;
  if (p.network == model::Network::fat_tree) {
    QuadricsConfig config;
    if (timing_of(machine, &config).refused()) return 0;
    return config.bytes_per_ns / bytes;
  }
  if (p.network == model::Network::bluegene_torus) {
    BglConfig config;
    if (timing_of(machine, &config).refused()) return 0;
    return bgl_uniform_peak(config, bytes) / config.tick_ns;
  }
  if (p.network == model::Network::dragonfly) {
    AriesTiming timing;
    if (timing_of(machine, &timing).refused()) return 0;
    return aries_uniform_peak(p.dragonfly, timing, bytes) / kTileTickNs;
  }
  TorusTiming timing;
  if (timing_of(machine, &timing).refused()) return 0;
  return torus_uniform_peak(p.torus, timing, bytes) / kTileTickNs;
}

}  // namespace orrery::sim
