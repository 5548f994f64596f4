// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/scene/simulate.hpp"

#include "emu/sim/bgl/bgl_presets.hpp"
#include "emu/sim/bgl/bgl_run.hpp"
#include "emu/sim/failure/asked_losses.hpp"
#include "emu/sim/failure/failed_nodes.hpp"
#include "emu/sim/quadrics/quadrics_run.hpp"
#include "emu/sim/scene/machine_timing.hpp"
#include "emu/sim/scene/scene.hpp"
#include "emu/sim/tile/tile_run.hpp"
#include "emu/sim/workload/ordered.hpp"

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
  return names + ", " + ordered_names() + ", software-barrier (asci-q)";
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

void note_replay(const Workload& workload, SimResult* out) {
  const Workload::Replayed replayed = workload.replayed();
  out->records = replayed.records;
  out->never_ran = replayed.never_ran;
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
      config.processor_full_ticks = preset->config.processor_full_ticks;
      config.processors = preset->config.processors;
      config.reception_bytes = preset->config.reception_bytes;
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
  scene.bgl = &config;
  scene.fifos = config.injection_fifos;
  scene.priorities = true;
  if (spec.priority > 0) {
    scene.urgent_fifos = 2;
    config.injection_fifos = std::min(8u, scene.fifos + scene.urgent_fifos);
    scene.fifos = config.injection_fifos - scene.urgent_fifos;
  }
  scene.fifo_a_direction = spec.infinite_fifos && !spec.fifos_in_turn && scene.fifos == 6;
  for (std::uint32_t d = 0; d < 3; ++d) scene.open |= config.closed[d] ? 0 : 1u << d;
  scene.payload_max = 32 * config.max_chunks - config.software_bytes;
  if (spec.bytes == 0) spec.bytes = default_bytes(spec, scene.payload_max);
  scene.tick_ns = config.tick_ns;
  scene.uniform_peak = bgl_uniform_peak(
      config, static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.bytes, scene.payload_max)));
  std::unique_ptr<Workload> workload;
  if (Refusal no = make_workload(spec, scene, &workload); no.refused()) return no;
  BglExtras extras;
  extras.keep_link_busy = spec.keep_link_busy;
  if (Refusal no = lead_round_failed_nodes(spec, config, &workload, &extras); no.refused()) return no;
  *out = run_bgl(config, *workload, make_limits(spec, scene, *workload, 10000), extras);
  note_replay(*workload, out);
  return {};
}

// Past this a packet hardly gets through.
constexpr double kMostBitErrors = 1e-4;
constexpr double kMostFirmwareUs = 1000;
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

Refusal check_firmware(const RunSpec& spec, model::Network network) {
  if (!(spec.firmware_us >= 0 && spec.firmware_us <= kMostFirmwareUs))
    return {fmt::format("firmware that takes {} us for a message: expected 0 to {}", spec.firmware_us,
                        kMostFirmwareUs)};
  if (spec.firmware_us > 0 && network != model::Network::seastar_torus)
    return {fmt::format("firmware that takes {} us for a message on {}: expected 0, only seastar's receives",
                        spec.firmware_us, spec.machine)};
  if (spec.firmware_us > 0 && spec.grain > 1)
    return {fmt::format("firmware and grain {}: expected grain 1, which tells messages of one packet",
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
  timing.nic.firmware = static_cast<std::uint32_t>(spec.firmware_us * 1000 / kTileTickNs + 0.5);
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
  if (spec.bytes == 0) spec.bytes = default_bytes(spec, scene.payload_max);
  scene.tick_ns = kTileTickNs;
  const auto payload = static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.bytes, scene.payload_max));
  scene.uniform_peak = torus_uniform_peak(torus.value(), timing, payload);
  std::unique_ptr<Workload> workload;
  if (Refusal no = make_workload(spec, scene, &workload); no.refused()) return no;
  Losses losses;
  TorusDetours detours;
  if (Refusal no = losses_of(spec, torus.value(), scene.tick_ns, &losses, &detours, &workload); no.refused())
    return no;
  *out = run_torus(torus.value(), timing, *workload, make_limits(spec, scene, *workload, 20000), spec.seed,
                   spec.keep_link_busy, losses, std::move(detours));
  note_replay(*workload, out);
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

// Refuses options that only other machines have.
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
  if (!spec.nodes.empty() && (spec.nodes.find('x') != std::string::npos || !parse_shape(spec.nodes, &nodes) ||
                              nodes[0] < 2 || nodes[0] > kMostTreeNodes))
    return {fmt::format("nodes '{}': {} takes one number, nodes: expected 2 to {}", spec.nodes, spec.machine,
                        kMostTreeNodes)};
  config.levels = Quadrics::levels_of(nodes[0]);
  config.bit_error_rate = std::max(0.0, spec.bit_error_rate);
  config.seed = spec.seed;
  if (spec.trace.empty() && is_collective(spec.workload)) {
    if (spec.load != 0) return {fmt::format("load {} of a {}: expected none", spec.load, spec.workload)};
    if (spec.priority != 0)
      return {
          fmt::format("priority and {}: expected a workload with a load, such as uniform", spec.workload)};
    if (spec.failed_links != 0)
      return {fmt::format("{} failed links in a {}: expected 0, multicasts know none", spec.failed_links,
                          spec.workload)};
    return run_collective(config, nodes[0], spec.workload, spec.bytes, spec.repeat, out);
  }
  Scene scene;
  scene.box.sides = nodes;
  scene.fifos = 1;
  scene.priorities = true;
  scene.payload_max = config.packet;
  if (spec.bytes == 0) spec.bytes = scene.payload_max;
  scene.tick_ns = kQuadricsTickNs;
  scene.uniform_peak = quadrics_uniform_peak(
      config, static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.bytes, scene.payload_max)));
  std::unique_ptr<Workload> workload;
  if (Refusal no = make_workload(spec, scene, &workload); no.refused()) return no;
  if (Refusal no = run_quadrics(config, nodes[0], spec.failed_links, *workload,
                                make_limits(spec, scene, *workload, 50000), out);
      no.refused())
    return no;
  note_replay(*workload, out);
  return {};
}

constexpr std::uint32_t kCachedGroups = 8;

Refusal simulate_aries(RunSpec spec, const model::Machine& machine, SimResult* out) {
  if (Refusal no = check_grain(spec); no.refused()) return no;
  Result<model::Dragonfly> dragonfly = machine.pricing.dragonfly;
  if (!spec.nodes.empty()) {
    std::array<std::uint32_t, 3> groups{};
    if (spec.nodes.find('x') != std::string::npos || !parse_shape(spec.nodes, &groups) ||
        groups[0] > model::Dragonfly::kMaxGroups)
      return {fmt::format("nodes '{}': {} takes one number, groups of 384 nodes: expected 1 to {}",
                          spec.nodes, spec.machine, model::Dragonfly::kMaxGroups)};
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
  scene.group_nodes = model::Dragonfly::kNodesPerGroup;
  scene.fifos = 1;
  scene.payload_max = 64 * spec.grain;
  if (spec.bytes == 0) spec.bytes = default_bytes(spec, scene.payload_max);
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
  Losses losses;
  DragonflyDetours detours;
  if (Refusal no = losses_of(spec, dragonfly.value(), scene.tick_ns, &losses, &detours, &workload);
      no.refused())
    return no;
  RunLimits limits = make_limits(spec, scene, *workload, 20000);
  // A group's state fits a cache, a large machine's does not: one group after the other, also by one thread.
  if (const std::uint32_t groups = dragonfly.value().groups(); groups > kCachedGroups)
    limits.partitions = std::max(limits.threads, groups);
  *out = run_aries(dragonfly.value(), timing, *workload, limits, spec.seed, spec.keep_link_busy, losses,
                   std::move(detours));
  note_replay(*workload, out);
  return {};
}

}  // namespace

Refusal simulate(const RunSpec& spec, SimResult* out) {
  if (Refusal no = check_common(spec); no.refused()) return no;
  const model::BuiltMachine built = model::build_machine(spec.machine);
  if (!built.machine) return {built.error};
  const model::Network network = built.machine->pricing.network;
  if (Refusal no = check_losses(spec, network); no.refused()) return no;
  if (Refusal no = check_firmware(spec, network); no.refused()) return no;
  if (spec.get && (network != model::Network::gemini_torus && network != model::Network::dragonfly))
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
