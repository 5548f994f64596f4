// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/scene/scene.hpp"

#include "emu/sim/workload/ordered.hpp"
#include "emu/sim/workload/trace.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace orrery::sim {

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
  if (spec.in_step && (spec.workload != "alltoall" || spec.order != "shift"))
    return {fmt::format("in step, {} in order '{}': expected alltoall in order shift", spec.workload,
                        spec.order)};
  if (spec.ahead != 0 && (spec.workload != "alltoall" || spec.order != "shift" || spec.in_step))
    return {
        fmt::format("a node ahead by at most {} bytes, {} in order '{}'{}: expected alltoall in order shift, "
                    "not in step",
                    spec.ahead, spec.workload, spec.order, spec.in_step ? " in step" : "")};
  if (spec.fifos_in_turn && !spec.infinite_fifos) return {"FIFOs in turn: expected infinite FIFOs with it"};
  if (spec.repeat == 0) return {"0 exchanges: expected at least 1"};
  for (const double time : {spec.warmup_us, spec.measure_us, spec.until_us, spec.sample_us})
    if (!(time >= 0 && time <= 1e9)) return {fmt::format("a time of {} us: expected 0 to 1e9", time)};
  return {};
}

// What the run asks of an all-to-all, whichever nodes take part in it.
static Refusal all_to_all_options(const RunSpec& spec, const Scene& scene, AllToAll::Options* options) {
  const std::uint64_t packet = std::min<std::uint64_t>(spec.bytes, scene.payload_max);
  if (spec.ahead != 0 && spec.ahead < packet)
    return {
        fmt::format("a node ahead by at most {} bytes: expected a packet's {} or more", spec.ahead, packet)};
  if (spec.order == "shift") {
    options->order = AllToAll::Order::shift;
  } else if (spec.order != "random") {
    return {fmt::format("order '{}': expected random or shift", spec.order)};
  }
  options->flags = spec.get ? kGet : 0;
  options->fifos = scene.fifos;
  options->finite_fifos = !spec.infinite_fifos;
  options->by_direction = scene.fifo_a_direction;
  options->open = scene.open;
  options->bytes = spec.bytes;
  options->payload_max = scene.payload_max;
  options->seed = spec.seed;
  options->repeat = spec.steady ? 1u << 20 : spec.repeat;
  options->in_step = spec.in_step;
  options->ahead = spec.ahead;
  const std::uint64_t whole = (spec.bytes + scene.payload_max - 1) / scene.payload_max;
  options->burst = spec.burst != 0 ? spec.burst : static_cast<std::uint32_t>(whole);
  return {};
}

// What share of packets may have priority.
static Refusal check_priority(const RunSpec& spec, const Scene& scene) {
  if (spec.priority == 0) return {};
  if (!(spec.priority > 0 && spec.priority < 1))
    return {fmt::format("priority for {} of the packets: expected 0 to less than 1", spec.priority)};
  if (!scene.priorities)
    return {fmt::format("priority on {}: expected none, only routers of bluegene-l and asci-q know it",
                        spec.machine)};
  Pattern pattern;
  if (!spec.trace.empty() || spec.load == 0 || !pattern_named(spec.workload, &pattern))
    return {fmt::format("priority and {}{}: expected a workload with a load, such as uniform",
                        spec.trace.empty() ? spec.workload : "a replay",
                        spec.load == 0 ? " without load" : "")};
  if (!spec.failed_nodes.empty()) return {"priority and failed nodes: expected one of them"};
  return {};
}

// The workload in the terms of the machine's scene.
Refusal make_workload(const RunSpec& spec, const Scene& scene, std::unique_ptr<Workload>* out) {
  if (Refusal no = check_priority(spec, scene); no.refused()) return no;
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
  if (is_ordered(spec)) return make_ordered(spec, scene.box, scene.payload_max, scene.bgl, out);
  if (spec.workload == "alltoall") {
    AllToAll::Options options;
    if (Refusal no = all_to_all_options(spec, scene, &options); no.refused()) return no;
    std::uint32_t dims = 7;
    Box box = scene.box;
    const bool grouped = scene.group_nodes != 0;
    if (grouped && spec.subset == "groups") {
      // Nodes of a group are numbered in a row: the lines of a box as long as a group.
      box.sides = {scene.group_nodes, box.nodes() / scene.group_nodes, 1};
      dims = 1;
    } else if (!grouped && spec.subset == "lines") {
      dims = 1;
    } else if (!grouped && spec.subset == "planes") {
      dims = 3;
    } else if (!spec.subset.empty()) {
      return {fmt::format("subset '{}' on {}: expected {}", spec.subset, spec.machine,
                          grouped ? "groups" : "lines or planes")};
    }
    *out = std::make_unique<AllToAll>(box, dims, options);
    return {};
  }
  Pattern pattern;
  if (!pattern_named(spec.workload, &pattern))
    return {fmt::format("workload '{}' on {}: expected one of {}", spec.workload, spec.machine,
                        workload_names())};
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
  options.urgent_share = spec.priority;
  options.urgent_fifos = spec.priority > 0 ? scene.urgent_fifos : 0;
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
  if (!spec.subset.empty()) return {fmt::format("subset '{}' of a job: expected none", spec.subset)};
  AllToAll::Options options;
  if (Refusal no = all_to_all_options(spec, scene, &options); no.refused()) return no;
  std::vector<Node> members;
  for (std::uint32_t g = 0; g < groups; ++g)
    for (std::uint32_t i = 0; i < share; ++i) members.push_back(g * model::Dragonfly::kNodesPerGroup + i);
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
static constexpr unsigned kLooks = 8;

// A deadlock is told after so many of the machine's own intervals, whatever the run's are.
static constexpr Tick kStalledSamples = 100;

RunLimits make_limits(const RunSpec& spec, const Scene& scene, const Workload& workload,
                      Tick default_sample) {
  const auto ticks = [&](double us) { return static_cast<Tick>(us * 1000 / scene.tick_ns); };
  RunLimits limits;
  limits.threads = spec.threads;
  limits.sample_every = spec.sample_us > 0 ? std::max<Tick>(1, ticks(spec.sample_us)) : default_sample;
  limits.stall_after = kStalledSamples * default_sample;
  limits.looks = spec.watch_buffers ? kLooks : 0;
  limits.warmup = ticks(spec.warmup_us);
  const std::uint64_t expected = workload.expected_packets();
  if (spec.trace.empty() && !is_ordered(spec) && (spec.workload != "alltoall" || spec.steady)) {
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

}  // namespace orrery::sim
