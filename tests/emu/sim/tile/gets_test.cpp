// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/scene/simulate.hpp"
#include "emu/sim/tile/tile_run.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace orrery::sim {
namespace {

// Node 0 gets 64 bytes from another, once or without end.
class Gets final : public Workload {
 public:
  Gets(Node from, bool endless) : from_(from), left_(endless ? ~0u : 1u) {}
  Next next(Node node, std::uint32_t, Tick now, Random&, Send& out) override {
    if (node != 0 || left_ == 0) return Next::idle;
    --left_;
    out = {.dst = from_, .payload = 64, .flags = kGet, .created = now};
    return Next::send;
  }

 private:
  Node from_;
  std::uint32_t left_;
};

TEST(Gets, ALoneOnesLatencyIsTheRoundTrip) {
  const auto dragonfly = model::Dragonfly::make({.groups = 2}).value();
  const AriesTiming timing;
  const DragonflyFabric fabric(dragonfly, timing);
  const NicCost& nic = timing.nic;
  const Tick wires = 2 * (nic.latency_in + nic.latency_out);
  const auto data = static_cast<Tick>(nic.eject_per_byte * 64);
  for (const auto& [from, hops] : {std::pair{Node{1}, 0}, {Node{4}, 1}}) {
    Gets get(from, false);
    const SimResult result = run_aries(dragonfly, timing, get, {}, 1);
    EXPECT_EQ(result.outcome.stop, Stop::finished);
    EXPECT_TRUE(result.outcome.conserved);
    EXPECT_EQ(result.outcome.latency.count(), 1u);
    // The request has 3 phits, the response 12: 11 of data and one more.
    const Tick there = hops == 0 ? nic.response : fabric.serialise(0, 3);
    const Tick back = hops == 0 ? data : fabric.serialise(0, 12);
    EXPECT_EQ(result.outcome.latency.max(),
              wires + 2 * static_cast<Tick>(hops) * timing.electrical_hop + there + back);
    const Counters& total = result.outcome.total;
    EXPECT_EQ(total.delivered, 1u);
    EXPECT_EQ(total.delivered_bytes, 64u);
    EXPECT_EQ(total.responses_back, 1u);
    EXPECT_EQ(total.vc_hops[0], static_cast<std::uint64_t>(hops));  // requests on theirs,
    EXPECT_EQ(total.vc_hops[4], static_cast<std::uint64_t>(hops));  // ... responses on theirs
  }
}

TEST(Gets, HoldAnOutstandingSlotUntilTheDataIsThere) {
  const auto dragonfly = model::Dragonfly::make({.groups = 1}).value();
  const auto got = [&](std::uint32_t outstanding) {
    AriesTiming timing;
    timing.nic.outstanding = outstanding;
    Gets gets(4, true);
    RunLimits limits;
    limits.until = 1'000'000;
    const SimResult result = run_aries(dragonfly, timing, gets, limits, 1);
    EXPECT_TRUE(result.outcome.conserved);
    EXPECT_LE(result.outcome.total.injected - result.outcome.total.responses_back, outstanding + 1);
    return static_cast<double>(result.outcome.total.delivered_bytes);
  };
  const double one = got(1), eight = got(8), all = got(1024);
  EXPECT_NEAR(one, 1e6 / 4190 * 64, 0.03 * one);  // a round trip each
  EXPECT_NEAR(eight, 8 * one, 0.05 * eight);
  // By more than one way, as fast as the interface takes it.
  EXPECT_NEAR(all, 1e6 / AriesTiming().nic.eject_per_byte, 0.05 * all);
}

SimResult run_uniform(const std::string& machine, const std::string& nodes, bool get, unsigned threads) {
  RunSpec spec;
  spec.machine = machine;
  spec.nodes = nodes;
  spec.workload = "uniform";
  spec.get = get;
  spec.load = 0.5;
  spec.warmup_us = 2;
  spec.measure_us = 4;
  spec.until_us = 20;
  spec.sample_us = 0.5;
  spec.threads = threads;
  spec.watch_buffers = true;
  SimResult result;
  EXPECT_EQ(simulate(spec, &result).why, "");
  EXPECT_TRUE(result.outcome.conserved) << machine;
  EXPECT_FALSE(result.saturated(0.05)) << machine;
  return result;
}

TEST(Gets, TheirDataGoesOnTheChannelsOfResponses) {
  for (const auto& [machine, nodes] : {std::pair{"aries", "2"}, {"gemini", "4x8x4"}}) {
    const SimResult put = run_uniform(machine, nodes, false, 1), get = run_uniform(machine, nodes, true, 1);
    EXPECT_NEAR(get.payload_gb_per_node(), put.payload_gb_per_node(), 0.05 * put.payload_gb_per_node());
    EXPECT_GT(get.mean_latency_ns(), 1.5 * put.mean_latency_ns()) << machine;
    const auto taken = [](const SimResult& result, bool responses) {
      const auto& vcs = result.outcome.samples.back().vcs;
      const auto half = static_cast<std::ptrdiff_t>(vcs.size() / 2);
      return std::accumulate(vcs.begin() + (responses ? half : 0), vcs.end() - (responses ? 0 : half),
                             std::uint64_t{0},
                             [](std::uint64_t sum, const VcUse& use) { return sum + use.taken; });
    };
    EXPECT_GT(taken(put, false), 2 * taken(put, true)) << machine;
    EXPECT_GT(taken(get, true), 2 * taken(get, false)) << machine;
    const SimResult crew = run_uniform(machine, nodes, true, 2);
    EXPECT_EQ(crew.outcome.total.link_hops, get.outcome.total.link_hops) << machine;
    EXPECT_EQ(crew.outcome.latency.mean(), get.outcome.latency.mean()) << machine;
  }
}

TEST(Gets, AnAllToAllGetsEveryByteAndOtherMachinesRefuse) {
  RunSpec spec;
  spec.machine = "gemini";
  spec.nodes = "4x4x2";
  spec.get = true;
  spec.bytes = 200;
  SimResult result;
  ASSERT_EQ(simulate(spec, &result).why, "");
  EXPECT_EQ(result.outcome.stop, Stop::finished);
  EXPECT_TRUE(result.outcome.conserved);
  EXPECT_EQ(result.outcome.in_flight, 0u);
  EXPECT_EQ(result.outcome.total.delivered_bytes, std::uint64_t{result.nodes} * (result.nodes - 1) * 200);
  EXPECT_EQ(result.workload, "alltoall by get");
  for (const char* machine : {"bluegene-l", "seastar", "asci-q"}) {
    spec.machine = machine;
    spec.nodes = "";
    EXPECT_NE(simulate(spec, &result).why.find("expected gemini or aries"), std::string::npos) << machine;
  }
  spec.machine = "aries";
  spec.trace = "some.trace";
  EXPECT_NE(simulate(spec, &result).why.find("expected none"), std::string::npos);
}

}  // namespace
}  // namespace orrery::sim
