// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/simulate.hpp"

#include "emu/sim/bgl_presets.hpp"
#include "emu/sim/bgl_run.hpp"
#include "emu/sim/machine_timing.hpp"
#include "emu/sim/quadrics_run.hpp"
#include "emu/sim/tile_run.hpp"
#include "emu/sim/trace.hpp"
#include "emu/sim/traffic.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include <fmt/format.h>

namespace orrery::sim {

bool parse_shape(const std::string& text, std::array<std::uint32_t, 3>* out) {
  std::array<std::uint32_t, 3> sides{1, 1, 1};
  const char* at = text.c_str();
  for (std::size_t d = 0; d < 3; ++d) {
    if (*at < '0' || *at > '9') return false;
    char* end = nullptr;
    const unsigned long side = std::strtoul(at, &end, 10);
    if (side == 0 || side > 1'000'000) return false;
    sides[d] = static_cast<std::uint32_t>(side);
    if (*end == '\0') {
      *out = sides;
      return true;
    }
    if (*end != 'x') return false;
    at = end + 1;
  }
  return false;
}

std::string machine_names() { return "bluegene-l, gemini, seastar, aries, asci-q"; }

std::string workload_names() {
  std::string names = "alltoall";
  for (int p = 0; p <= static_cast<int>(Pattern::permutation); ++p)
    names += fmt::format(", {}", pattern_name(static_cast<Pattern>(p)));
  return names;
}

std::string routing_names(const std::string& machine) {
  if (machine == "bluegene-l") return "dynamic, deterministic";
  if (machine == "gemini") return "adaptive, hashed";
  if (machine == "aries")
    return "adaptive, adaptive0, adaptive1, adaptive2, adaptive3, minimal, minimal-adaptive, ordered, "
           "valiant";
  return "";
}

std::string preset_names(const std::string& machine) {
  std::string names;
  if (machine == "bluegene-l")
    for (const BglPreset& preset : bgl_presets())
      names += (names.empty() ? "" : ", ") + std::string(preset.name);
  return names;
}

namespace {

struct Scene {
  Box box;  // the machine as patterns see it
  std::uint32_t fifos = 6;
  std::uint32_t payload_max = 240;
  double uniform_peak = 0;  // packets of the payload per node and tick
  double tick_ns = 1;
  std::string also;  // names of workloads that the machine runs by itself
};

Refusal check_common(const RunSpec& spec) {
  if (!(spec.load >= 0 && spec.load <= 1))
    return {fmt::format("load {}: expected more than 0, up to 1", spec.load)};
  if (!(spec.background >= 0 && spec.background <= 1))
    return {fmt::format("background load {}: expected 0 to 1", spec.background)};
  if (!(spec.hot_fraction >= 0 && spec.hot_fraction <= 1))
    return {fmt::format("hot fraction {}: expected 0 to 1", spec.hot_fraction)};
  if (spec.bytes > (std::uint64_t{1} << 30))
    return {fmt::format("{} bytes: expected 1 to {}", spec.bytes, std::uint64_t{1} << 30)};
  if (spec.threads == 0 || spec.threads > 256)
    return {fmt::format("{} threads: expected 1 to 256", spec.threads)};
  if (spec.repeat == 0) return {"0 exchanges: expected at least 1"};
  for (const double time : {spec.warmup_us, spec.measure_us, spec.until_us, spec.sample_us})
    if (!(time >= 0 && time <= 1e9)) return {fmt::format("a time of {} us: expected 0 to 1e9", time)};
  return {};
}

// The workload in the terms of the machine's scene.
Refusal make_workload(const RunSpec& spec, const Scene& scene, std::unique_ptr<Workload>* out) {
  if (!spec.trace.empty()) {
    Trace trace;
    if (Refusal no = read_trace(spec.trace, &trace); no.refused()) return no;
    if (trace.processes > scene.box.nodes())
      return {fmt::format("trace '{}': {} processes on {} nodes: expected no more than nodes", spec.trace,
                          trace.processes, scene.box.nodes())};
    std::vector<Node> places(trace.processes);
    for (Node p = 0; p < trace.processes; ++p) places[p] = p;
    *out = std::make_unique<TraceTraffic>(trace, places, scene.box.nodes(), scene.payload_max, scene.tick_ns);
    return {};
  }
  if (spec.workload == "alltoall") {
    AllToAll::Options options;
    options.flags = spec.get ? kGet : 0;
    options.fifos = scene.fifos;
    options.finite_fifos = !spec.infinite_fifos;
    options.bytes = spec.bytes;
    options.payload_max = scene.payload_max;
    options.seed = spec.seed;
    options.repeat = spec.steady ? 1u << 20 : spec.repeat;
    options.burst =
        spec.burst != 0
            ? spec.burst
            : static_cast<std::uint32_t>((spec.bytes + scene.payload_max - 1) / scene.payload_max);
    if (spec.order == "shift") {
      options.order = AllToAll::Order::shift;
    } else if (spec.order != "random") {
      return {fmt::format("order '{}': expected random or shift", spec.order)};
    }
    std::uint32_t dims = 7;
    if (spec.subset == "lines") {
      dims = 1;
    } else if (spec.subset == "planes") {
      dims = 3;
    } else if (!spec.subset.empty()) {
      return {fmt::format("subset '{}': expected lines or planes", spec.subset)};
    }
    *out = std::make_unique<AllToAll>(scene.box, dims, options);
    return {};
  }
  Pattern pattern;
  if (!pattern_named(spec.workload, &pattern))
    return {fmt::format("workload '{}' on {}: expected one of {}", spec.workload, spec.machine,
                        workload_names() + scene.also)};
  if (spec.bytes > scene.payload_max)
    return {fmt::format("packets of {} bytes: expected 1 to {}", spec.bytes, scene.payload_max)};
  const auto& sides = scene.box.sides;
  if (pattern == Pattern::transpose && !(sides[0] == sides[1] && sides[1] == sides[2]))
    return {fmt::format("transpose on {}x{}x{}: expected three equal sides", sides[0], sides[1], sides[2])};
  std::array<std::uint32_t, 3> hot = spec.hot_region;
  for (std::size_t d = 0; d < 3; ++d) {
    if (hot[d] == 0) hot[d] = sides[d] > 1 ? sides[d] / 2 : 1;
    if (hot[d] > sides[d])
      return {fmt::format("a hot region of {} nodes along a side of {}: expected no more", hot[d], sides[d])};
  }
  RateTraffic::Options options;
  options.fifos = scene.fifos;
  options.payload = static_cast<std::uint16_t>(spec.bytes);
  options.packets_per_node_tick = spec.load * scene.uniform_peak;
  options.flags = spec.get ? kGet : 0;
  options.seed = spec.seed;
  *out = std::make_unique<RateTraffic>(Destinations(pattern, scene.box, spec.hot_fraction, hot, spec.seed),
                                       scene.box.nodes(), options);
  return {};
}

// An all-to-all of `job_nodes` nodes over `job_groups` groups, whole routers first, in a machine whose
// other nodes send `background` load to each other.
Refusal make_job(const RunSpec& spec, const Scene& scene, const model::Dragonfly& dragonfly,
                 std::unique_ptr<Workload>* out) {
  const std::uint32_t groups = spec.job_groups, share = groups == 0 ? 0 : spec.job_nodes / groups;
  if (groups == 0 || groups > dragonfly.groups() || spec.job_nodes % groups != 0 ||
      share > model::Dragonfly::kNodesPerGroup || spec.job_nodes < 2)
    return {
        fmt::format("a job of {} nodes in {} groups: expected equal parts of at most {} in at most {} groups",
                    spec.job_nodes, groups, model::Dragonfly::kNodesPerGroup, dragonfly.groups())};
  if (spec.workload != "alltoall") return {fmt::format("a job of {}: expected alltoall", spec.workload)};
  std::vector<Node> members;
  for (std::uint32_t g = 0; g < groups; ++g)
    for (std::uint32_t i = 0; i < share; ++i) members.push_back(g * model::Dragonfly::kNodesPerGroup + i);
  AllToAll::Options options;
  options.fifos = scene.fifos;
  options.bytes = spec.bytes;
  options.payload_max = scene.payload_max;
  options.order = spec.order == "shift" ? AllToAll::Order::shift : AllToAll::Order::random;
  options.flags = spec.get ? kGet : 0;
  options.seed = spec.seed;
  options.repeat = spec.steady ? 1u << 20 : spec.repeat;
  RateTraffic::Options noise;
  noise.fifos = scene.fifos;
  noise.payload = static_cast<std::uint16_t>(scene.payload_max);
  noise.packets_per_node_tick = spec.background * scene.uniform_peak *
                                static_cast<double>(std::min<std::uint64_t>(spec.bytes, scene.payload_max)) /
                                scene.payload_max;
  noise.seed = spec.seed;
  *out = std::make_unique<JobTraffic>(scene.box.nodes(), members, options, noise, spec.background > 0);
  return {};
}

// At the buffers in each interval of a sample.
constexpr unsigned kLooks = 8;

RunLimits make_limits(const RunSpec& spec, const Scene& scene, const Workload& workload,
                      Tick default_sample) {
  const auto ticks = [&](double us) { return static_cast<Tick>(us * 1000 / scene.tick_ns); };
  RunLimits limits;
  limits.threads = spec.threads;
  limits.sample_every = spec.sample_us > 0 ? std::max<Tick>(1, ticks(spec.sample_us)) : default_sample;
  limits.looks = spec.watch_buffers ? kLooks : 0;
  limits.warmup = ticks(spec.warmup_us);
  const std::uint64_t expected = workload.expected_packets();
  if (spec.trace.empty() && (spec.workload != "alltoall" || spec.steady)) {
    limits.until_steady = true;
    limits.measure = ticks(spec.measure_us);
    // Traffic that never comes to a steady state ends here and is reported as not steady.
    limits.until = ticks(spec.until_us > 0 ? spec.until_us : 100 * spec.measure_us + spec.warmup_us);
  } else if (spec.until_us > 0) {
    limits.until = ticks(spec.until_us);
  }
  limits.interrupt = spec.interrupt;
  if (spec.progress) {
    const bool endless = limits.until_steady;
    const double tick_us = scene.tick_ns / 1000;
    limits.progress = [progress = spec.progress, expected, endless, tick_us](Tick now,
                                                                             const Counters& totals) {
      progress(static_cast<double>(now) * tick_us, totals, endless ? 0 : expected);
    };
  }
  return limits;
}

Refusal simulate_bgl(RunSpec spec, const model::Machine& machine, SimResult* out) {
  BglConfig config;
  if (Refusal no = timing_of(machine, &config); no.refused()) return no;
  const BglPreset* preset = nullptr;
  if (!spec.preset.empty()) {
    for (const BglPreset& known : bgl_presets())
      if (spec.preset == known.name) preset = &known;
    if (preset == nullptr)
      return {fmt::format("preset '{}': expected one of {}", spec.preset, preset_names("bluegene-l"))};
    if (preset->as_built) {
      config.processor_ticks = preset->config.processor_ticks;
    } else {
      config = preset->config;
    }
  }
  if (!spec.nodes.empty()) {
    config.closed = {true, true, true};
    if (!parse_shape(spec.nodes, &config.sides))
      return {fmt::format("nodes '{}': expected a shape such as 8x8x8", spec.nodes)};
  }
  if (!spec.routing.empty()) {
    if (spec.routing != "dynamic" && spec.routing != "deterministic")
      return {fmt::format("routing '{}': expected dynamic or deterministic", spec.routing)};
    config.deterministic = spec.routing == "deterministic";
  }
  config.seed = spec.seed;
  config.count_unblocking = spec.count_unblocking;
  if (spec.bit_error_rate >= 0) config.bit_error_rate = spec.bit_error_rate;
  if (Refusal no = validate_bgl(config); no.refused()) return no;
  Scene scene;
  scene.box.sides = config.sides;
  scene.fifos = config.injection_fifos;
  scene.payload_max = 32 * config.max_chunks - config.software_bytes;
  if (spec.bytes == 0) spec.bytes = scene.payload_max;
  scene.tick_ns = config.tick_ns;
  scene.uniform_peak = bgl_uniform_peak(
      config, static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.bytes, scene.payload_max)));
  std::unique_ptr<Workload> workload;
  if (Refusal no = make_workload(spec, scene, &workload); no.refused()) return no;
  BglExtras extras;
  extras.keep_link_busy = spec.keep_link_busy;
  *out = run_bgl(config, *workload, make_limits(spec, scene, *workload, 10000), extras);
  return {};
}

// Past this a packet hardly gets through.
constexpr double kMostBitErrors = 1e-4;
constexpr std::uint32_t kMostTreeNodes = 4096;  // six levels

Refusal check_grain(const RunSpec& spec) {
  if (spec.grain < 1 || spec.grain > 8) return {fmt::format("grain {}: expected 1 to 8", spec.grain)};
  if (!spec.preset.empty()) return {fmt::format("preset '{}': {} has none", spec.preset, spec.machine)};
  if (!(spec.bit_error_rate <= kMostBitErrors))
    return {fmt::format("bit error rate {}: expected 0 to {}", spec.bit_error_rate, kMostBitErrors)};
  if (spec.bit_error_rate > 0 && spec.grain > 1)
    return {fmt::format("bit error rate with grain {}: expected grain 1, since a packet is repeated alone",
                        spec.grain)};
  return {};
}

Refusal bad_routing(const RunSpec& spec, const char* kind) {
  return {fmt::format(
      "routing '{}': expected {}", spec.routing,
      routing_names(kind).empty() ? "none: the machine has one" : "one of " + routing_names(kind))};
}

Refusal simulate_torus(RunSpec spec, const model::Machine& machine, SimResult* out) {
  const bool gemini = machine.pricing.network == model::Network::gemini_torus;
  if (Refusal no = check_grain(spec); no.refused()) return no;
  Result<model::Torus> torus = machine.pricing.torus;
  if (!spec.nodes.empty()) {
    std::array<std::uint32_t, 3> sides{};
    if (!parse_shape(spec.nodes, &sides))
      return {fmt::format("nodes '{}': expected a shape such as 8x8x8", spec.nodes)};
    torus = model::Torus::make(gemini ? model::gemini_shape_of(sides[0], sides[1], sides[2])
                                      : model::plain_torus_shape(sides[0], sides[1], sides[2]));
  }
  if (!torus.ok() || torus.value().nodes() < 2 || torus.value().nodes() > (1u << 20))
    return {
        fmt::format("nodes {}: expected 2 to {} nodes{}", spec.nodes, 1u << 20, gemini ? ", y even" : "")};
  TorusTiming timing;
  if (Refusal no = timing_of(machine, &timing); no.refused()) return no;
  timing.grain = spec.grain;
  timing.errors.bit_error_rate = std::max(0.0, spec.bit_error_rate);
  if (!spec.routing.empty()) {
    if (!gemini || (spec.routing != "adaptive" && spec.routing != "hashed"))
      return bad_routing(spec, gemini ? "gemini" : "seastar");
    timing.adaptive = spec.routing == "adaptive";
  }
  Scene scene;
  const auto& grid = torus.value().grid();
  scene.box.sides = {grid[0] * torus.value().shape().nodes_per_router, grid[1], grid[2]};
  scene.fifos = 1;
  scene.payload_max = 64 * spec.grain;
  if (spec.bytes == 0) spec.bytes = scene.payload_max;
  scene.tick_ns = kTileTickNs;
  const auto payload = static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.bytes, scene.payload_max));
  scene.uniform_peak = torus_uniform_peak(torus.value(), timing, payload);
  std::unique_ptr<Workload> workload;
  if (Refusal no = make_workload(spec, scene, &workload); no.refused()) return no;
  std::vector<FailedLink> failed;
  if (Refusal no = pick_failed_links(torus.value(), spec.failed_links, spec.seed, &failed); no.refused())
    return no;
  *out = run_torus(torus.value(), timing, *workload, make_limits(spec, scene, *workload, 20000), spec.seed,
                   spec.keep_link_busy, failed);
  return {};
}

Refusal aries_routing(const std::string& name, AriesTiming* timing) {
  if (name.empty() || name == "adaptive" || name == "adaptive2") return {};
  if (name == "adaptive0") {
    timing->bias = {.shift = 0, .bias = 0};
  } else if (name == "adaptive1") {
    timing->bias = {.shift = 1, .bias = 0};
  } else if (name == "adaptive3") {
    timing->bias = {.shift = 2, .bias = 16 * 14};
  } else if (name == "minimal") {
    timing->routing = AriesRouting::minimal;
  } else if (name == "minimal-adaptive") {
    timing->routing = AriesRouting::minimal_adaptive;
  } else if (name == "ordered") {
    timing->routing = AriesRouting::ordered;
  } else if (name == "valiant") {
    timing->routing = AriesRouting::valiant;
  } else {
    return {name};
  }
  return {};
}

// Options that only other machines have. `what` of them is set, if any.
Refusal check_quadrics(const RunSpec& spec) {
  const auto no = [&](bool given, const char* option, const char* accepted) {
    return Refusal{given ? fmt::format("{} on {}: expected {}", option, spec.machine, accepted) : ""};
  };
  for (Refusal refusal : {no(!spec.preset.empty(), "a preset", "none"),
                          no(!spec.routing.empty(), "a routing", "none: the machine has one"),
                          no(spec.grain != 1, "a grain", "1: a circuit carries one packet"),
                          no(spec.infinite_fifos, "infinite FIFOs", "none: a node has one packet under way"),
                          no(spec.job_nodes != 0, "a job", "none"),
                          no(!spec.subset.empty(), "a subset", "none: its nodes are one row")})
    if (refusal.refused()) return refusal;
  if (!(spec.bit_error_rate <= kMostBitErrors))
    return {fmt::format("bit error rate {}: expected 0 to {}", spec.bit_error_rate, kMostBitErrors)};
  return {};
}

Refusal simulate_quadrics(RunSpec spec, const model::Machine& machine, SimResult* out) {
  if (Refusal no = check_quadrics(spec); no.refused()) return no;
  QuadricsConfig config;
  if (Refusal no = timing_of(machine, &config); no.refused()) return no;
  std::array<std::uint32_t, 3> nodes{machine.pricing.tree.nodes(), 1, 1};
  if (!spec.nodes.empty() && (!parse_shape(spec.nodes, &nodes) || nodes[0] < 2 || nodes[0] > kMostTreeNodes ||
                              nodes[1] != 1 || nodes[2] != 1))
    return {fmt::format("nodes '{}': expected a number of nodes, 2 to {}", spec.nodes, kMostTreeNodes)};
  config.levels = Quadrics::levels_of(nodes[0]);
  config.bit_error_rate = std::max(0.0, spec.bit_error_rate);
  config.seed = spec.seed;
  if (spec.trace.empty() && is_collective(spec.workload)) {
    if (spec.load != 0) return {fmt::format("load {} of a {}: expected none", spec.load, spec.workload)};
    return run_collective(config, nodes[0], spec.workload, spec.bytes, spec.repeat, out);
  }
  Scene scene;
  scene.box.sides = nodes;
  scene.fifos = 1;
  scene.payload_max = config.packet;
  if (spec.bytes == 0) spec.bytes = scene.payload_max;
  scene.tick_ns = kQuadricsTickNs;
  scene.also = ", " + collective_names();
  scene.uniform_peak = quadrics_uniform_peak(
      config, static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.bytes, scene.payload_max)));
  std::unique_ptr<Workload> workload;
  if (Refusal no = make_workload(spec, scene, &workload); no.refused()) return no;
  *out = run_quadrics(config, nodes[0], *workload, make_limits(spec, scene, *workload, 50000));
  return {};
}

constexpr std::uint32_t kCachedGroups = 8;

Refusal simulate_aries(RunSpec spec, const model::Machine& machine, SimResult* out) {
  if (Refusal no = check_grain(spec); no.refused()) return no;
  Result<model::Dragonfly> dragonfly = machine.pricing.dragonfly;
  if (!spec.nodes.empty()) {
    std::array<std::uint32_t, 3> groups{};
    if (!parse_shape(spec.nodes, &groups) || groups[1] != 1 || groups[2] != 1 ||
        groups[0] > model::Dragonfly::kMaxGroups)
      return {fmt::format("nodes '{}': expected a number of groups of 384 nodes, 1 to {}", spec.nodes,
                          model::Dragonfly::kMaxGroups)};
    dragonfly = model::Dragonfly::make({.groups = groups[0]});
    if (!dragonfly.ok()) return {fmt::format("{} groups: no wiring for them", groups[0])};
  }
  AriesTiming timing;
  if (Refusal no = timing_of(machine, &timing); no.refused()) return no;
  timing.grain = spec.grain;
  timing.errors.bit_error_rate = std::max(0.0, spec.bit_error_rate);
  if (aries_routing(spec.routing, &timing).refused()) return bad_routing(spec, "aries");
  Scene scene;
  scene.box.sides = {dragonfly.value().nodes(), 1, 1};
  scene.fifos = 1;
  scene.payload_max = 64 * spec.grain;
  if (spec.bytes == 0) spec.bytes = scene.payload_max;
  scene.tick_ns = kTileTickNs;
  scene.uniform_peak =
      aries_uniform_peak(dragonfly.value(), timing,
                         static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.bytes, scene.payload_max)));
  std::unique_ptr<Workload> workload;
  if (spec.job_nodes != 0) {
    if (Refusal no = make_job(spec, scene, dragonfly.value(), &workload); no.refused()) return no;
  } else if (Refusal no = make_workload(spec, scene, &workload); no.refused()) {
    return no;
  }
  std::vector<FailedLink> failed;
  if (Refusal no = pick_failed_links(dragonfly.value(), spec.failed_links, spec.seed, &failed); no.refused())
    return no;
  RunLimits limits = make_limits(spec, scene, *workload, 20000);
  // A group's state fits a cache, a large machine's does not: one group after the other, also by one thread.
  if (const std::uint32_t groups = dragonfly.value().groups(); groups > kCachedGroups)
    limits.partitions = std::max(limits.threads, groups);
  *out = run_aries(dragonfly.value(), timing, *workload, limits, spec.seed, spec.keep_link_busy, failed);
  return {};
}

}  // namespace

Refusal simulate(const RunSpec& spec, SimResult* out) {
  if (Refusal no = check_common(spec); no.refused()) return no;
  const model::BuiltMachine built = model::build_machine(spec.machine);
  if (!built.machine) return {built.error};
  const model::Network network = built.machine->pricing.network;
  if (spec.failed_links != 0 && network != model::Network::gemini_torus &&
      network != model::Network::dragonfly)
    return {
        fmt::format("{} failed links on {}: expected 0, only gemini and aries have links beside each other",
                    spec.failed_links, spec.machine)};
  if (spec.get && network != model::Network::gemini_torus && network != model::Network::dragonfly)
    return {fmt::format("gets on {}: expected gemini or aries, whose responses have channels of their own",
                        spec.machine)};
  if (spec.get && !spec.trace.empty())
    return {"gets with a trace: expected none, its records say what is got"};
  SimResult result;
  Refusal no;
  switch (built.machine->pricing.network) {
    case model::Network::bluegene_torus:
      no = simulate_bgl(spec, *built.machine, &result);
      break;
    case model::Network::gemini_torus:
    case model::Network::seastar_torus:
      no = simulate_torus(spec, *built.machine, &result);
      break;
    case model::Network::dragonfly:
      no = simulate_aries(spec, *built.machine, &result);
      break;
    case model::Network::fat_tree:
      no = simulate_quadrics(spec, *built.machine, &result);
      break;
    case model::Network::crossbar:
      no = {fmt::format("machine '{}': a {}: expected a torus, a dragonfly or a fat tree, as {} are",
                        spec.machine, model::network_name(built.machine->pricing.network), machine_names())};
      break;
  }
  if (no.refused()) return no;
  result.machine = spec.machine;
  result.workload =
      !spec.trace.empty() ? "replay of " + spec.trace : spec.workload + (spec.get ? " by get" : "");
  result.preset = spec.preset;
  *out = std::move(result);
  return {};
}

}  // namespace orrery::sim
