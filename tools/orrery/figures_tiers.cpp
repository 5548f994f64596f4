// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The per-operation model against the packet simulator: the same machine file, uniform random traffic of
// full packets, Poisson sources, network alone (every duration of the NIC and the software is set to zero in
// both, rates stay).
#include "emu/model/quote.hpp"
#include "emu/sim/bgl_run.hpp"
#include "emu/sim/machine_timing.hpp"
#include "emu/sim/quadrics.hpp"
#include "emu/sim/tile_run.hpp"
#include "emu/sim/traffic.hpp"
#include "tools/orrery/figures_book.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <new>

namespace orrery::tool {

namespace {

struct Outcome {
  double latency_ns = 0;  // mean, call to last byte there
  double accepted = 0;    // bytes per node and ns
};

struct Tiers {
  const char* machine;
  model::Op op;
  std::array<std::uint32_t, 3> sides;  // groups, or levels, in the first
  double window_us;
};

// The machine with all stages free and of the given size.
std::unique_ptr<model::Machine> network_alone(const Tiers& t) {
  model::Description d = model::build_machine(t.machine).machine->description;
  for (auto& [name, constant] : d.constants)
    if (name.rfind("stage.", 0) == 0) constant.value = 0;
  const auto set = [&](const char* name, std::uint32_t value) {
    if (auto it = d.constants.find(name); it != d.constants.end()) it->second.value = value;
  };
  set("topology.x", t.sides[0]);
  set("topology.y", t.sides[1]);
  set("topology.z", t.sides[2]);
  set("topology.groups", t.sides[0]);
  set("topology.levels", t.sides[0]);
  return model::compile(d).machine;
}

// Calls in order of time, as the virtual clock makes them.
Outcome per_operation(const model::Machine& machine, const Tiers& t, double packets_per_ns, double window_ns,
                      std::uint64_t seed) {
  const model::Pricing& p = machine.pricing;
  const std::size_t size = model::LinkState::bytes_needed(p, model::LinkState::Kind::exact);
  const std::unique_ptr<std::byte, void (*)(std::byte*)> block(
      static_cast<std::byte*>(::operator new (size, std::align_val_t{64})),
      [](std::byte* at) { ::operator delete (at, std::align_val_t{64}); });
  std::memset(block.get(), 0, size);
  model::LinkState state =
      model::LinkState::create({block.get(), size}, p, model::LinkState::Kind::exact).value();
  sim::Random random(seed, 77);
  const double from = window_ns / 3;
  double now = 0, sum = 0;
  std::uint64_t count = 0, there = 0;
  while (now < window_ns) {
    now += -std::log(random.unit()) / (packets_per_ns * p.nodes);
    model::QuoteRequest r;
    r.op = t.op;
    r.src = random.below(p.nodes);
    r.dst = random.below(p.nodes - 1);
    r.dst += r.dst >= r.src;
    r.bytes = p.packet.payload;
    r.now = Picos{static_cast<std::int64_t>(now * 1000)};
    r.seed = random.next();
    const model::Quote q = model::quote(p, r, &state);
    const double at = static_cast<double>(q.data_at.count()) / 1000;
    there += at >= from && at < window_ns;
    if (now < from) continue;
    sum += at - now;
    ++count;
  }
  return {sum / static_cast<double>(std::max<std::uint64_t>(count, 1)),
          static_cast<double>(there) * p.packet.payload / (window_ns - from) / p.nodes};
}

// The same in the simulator; `packets_per_ns` of a node.
Outcome by_packets(const model::Machine& machine, double packets_per_ns, double window_ns, std::uint64_t seed,
                   Book& book) {
  const model::Pricing& p = machine.pricing;
  if (p.network == model::Network::fat_tree) {
    sim::QuadricsConfig config;
    config.levels = p.tree.levels();
    config.upper_level_skew = 0;
    config.packet = p.packet.payload;
    config.seed = seed;
    sim::Quadrics quadrics(config);
    const auto stream = quadrics.uniform(packets_per_ns * p.packet.payload / config.bytes_per_ns, window_ns);
    return {stream.mean_latency, stream.accepted};
  }
  sim::RateTraffic::Options options;
  options.payload = static_cast<std::uint16_t>(p.packet.payload);
  options.seed = seed;
  sim::RunLimits limits;
  limits.threads = book.options().threads;
  sim::SimResult r;
  const auto limit = [&](double tick_ns) {
    options.packets_per_node_tick = packets_per_ns * tick_ns;
    limits.until = static_cast<sim::Tick>(window_ns / tick_ns);
    limits.warmup = limits.until / 3;
  };
  const auto traffic = [&] {
    return sim::RateTraffic(
        sim::Destinations(sim::Pattern::uniform, sim::Box{{p.nodes, 1, 1}}, 0, {1, 1, 1}, seed), p.nodes,
        options);
  };
  if (p.network == model::Network::bluegene_torus) {
    sim::BglConfig config;
    if (const auto no = sim::timing_of(machine, &config); no.refused()) return {};
    config.seed = seed;
    limit(config.tick_ns);
    options.fifos = config.injection_fifos;
    auto workload = traffic();
    r = sim::run_bgl(config, workload, limits);
  } else if (p.network == model::Network::dragonfly) {
    sim::AriesTiming timing;
    if (const auto no = sim::timing_of(machine, &timing); no.refused()) return {};
    timing.nic.latency_in = timing.nic.latency_out = 0;
    timing.optical_hop = timing.electrical_hop;  // the file has one
    options.fifos = 1;
    limit(sim::kTileTickNs);
    auto workload = traffic();
    r = sim::run_aries(p.dragonfly, timing, workload, limits, seed);
  } else {
    sim::TorusTiming timing;
    if (const auto no = sim::timing_of(machine, &timing); no.refused()) return {};
    timing.nic.latency_in = timing.nic.latency_out = 0;
    options.fifos = 1;
    limit(sim::kTileTickNs);
    auto workload = traffic();
    r = sim::run_torus(p.torus, timing, workload, limits, seed);
  }
  book.spent(r);
  return {r.mean_latency_ns(), r.payload_gb_per_node()};
}

// Packets of a node and ns at which the first resource is full.
double peak(const model::Machine& machine) {
  const model::Pricing& p = machine.pricing;
  const std::uint32_t bytes = p.packet.payload;
  if (p.network == model::Network::fat_tree) return sim::QuadricsConfig{}.bytes_per_ns / bytes;
  if (p.network == model::Network::bluegene_torus) {
    sim::BglConfig config;
    if (sim::timing_of(machine, &config).refused()) return 0;
    return sim::bgl_uniform_peak(config, bytes) / config.tick_ns;
  }
  if (p.network == model::Network::dragonfly) {
    sim::AriesTiming timing;
    if (sim::timing_of(machine, &timing).refused()) return 0;
    return sim::aries_uniform_peak(p.dragonfly, timing, bytes) / sim::kTileTickNs;
  }
  sim::TorusTiming timing;
  if (sim::timing_of(machine, &timing).refused()) return 0;
  return sim::torus_uniform_peak(p.torus, timing, bytes) / sim::kTileTickNs;
}

}  // namespace

void tiers(Book& book) {
  const Tiers machines[] = {{"bluegene-l", model::Op::send, {8, 8, 8}, 300},
                            {"gemini", model::Op::fma_put, {8, 8, 8}, 20},
                            {"seastar", model::Op::send, {8, 8, 8}, 20},
                            {"aries", model::Op::fma_put, {4, 1, 1}, 8},
                            {"asci-q", model::Op::fma_put, {4, 1, 1}, 200}};
  for (const Tiers& t : machines) {
    const auto machine = network_alone(t);
    if (machine == nullptr) continue;
    const double full = peak(*machine), window = t.window_us * 1000;
    Curves curves{fmt::format("tiers-{}", t.machine),
                  fmt::format("{}: per-operation model and packet simulator, uniform traffic", t.machine),
                  "load, share of the peak", "mean latency, ns"};
    curves.lines = {{"per-operation model", {}}, {"packet simulator", {}}};
    double worst_latency = 0, worst_accepted = 0, at_latency = 0, at_accepted = 0;
    for (int tenth = 1; tenth <= 9; tenth += book.options().brief ? 2 : 1) {
      const double load = tenth / 10.0;
      const Outcome i = per_operation(*machine, t, load * full, window, book.options().seed);
      const Outcome ii = by_packets(*machine, load * full, window, book.options().seed, book);
      curves.lines[0].points.push_back({load, i.latency_ns});
      curves.lines[1].points.push_back({load, ii.latency_ns});
      const double latency = 100 * (i.latency_ns / ii.latency_ns - 1),
                   accepted = 100 * (i.accepted / ii.accepted - 1);
      if (book.options().detail)
        fmt::print("     {} load {:.1f}: {:.0f} and {:.0f} ns, {:.3f} and {:.3f} GB/s a node\n", t.machine,
                   load, i.latency_ns, ii.latency_ns, i.accepted, ii.accepted);
      if (tenth < 7 && std::fabs(latency) > std::fabs(worst_latency))
        worst_latency = latency, at_latency = load;
      if (std::fabs(accepted) > std::fabs(worst_accepted)) worst_accepted = accepted, at_accepted = load;
    }
    book.curves(curves);
    book.row({fmt::format("tiers, {}: mean latency below 70 % load, worst", t.machine), "packet simulator",
              fmt::format("{:+.1f} % at {:.1f}", worst_latency, at_latency), "15 %", "predicted",
              std::fabs(worst_latency) <= 15, true});
    book.row({fmt::format("tiers, {}: throughput at 10 to 90 % load, worst", t.machine), "packet simulator",
              fmt::format("{:+.1f} % at {:.1f}", worst_accepted, at_accepted), "10 %", "predicted",
              std::fabs(worst_accepted) <= 10, true});
  }
}

}  // namespace orrery::tool
