// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/quadrics/quadrics_run.hpp"
#include "emu/sim/scene/machine_timing.hpp"
#include "emu/sim/scene/report.hpp"
#include "emu/sim/scene/simulate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace orrery::sim {
namespace {

using ::testing::HasSubstr;

RunSpec spec_of(const std::string& workload, double load = 0) {
  RunSpec spec;
  spec.machine = "asci-q";
  spec.nodes = "64";
  spec.workload = workload;
  spec.load = load;
  return spec;
}

SimResult run(const RunSpec& spec) {
  SimResult result;
  EXPECT_EQ(simulate(spec, &result).why, "");
  EXPECT_TRUE(result.outcome.conserved) << spec.workload;
  return result;
}

TEST(QuadricsRun, UniformLoadIsCarriedAsByTheCircuitsAlone) {
  QuadricsConfig config;
  ASSERT_EQ(timing_of(*model::build_machine("asci-q").machine, &config).why, "");
  config.levels = 3;
  for (const double load : {0.1, 0.25}) {
    RunSpec spec = spec_of("uniform", load);
    spec.measure_us = 1000;
    const SimResult result = run(spec);
    const Quadrics::Stream alone = Quadrics(config).uniform(load, 1.5e6);
    EXPECT_NEAR(result.payload_gb_per_node(), load * config.bytes_per_ns, 0.03 * load * config.bytes_per_ns);
    EXPECT_NEAR(result.mean_latency_ns(), alone.mean_latency, 0.05 * alone.mean_latency) << load;
    EXPECT_TRUE(result.outcome.steady);
    EXPECT_FALSE(result.saturated(0.03));
    // Two, four or six links a packet; every one carries its data once.
    EXPECT_NEAR(result.link_utilisation(), load * (3 * 2 + 12 * 4 + 48 * 6) / 63.0 / 6, 0.03 * load);
  }
}

TEST(QuadricsRun, CircuitsSaturateAtLessThanHalfOfTheLinks) {
  RunSpec spec = spec_of("uniform", 0.9);
  spec.watch_buffers = true;
  const SimResult high = run(spec);
  EXPECT_TRUE(high.saturated());
  EXPECT_GT(high.accepted(), 0.3 * high.offered);
  EXPECT_LT(high.accepted(), 0.5 * high.offered);
  spec.load = 0.1;
  const SimResult low = run(spec);
  EXPECT_GT(high.outcome.latency.percentile(0.99), 10 * low.outcome.latency.percentile(0.5));
  // Second circuits wait where first ones send.
  const auto& crowd = high.outcome.samples.back().vcs;
  const auto& few = low.outcome.samples.back().vcs;
  ASSERT_EQ(crowd.size(), 2u);
  EXPECT_GT(crowd[0].mean(), 2 * few[0].mean());
  EXPECT_GT(crowd[0].mean(), crowd[1].mean());
  EXPECT_GT(crowd[1].taken, 0u);
}

TEST(QuadricsRun, AnAllToAllDeliversEveryPacketOnAnyNumberOfNodes) {
  for (const Node nodes : {2u, 30u, 64u}) {
    RunSpec spec = spec_of("alltoall");
    spec.nodes = std::to_string(nodes);
    spec.bytes = 1000;  // three packets
    spec.keep_link_busy = true;
    SimResult result = run(spec);
    EXPECT_EQ(result.outcome.stop, Stop::finished);
    EXPECT_EQ(result.outcome.total.delivered, std::uint64_t{nodes} * (nodes - 1) * 3);
    EXPECT_EQ(result.outcome.total.delivered_bytes, std::uint64_t{nodes} * (nodes - 1) * 1000);
    EXPECT_EQ(result.outcome.total.delivered_hops, result.outcome.total.link_hops);
    EXPECT_EQ(result.outcome.in_flight, 0u);
    // Time that links carried data, by link and in all, but for parts of ticks.
    std::uint64_t busy = 0;
    for (const std::uint32_t ticks : result.link_busy) busy += ticks;
    EXPECT_NEAR(static_cast<double>(busy), static_cast<double>(result.outcome.total.link_ticks),
                static_cast<double>(result.link_busy.size()));
    spec.threads = 2;
    const SimResult crew = run(spec);
    EXPECT_EQ(crew.outcome.end, result.outcome.end);
    EXPECT_EQ(crew.outcome.latency.mean(), result.outcome.latency.mean());
  }
}

TEST(QuadricsRun, BitErrorsAreRetriedAndNothingIsLost) {
  RunSpec spec = spec_of("alltoall");
  spec.repeat = 20;
  const SimResult clean = run(spec);
  spec.bit_error_rate = 1e-5;
  const SimResult noisy = run(spec);
  EXPECT_EQ(clean.outcome.total.retries, 0u);
  // 3,072 bits on up to six links: 17 % of the packets, and of those sent again.
  EXPECT_NEAR(static_cast<double>(noisy.outcome.total.retries) / (20 * 64 * 63), 0.18, 0.03);
  EXPECT_EQ(noisy.outcome.total.delivered, clean.outcome.total.delivered);
  EXPECT_GT(noisy.outcome.end, clean.outcome.end);
}

TEST(QuadricsRun, LostLinksAreClimbedRoundAndNothingIsLost) {
  RunSpec spec = spec_of("alltoall");
  spec.repeat = 20;
  const SimResult whole = run(spec);
  spec.failed_links = 32;  // a quarter of those above the nodes' own
  for (spec.seed = 1; spec.seed <= 5; ++spec.seed) {
    const SimResult less = run(spec);
    EXPECT_EQ(less.outcome.stop, Stop::finished);
    EXPECT_EQ(less.outcome.total.delivered, whole.outcome.total.delivered);
    EXPECT_EQ(less.outcome.total.link_hops, whole.outcome.total.link_hops) << "no way is longer than another";
    EXPECT_GT(less.outcome.end, whole.outcome.end);
  }
}

TEST(QuadricsRun, CollectivesComeNearThePapersNumbers) {
  const auto us = [](const std::string& name, const std::string& nodes, std::uint64_t bytes = 0) {
    RunSpec spec = spec_of(name);
    spec.nodes = nodes;
    spec.bytes = bytes;
    spec.repeat = 3;
    const SimResult result = run(spec);
    EXPECT_EQ(result.outcome.latency.count(), 3u);
    EXPECT_NEAR(static_cast<double>(result.outcome.end), 3 * result.outcome.latency.mean(), 30);
    return result.mean_latency_ns() / 1000;
  };
  EXPECT_NEAR(us("barrier", "64"), 6, 0.9);
  EXPECT_NEAR(us("barrier", "1024"), 10, 1.5);
  EXPECT_NEAR(us("software-barrier", "64"), 15, 2.25);
  EXPECT_NEAR(us("software-barrier", "1024"), 30, 4.5);
  EXPECT_NEAR(us("allreduce", "1024"), 160, 24);
  EXPECT_NEAR(384000 / us("broadcast", "64", 384000), 288, 0.15 * 288);
  EXPECT_NEAR(384000 / us("broadcast", "1024", 384000), 140, 0.15 * 140);
}

TEST(QuadricsRun, RefusesInOneLineWhatItCannotRun) {
  const auto why = [](auto change) {
    RunSpec spec = spec_of("uniform", 0.5);
    change(spec);
    SimResult result;
    return simulate(spec, &result).why;
  };
  EXPECT_THAT(why([](RunSpec& s) { s.workload = "gossip"; }),
              HasSubstr("row-broadcast (bluegene-l), software-barrier (asci-q)"));
  EXPECT_THAT(why([](RunSpec& s) { s.nodes = "1"; }), HasSubstr("2 to 4096"));
  EXPECT_THAT(why([](RunSpec& s) { s.nodes = "8x8"; }), HasSubstr("2 to 4096"));
  EXPECT_THAT(why([](RunSpec& s) { s.nodes = "4097"; }), HasSubstr("2 to 4096"));
  EXPECT_THAT(why([](RunSpec& s) { s.bytes = 385; }), HasSubstr("1 to 384"));
  EXPECT_THAT(why([](RunSpec& s) { s.grain = 4; }), HasSubstr("a grain on asci-q: expected 1"));
  EXPECT_THAT(why([](RunSpec& s) { s.routing = "hashed"; }), HasSubstr("a routing on asci-q"));
  EXPECT_EQ(why([](RunSpec& s) { s.failed_links = 33; }),
            "33 failed links: expected at most 32, a quarter of those above the nodes' own");
  EXPECT_THAT(why([](RunSpec& s) { s.workload = "barrier", s.load = 0, s.failed_links = 1; }),
              HasSubstr("multicasts know none"));
  EXPECT_THAT(why([](RunSpec& s) { s.bit_error_rate = 0.1; }), HasSubstr("bit error rate 0.1"));
  EXPECT_THAT(why([](RunSpec& s) { s.workload = "barrier"; }), HasSubstr("load 0.5 of a barrier"));
  EXPECT_THAT(why([](RunSpec& s) { s.workload = "barrier", s.load = 0, s.bytes = 8; }),
              HasSubstr("carries no data"));
  EXPECT_THAT(why([](RunSpec& s) { s.workload = "allreduce", s.load = 0, s.bytes = 64; }), HasSubstr("8"));
  EXPECT_THAT(why([](RunSpec& s) { s.workload = "broadcast", s.load = 0, s.bytes = 1 << 30; }),
              HasSubstr("at most 1000000"));
  EXPECT_THAT(
      why([](RunSpec& s) { s.workload = "software-barrier", s.machine = "gemini", s.nodes = "4x4x4"; }),
      HasSubstr("'software-barrier' on gemini: expected one of alltoall"));
  EXPECT_THAT(why([](RunSpec& s) { s.machine = "ideal"; }), HasSubstr("crossbar"));
}

}  // namespace
}  // namespace orrery::sim
