// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Packets with priority: under load they are faster than the others, and the others are not left behind.
#include "emu/sim/quadrics/quadrics_run.hpp"
#include "emu/sim/scene/report.hpp"
#include "emu/sim/scene/simulate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace orrery::sim {
namespace {

RunSpec with_priority(const char* machine, const char* nodes, double load, double share) {
  RunSpec spec;
  spec.machine = machine;
  spec.nodes = nodes;
  spec.workload = "uniform";
  spec.load = load;
  spec.priority = share;
  return spec;
}

SimResult run(const RunSpec& spec) {
  SimResult result;
  EXPECT_EQ(simulate(spec, &result).why, "");
  return result;
}

TEST(Priority, ShortensTheLatencyOfATenthOfBlueGenesPackets) {
  RunSpec spec = with_priority("bluegene-l", "8x8x8", 0.9, 0.1);
  const SimResult result = run(spec);
  ASSERT_NE(result.outcome.others, nullptr);
  const LatencyHistogram &urgent = result.outcome.urgent, &others = *result.outcome.others;
  EXPECT_TRUE(result.outcome.conserved);
  EXPECT_FALSE(result.saturated());
  EXPECT_EQ(urgent.count() + others.count(), result.outcome.latency.count());
  EXPECT_NEAR(static_cast<double>(urgent.count()), 0.1 * static_cast<double>(result.outcome.latency.count()),
              0.02 * static_cast<double>(result.outcome.latency.count()));
  EXPECT_LT(urgent.mean(), 0.7 * others.mean());
  EXPECT_LT(urgent.percentile(0.99), others.percentile(0.9));
  // By their own channel, all of them.
  EXPECT_GT(result.outcome.total.vc_hops[3], result.outcome.total.link_hops / 20);
  EXPECT_EQ(run(with_priority("bluegene-l", "8x8x8", 0.9, 0)).outcome.total.vc_hops[3], 0u);
  EXPECT_NE(to_json(result).find("\"priority_latency_ns\": {\"mean\": "), std::string::npos);
  EXPECT_NE(to_text(result).find("with priority: "), std::string::npos);
  spec.threads = 2;
  const SimResult crew = run(spec);
  EXPECT_EQ(crew.outcome.urgent.mean(), urgent.mean());
  EXPECT_EQ(crew.outcome.others->mean(), others.mean());
}

// Little: most of the wait is for the source, which has one packet under way and sends in order, and for
// circuits that no other packet waits for.
TEST(Priority, ShortensTheLatencyOfQuadricsPackets) {
  RunSpec spec = with_priority("asci-q", "64", 0.25, 0.1);
  spec.measure_us = 10000;
  const SimResult result = run(spec);
  ASSERT_NE(result.outcome.others, nullptr);
  EXPECT_TRUE(result.outcome.conserved);
  EXPECT_FALSE(result.saturated());
  EXPECT_LT(result.outcome.urgent.mean(), 0.985 * result.outcome.others->mean());
}

// All send to node 0 without end; every other node's packets have priority.
class HalfUrgent final : public Workload {
 public:
  Next next(Node node, std::uint32_t, Tick now, Random&, Send& out) override {
    if (node == 0) return Next::idle;
    out = {};
    out.payload = 384;
    out.created = now;
    out.flags = node % 2 ? kPriority : 0;
    return Next::send;
  }
  bool delivered(Node, const Packet& packet, Tick, bool) override {
    ++arrived[packet.flags & kPriority ? 1 : 0];
    ++from[packet.src];
    return false;
  }
  std::array<int, 2> arrived{};  // without priority, with it
  std::array<int, 16> from{};
};

TEST(Priority, OfQuadricsStarvesNobodyThanksToAgeing) {
  const auto send_to_one = [](double aging, HalfUrgent* workload) {
    QuadricsConfig config;
    config.levels = 2;
    config.aging = aging;
    RunLimits limits;
    limits.until = static_cast<Tick>(4e6 / kQuadricsTickNs);
    limits.sample_every = limits.until / 10;
    SimResult result;
    EXPECT_EQ(run_quadrics(config, 16, 0, *workload, limits, &result).why, "");
    EXPECT_TRUE(result.outcome.conserved);
  };
  HalfUrgent aged, never;
  send_to_one(QuadricsConfig().aging, &aged);
  send_to_one(1e18, &never);
  // Without ageing what has priority takes nearly all; with it every node gets packets through.
  EXPECT_GT(never.arrived[1], 8 * never.arrived[0]);
  EXPECT_GT(aged.arrived[1], aged.arrived[0]);
  EXPECT_GT(aged.arrived[0], 4 * never.arrived[0]);
  for (Node node = 1; node < 16; ++node) EXPECT_GT(aged.from[node], 50) << node;
}

TEST(Priority, IsRefusedInOneLineWhereNothingKnowsIt) {
  const auto why = [](const RunSpec& spec) {
    SimResult result;
    return simulate(spec, &result).why;
  };
  EXPECT_EQ(why(with_priority("gemini", "4x4x4", 0.5, 0.1)),
            "priority on gemini: expected none, only routers of bluegene-l and asci-q know it");
  EXPECT_EQ(why(with_priority("bluegene-l", "4x4x4", 0.5, 1)),
            "priority for 1 of the packets: expected 0 to less than 1");
  EXPECT_NE(why(with_priority("bluegene-l", "4x4x4", 0, 0.1)).find("without load"), std::string::npos);
  RunSpec spec = with_priority("bluegene-l", "4x4x4", 0.5, 0.1);
  spec.workload = "alltoall";
  EXPECT_EQ(why(spec), "priority and alltoall: expected a workload with a load, such as uniform");
  spec.workload = "uniform";
  spec.failed_nodes = "1";
  EXPECT_EQ(why(spec), "priority and failed nodes: expected one of them");
  spec = with_priority("asci-q", "64", 0, 0.1);
  spec.workload = "barrier";
  EXPECT_EQ(why(spec), "priority and barrier: expected a workload with a load, such as uniform");
}

}  // namespace
}  // namespace orrery::sim
