// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/scene/simulate.hpp"

#include "emu/sim/scene/machine_timing.hpp"
#include "emu/sim/tile/tile_run.hpp"
#include "emu/sim/workload/traffic.hpp"
#include "tests/emu/sim/one_packet.hpp"

#include <gtest/gtest.h>

namespace orrery::sim {
namespace {

// The numbers of a shipped machine for the tile router of its kind.
TorusTiming timing_named(const std::string& name) {
  const model::BuiltMachine built = model::build_machine(name);
  TorusTiming timing;
  EXPECT_EQ(timing_of(*built.machine, &timing).why, "");
  return timing;
}

TEST(AriesFabric, PacketsHaveTheirPhits) {
  const DragonflyFabric fabric(model::Dragonfly::make({.groups = 2}).value(), {});
  EXPECT_EQ(fabric.flits_for(64), 14u);
  EXPECT_EQ(fabric.flits_for(8), 5u);
  EXPECT_EQ(fabric.flits_for(128), 28u);
}

TEST(GeminiFabric, PacketsHaveTheirPhits) {
  const auto torus = model::Torus::make(model::gemini_shape_of(4, 4, 4)).value();
  const TorusFabric fabric(torus, timing_named("gemini"));
  EXPECT_EQ(fabric.flits_for(64), 32u);
  EXPECT_EQ(fabric.flits_for(8), 11u);
  EXPECT_EQ(fabric.ports(), 40u);
}

TEST(AriesRouter, QuietPacketsAreMinimalAndEachHopCostsItsLatency) {
  const auto dragonfly = model::Dragonfly::make({.groups = 3}).value();
  const AriesTiming timing;
  Tick near = 0;
  for (auto [to, low, high] : {std::tuple{Node{1}, 0, 0},
                               {Node{4}, 1, 1},
                               {Node{64}, 1, 1},
                               {Node{68}, 2, 2},
                               {Node{384 + 77}, 1, 5},
                               {Node{2 * 384 + 300}, 1, 5}}) {
    OnePacket one(0, to, 8);
    const SimResult result = run_aries(dragonfly, timing, one, {}, 1);
    EXPECT_EQ(result.outcome.stop, Stop::finished);
    EXPECT_TRUE(result.outcome.conserved);
    EXPECT_EQ(result.outcome.total.nonminimal, 0u);
    EXPECT_GE(one.hops, low) << to;
    EXPECT_LE(one.hops, high) << to;
    if (to == 1) near = one.at;
    const Tick blue = to >= 384 ? timing.optical_hop - timing.electrical_hop : 0;
    // All but what the interface needs of the tail comes after the header, as fast as the last link is: a
    // green or black one, with this seed.
    const DragonflyFabric fabric(dragonfly, timing);
    const Tick tail = one.hops == 0 ? 0
                                    : fabric.serialise(0, fabric.flits_for(8)) -
                                          static_cast<Tick>(timing.nic.eject_per_byte * 8);
    EXPECT_EQ(one.at, near + static_cast<Tick>(one.hops) * timing.electrical_hop + blue + tail) << to;
    EXPECT_EQ(result.outcome.total.responses, 1u);
    EXPECT_EQ(result.outcome.total.responses_back, 1u);
  }
}

TEST(AriesRouter, NoRouteIsLongerThanTenAndNoMinimalOneLongerThanFive) {
  const auto dragonfly = model::Dragonfly::make({.groups = 5}).value();
  for (auto [routing, longest] : {std::pair{AriesRouting::ordered, 5},
                                  {AriesRouting::minimal, 5},
                                  {AriesRouting::minimal_adaptive, 5},
                                  {AriesRouting::valiant, 10}}) {
    AriesTiming timing;
    timing.routing = routing;
    int seen = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      OnePacket one(static_cast<Node>(seed * 31 % 1920), static_cast<Node>(seed * 977 % 1920), 64);
      const SimResult result = run_aries(dragonfly, timing, one, {}, seed);
      ASSERT_EQ(result.outcome.stop, Stop::finished);
      seen = std::max(seen, one.hops);
    }
    EXPECT_LE(seen, longest);
    EXPECT_GE(seen, routing == AriesRouting::valiant ? 6 : 4);
  }
}

TEST(AriesRouter, MostNonMinimalPathsBetweenGroupsAreSixOrSevenLinksLong) {
  const auto dragonfly = model::Dragonfly::make({.groups = 8}).value();
  AriesTiming timing;
  timing.routing = AriesRouting::valiant;
  int links = 0, long_ones = 0;
  constexpr int kPackets = 200;
  for (int seed = 1; seed <= kPackets; ++seed) {
    const auto from = static_cast<Node>(seed * 31 % 384);
    OnePacket one(from, 384 + from * 7 % 2688, 64);
    ASSERT_EQ(run_aries(dragonfly, timing, one, {}, static_cast<std::uint64_t>(seed)).outcome.stop,
              Stop::finished);
    links += one.hops;
    long_ones += one.hops > 7;
  }
  EXPECT_NEAR(1.0 * links / kPackets, 6, 0.7);
  EXPECT_LT(long_ones, kPackets / 2);
}

SimResult run_named(const std::string& machine, const std::string& nodes, const std::string& routing,
                    unsigned threads, double load) {
  RunSpec spec;
  spec.machine = machine;
  spec.nodes = nodes;
  spec.workload = "uniform";
  spec.routing = routing;
  spec.bytes = 64;
  spec.load = load;
  spec.warmup_us = 1;
  spec.measure_us = 1;
  spec.until_us = 3;
  spec.sample_us = 0.5;
  spec.threads = threads;
  SimResult result;
  const Refusal no = simulate(spec, &result);
  EXPECT_EQ(no.why, "");
  return result;
}

TEST(TileRouters, AreBitIdenticalForAnyThreads) {
  for (auto [machine, nodes] : {std::pair{"gemini", "4x8x4"}, {"seastar", "4x4x4"}, {"aries", "2"}}) {
    const SimResult one = run_named(machine, nodes, "", 1, 0.9), two = run_named(machine, nodes, "", 2, 0.9);
    EXPECT_GT(one.outcome.total.delivered, 1000u) << machine;
    EXPECT_EQ(one.outcome.total.delivered, two.outcome.total.delivered) << machine;
    EXPECT_EQ(one.outcome.total.link_hops, two.outcome.total.link_hops) << machine;
    EXPECT_EQ(one.outcome.total.vc_hops, two.outcome.total.vc_hops) << machine;
    EXPECT_EQ(one.outcome.latency.mean(), two.outcome.latency.mean()) << machine;
    EXPECT_TRUE(one.outcome.conserved && two.outcome.conserved) << machine;
  }
}

TEST(TileRouters, BuffersFillWithLoadByTheirClassTheSameWithAnyThreads) {
  for (auto [machine, nodes] : {std::pair{"gemini", "4x8x4"}, {"seastar", "4x4x4"}, {"aries", "2"}}) {
    const auto run = [machine = machine, nodes = nodes](double load, unsigned threads) {
      RunSpec spec;
      spec.machine = machine;
      spec.nodes = nodes;
      spec.workload = "uniform";
      spec.load = load;
      spec.warmup_us = 100;
      spec.until_us = 3;
      spec.sample_us = 0.5;
      spec.threads = threads;
      spec.watch_buffers = true;
      SimResult result;
      EXPECT_EQ(simulate(spec, &result).why, "");
      return result;
    };
    const SimResult low = run(0.2, 1), high = run(0.9, 1), crew = run(0.9, 2);
    ASSERT_EQ(high.outcome.samples.size(), crew.outcome.samples.size()) << machine;
    ASSERT_GE(high.outcome.samples.size(), 5u) << machine;
    const auto& last = high.outcome.samples[4].vcs;
    ASSERT_EQ(last.size(), high.vc_names.size()) << machine;
    for (std::size_t v = 0; v < last.size(); ++v) {
      EXPECT_EQ(last[v].taken, crew.outcome.samples[4].vcs[v].taken) << machine << " " << v;
      EXPECT_EQ(last[v].fullest, crew.outcome.samples[4].vcs[v].fullest) << machine << " " << v;
      EXPECT_LE(last[v].mean(), last[v].fullest);
      EXPECT_LE(last[v].fullest, 1.0);
    }
    EXPECT_GT(last[0].mean(), 2 * low.outcome.samples[4].vcs[0].mean()) << machine;
    // Responses are a few phits each: they take less room than requests, and none where there are none.
    const std::size_t responses = last.size() / 2;
    EXPECT_LT(last[responses].mean(), last[0].mean()) << machine;
    EXPECT_EQ(last[responses].taken != 0, std::string(machine) != "seastar") << machine;
  }
}

TEST(TileRouters, NeverStandStillUnderOverload) {
  for (auto [machine, nodes, routing] : {std::tuple{"gemini", "4x8x4", "hashed"},
                                         {"gemini", "6x4x6", "adaptive"},
                                         {"seastar", "6x5x4", ""},
                                         {"aries", "2", "valiant"},
                                         {"aries", "2", "adaptive0"}}) {
    RunSpec spec;
    spec.machine = machine;
    spec.nodes = nodes;
    spec.routing = routing;
    spec.workload = "permutation";
    spec.bytes = 64;
    spec.until_us = 5;
    spec.sample_us = 1;
    spec.measure_us = 100;
    SimResult result;
    ASSERT_EQ(simulate(spec, &result).why, "");
    EXPECT_EQ(result.outcome.stop, Stop::time_limit) << machine;
    EXPECT_TRUE(result.outcome.conserved) << machine;
    ASSERT_GE(result.outcome.samples.size(), 3u);
    const auto& last = result.outcome.samples.back();
    const auto& before = result.outcome.samples[result.outcome.samples.size() - 2];
    EXPECT_GT(last.totals.delivered, before.totals.delivered) << machine;
  }
}

TEST(GeminiRouter, AStreamGetsMoreThanFiveGigabytesOnXAndZAndHalfOfThatOnY) {
  // One pair: 0 -> the next Gemini in each dimension. Two torus links on x and z, one on y.
  const auto torus = model::Torus::make(model::gemini_shape_of(4, 8, 4)).value();
  const auto stream = [&](Node to) {
    class Stream final : public Workload {
     public:
      explicit Stream(Node to) : to_(to) {}
      Next next(Node node, std::uint32_t, Tick now, Random&, Send& out) override {
        if (node != 0) return Next::idle;
        out.dst = to_;
        out.payload = 64;
        out.created = now;
        return Next::send;
      }
      Node to_;
    } workload(to);
    RunLimits limits;
    limits.warmup = 50000;
    limits.until = 250000;
    const SimResult result = run_torus(torus, timing_named("gemini"), workload, limits, 1);
    return result.payload_gb_per_node() * result.nodes;
  };
  // 64 bytes in 82 ns on each of 8 or 4 tile links.
  EXPECT_NEAR(stream(2), 6.25, 0.1);
  EXPECT_NEAR(stream(4 * 2), 3.125, 0.05);
  EXPECT_NEAR(stream(4 * 4 * 2), 6.25, 0.1);
}

TEST(Simulate, RefusesInOneLineWhatItCannotRun) {
  const auto why = [](auto change) {
    RunSpec spec;
    change(spec);
    SimResult result;
    return simulate(spec, &result).why;
  };
  EXPECT_EQ(why([](RunSpec& s) { s.machine = "cm5"; }), model::build_machine("cm5").error);
  EXPECT_NE(why([](RunSpec& s) { s.nodes = "8x8x8x8"; }).find("8x8x8x8"), std::string::npos);
  EXPECT_NE(why([](RunSpec& s) { s.workload = "gossip"; }).find("expected one of alltoall"),
            std::string::npos);
  EXPECT_NE(why([](RunSpec& s) { s.workload = "uniform", s.load = 1.5; }).find("1.5"), std::string::npos);
  EXPECT_NE(why([](RunSpec& s) { s.workload = "uniform", s.bytes = 4096; }).find("4096"), std::string::npos);
  EXPECT_NE(why([](RunSpec& s) { s.workload = "transpose", s.nodes = "8x8x4"; }).find("equal sides"),
            std::string::npos);
  EXPECT_NE(why([](RunSpec& s) { s.machine = "gemini", s.nodes = "4x3x4"; }).find("y even"),
            std::string::npos);
  EXPECT_NE(why([](RunSpec& s) { s.machine = "aries", s.nodes = "400"; }).find("241"), std::string::npos);
  EXPECT_NE(why([](RunSpec& s) { s.machine = "aries", s.routing = "zen"; }).find("valiant"),
            std::string::npos);
  EXPECT_NE(why([](RunSpec& s) { s.machine = "aries", s.job_nodes = 400, s.job_groups = 1; }).find("400"),
            std::string::npos);
  EXPECT_NE(why([](RunSpec& s) { s.preset = "fig99"; }).find("fig2-1vc-1path"), std::string::npos);
  const auto job = [](RunSpec& s) { s.machine = "aries", s.nodes = "2", s.job_nodes = 96, s.job_groups = 1; };
  EXPECT_EQ(why([&](RunSpec& s) { job(s), s.order = "spiral"; }), "order 'spiral': expected random or shift");
  EXPECT_EQ(why([&](RunSpec& s) { job(s), s.subset = "groups"; }), "subset 'groups' of a job: expected none");
  EXPECT_EQ(why([](RunSpec& s) { s.in_step = true; }),
            "in step, alltoall in order 'random': expected alltoall in order shift");
  EXPECT_EQ(
      why([](RunSpec& s) { s.ahead = 65536; }),
      "a node ahead by at most 65536 bytes, alltoall in order 'random': expected alltoall in order shift, "
      "not in step");
  EXPECT_EQ(why([](RunSpec& s) { s.order = "shift", s.bytes = 240, s.ahead = 239; }),
            "a node ahead by at most 239 bytes: expected a packet's 240 or more");
  EXPECT_EQ(why([](RunSpec& s) { s.fifos_in_turn = true; }),
            "FIFOs in turn: expected infinite FIFOs with it");
}

// A changed constant of the file reaches the router.
TEST(MachineTiming, FollowsTheMachineFile) {
  model::Description gemini = model::build_machine("gemini").machine->description;
  TorusTiming timing = timing_named("gemini");
  EXPECT_NEAR(timing.flit_ticks, 25.6, 1e-6);  // 24 bits at 9.375 Gb/s
  EXPECT_EQ(timing.hop, 1050u);
  EXPECT_EQ(timing.header_flits, 8u);
  EXPECT_EQ(timing.nic.response_flits, 2);
  EXPECT_NEAR(timing.nic.request_per_byte, 10 / 8.084, 0.01);  // HyperTransport, 64 of 76 bytes
  gemini.constants["link.hop"].value = 200'000;
  gemini.constants["link.lanes"].value = 6;
  gemini.constants["host.rate"].value = 4'800'000'000;
  ASSERT_EQ(timing_of(*model::compile(gemini).machine, &timing).why, "");
  EXPECT_EQ(timing.hop, 2000u);
  EXPECT_NEAR(timing.flit_ticks, 12.8, 1e-6);
  EXPECT_NEAR(timing.nic.request_per_byte, 20 / 8.084, 0.02);

  AriesTiming aries;
  ASSERT_EQ(timing_of(*model::build_machine("aries").machine, &aries).why, "");
  EXPECT_NEAR(aries.electrical_phit, 10 * 6 / (5.25 * 0.9), 1e-6);
  EXPECT_NEAR(aries.optical_phit, 10 * 6 / (4.6875 * 0.9), 1e-6);
  EXPECT_NEAR(aries.nic.request_per_byte, 1.0, 0.01);
  EXPECT_EQ(aries.nic.response, 21u);
  EXPECT_EQ(aries.nic.outstanding, 1024u);

  BglConfig bgl;
  ASSERT_EQ(timing_of(*model::build_machine("bluegene-l").machine, &bgl).why, "");
  EXPECT_NEAR(bgl.tick_ns, 1000.0 / 175, 1e-6);
  EXPECT_EQ(bgl.hop_ticks, 18u);  // 100 ns
  EXPECT_EQ(bgl.link_overhead, 14u);
  EXPECT_EQ(bgl.max_chunks, 8u);
}

TEST(MachineTiming, RefusesWhatTheRouterCannotHave) {
  model::Description bgl = model::build_machine("bluegene-l").machine->description;
  bgl.constants["link.hop"].value = 1'000'000'000;
  BglConfig config;
  const std::string why = timing_of(*model::compile(bgl).machine, &config).why;
  EXPECT_NE(why.find("link.hop"), std::string::npos) << why;
  EXPECT_NE(why.find("expected 1 to 500"), std::string::npos) << why;
  RunSpec spec;
  spec.machine = "ideal";
  SimResult result;
  EXPECT_NE(simulate(spec, &result).why.find("expected a torus, a dragonfly or a fat tree"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::sim
