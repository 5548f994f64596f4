// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/bgl/bgl_run.hpp"

#include "emu/base/wait.hpp"
#include "emu/sim/bgl/bgl_router_inl.hpp"
#include "emu/sim/bgl/bgl_watchdog_inl.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace orrery::sim {

Refusal validate_bgl(const BglConfig& config) {
  std::uint64_t nodes = 1;
  for (const std::uint32_t side : config.sides) {
    if (side < 1 || side > 256) return {fmt::format("a side of {} nodes: expected 1 to 256", side)};
    nodes *= side;
  }
  if (nodes < 2 || nodes > (1u << 20))
    return {fmt::format("{} nodes in all: expected 2 to {}", nodes, 1u << 20)};
  if (config.dynamic_vcs < 1 || config.dynamic_vcs > 4)
    return {fmt::format("{} dynamic VCs: expected 1 to 4", config.dynamic_vcs)};
  for (const std::uint32_t bytes : {config.dynamic_bytes, config.escape_bytes, config.priority_bytes})
    if (bytes < 256 || bytes > 4096 || bytes % 32 != 0)
      return {fmt::format("a VC buffer of {} bytes: expected a multiple of 32 from 256 to 4096", bytes)};
  if (config.escape != EscapeKind::dateline_pair && config.escape_bytes < 512)
    return {
        fmt::format("a bubble VC of {} bytes: expected at least 512, two full packets", config.escape_bytes)};
  if (config.paths < 1 || config.paths > 4) return {fmt::format("{} paths: expected 1 to 4", config.paths)};
  if (config.injection_fifos < 1 || config.injection_fifos > 8)
    return {fmt::format("{} injection FIFOs: expected 1 to 8", config.injection_fifos)};
  if (config.hop_ticks < 1 || config.hop_ticks > 500 || config.token_ticks < 1 || config.token_ticks > 500)
    return {"hop and token delay: expected 1 to 500 cycles"};
  for (const double share : {config.slq_fraction, config.in_network_fraction})
    if (!(share >= 0 && share <= 1)) return {fmt::format("a fraction of {}: expected 0 to 1", share)};
  if (config.processors < 1 || config.processors > 2)
    return {fmt::format("{} processors: expected 1 or 2", config.processors)};
  if (config.processor_ticks > config.processor_full_ticks || config.processor_full_ticks > 10000)
    return {
        fmt::format("a processor's {} and {} cycles for the shortest and the longest packet: expected no "
                    "less for the longer, at most 10000",
                    config.processor_ticks, config.processor_full_ticks)};
  if (config.reception_bytes < 32 * config.max_chunks || config.reception_bytes > 65536)
    return {fmt::format("a reception FIFO of {} bytes: expected a full packet's {} to 65536",
                        config.reception_bytes, 32 * config.max_chunks)};
  if (!(config.bit_error_rate >= 0 && config.bit_error_rate <= 1e-4))
    return {fmt::format("a bit error rate of {}: expected 0 to 1e-4", config.bit_error_rate)};
  return {};
}

std::uint32_t bgl_wire_ticks(const BglConfig& config, std::uint32_t payload) {
  return (payload + config.software_bytes + 31) / 32 * 32 + config.link_overhead;
}

double bgl_uniform_peak(const BglConfig& config, std::uint32_t payload) {
  // An open dimension has half the links across its middle.
  double longest = 1;
  for (std::size_t d = 0; d < 3; ++d)
    if (config.sides[d] > 1)
      longest = std::max(longest, static_cast<double>(config.sides[d]) * (config.closed[d] ? 1 : 2));
  return 8.0 / longest / bgl_wire_ticks(config, payload);
}

namespace {

template <typename Router>
SimResult run_with(const BglConfig& config, Workload& workload, const RunLimits& limits,
                   const BglExtras& extras) {
  Router router(config);
  if (extras.keep_link_busy) router.keep_link_busy();
  for (const BglFault& fault : extras.failed_links) router.fail_link(fault.node, fault.direction);
  Engine<Router> engine(router, workload, limits);
  SimResult result;
  const std::int64_t started = monotonic_ns();
  result.outcome = engine.run();
  result.wall_seconds = static_cast<double>(monotonic_ns() - started) * 1e-9;
  result.machine = "bluegene-l";
  result.shape = fmt::format("{}x{}x{}", config.sides[0], config.sides[1], config.sides[2]);
  result.nodes = router.sites();
  result.links = router.links();
  result.tick_ns = config.tick_ns;
  result.threads = limits.threads;
  result.state_bytes = router.bytes() + workload.bytes();
  result.offered = workload.offered_per_node_tick();
  result.link_busy = router.link_busy();
  result.ports = Router::kPorts;
  for (std::uint32_t v = 0; v < config.dynamic_vcs; ++v)
    result.vc_names.push_back(fmt::format("dynamic {}", v));
  if (config.escape == EscapeKind::dateline_pair) {
    result.vc_names.insert(result.vc_names.end(), {"escape before dateline", "escape after dateline"});
  } else {
    result.vc_names.push_back("bubble escape");
  }
  result.vc_names.push_back("priority");
  if (result.outcome.stop == Stop::deadlock) result.cycle = router.find_cycle(engine.partitions());
  return result;
}

}  // namespace

SimResult run_bgl(const BglConfig& config, Workload& workload, const RunLimits& limits,
                  const BglExtras& extras) {
  switch (config.escape) {
    case EscapeKind::bubble:
      if (config.dynamic_vcs <= 2)
        return run_with<BglRouter<BubbleEscape, 4>>(config, workload, limits, extras);
      return run_with<BglRouter<BubbleEscape, 8>>(config, workload, limits, extras);
    case EscapeKind::naive_bubble:
      return run_with<BglRouter<NaiveBubbleEscape, 8>>(config, workload, limits, extras);
    case EscapeKind::dateline_pair:
      break;
  }
  return run_with<BglRouter<DatelineEscape, 8>>(config, workload, limits, extras);
}

}  // namespace orrery::sim
