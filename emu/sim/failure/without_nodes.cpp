// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/failure/without_nodes.hpp"

#include "emu/sim/scene/simulate.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace orrery::sim {

WithoutNodes::WithoutNodes(std::unique_ptr<Workload> inner, std::vector<bool> failed, bool redraw, Tick at)
    : inner_(std::move(inner)),
      failed_(std::move(failed)),
      sound_(static_cast<std::uint32_t>(std::count(failed_.begin(), failed_.end(), false))),
      redraw_(redraw),
      at_(at) {}

bool WithoutNodes::redraws(const RunSpec& spec) { return spec.workload == "uniform"; }

Refusal WithoutNodes::accepts(const RunSpec& spec) {
  if (!spec.trace.empty() || (spec.workload != "uniform" && spec.workload != "alltoall"))
    return {fmt::format("failed nodes and {}: expected alltoall or uniform",
                        spec.trace.empty() ? spec.workload : "a replay")};
  if (spec.job_nodes != 0)
    return {fmt::format("failed nodes and a job of {}: expected an alltoall of the whole machine",
                        spec.job_nodes)};
  if (spec.in_step || spec.ahead != 0)
    return {
        "failed nodes and an alltoall whose nodes wait for messages: expected neither in step nor a bound on "
        "running ahead"};
  return {};
}

Next WithoutNodes::next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) {
  if (now < at_) return inner_->next(node, fifo, now, random, out);
  if (failed_[node]) return Next::idle;
  for (;;) {
    const Next next = inner_->next(node, fifo, now, random, out);
    if (next != Next::send) return next;
    while (redraw_ && (out.dst == node || failed_[out.dst]))
      out.dst = random.below(static_cast<std::uint32_t>(failed_.size()));
    if (!failed_[out.dst]) return next;
  }
}

double WithoutNodes::offered_per_node_tick() const {
  return inner_->offered_per_node_tick() * sound_ / static_cast<double>(failed_.size());
}

}  // namespace orrery::sim
