// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/workload/software_collective.hpp"

#include "emu/sim/bgl/bgl_run.hpp"
#include "emu/sim/scene/machine_timing.hpp"
#include "emu/sim/scene/simulate.hpp"
#include "emu/sim/tile/tile_run.hpp"
#include "tests/emu/sim/one_packet.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace orrery::sim {
namespace {

using Kind = SoftwareCollective::Kind;

// The networks: each runs a workload on a row of nodes.
SimResult on_bluegene(Node nodes, Workload& workload, unsigned threads = 1) {
  BglConfig config;
  config.sides = {nodes, 1, 1};
  return run_bgl(config, workload, {.threads = threads});
}
SimResult on_seastar(Node nodes, Workload& workload, unsigned threads = 1) {
  TorusTiming timing;
  EXPECT_EQ(timing_of(*model::build_machine("seastar").machine, &timing).why, "");
  return run_torus(model::Torus::make(model::plain_torus_shape(nodes, 1, 1)).value(), timing, workload,
                   {.threads = threads}, 1);
}
SimResult on_gemini(Node nodes, Workload& workload, unsigned threads = 1) {
  TorusTiming timing;
  EXPECT_EQ(timing_of(*model::build_machine("gemini").machine, &timing).why, "");
  return run_torus(model::Torus::make(model::gemini_shape_of(nodes / 2, 2, 1)).value(), timing, workload,
                   {.threads = threads}, 1);
}
SimResult on_aries(Node, Workload& workload, unsigned threads = 1) {
  AriesTiming timing;
  EXPECT_EQ(timing_of(*model::build_machine("aries").machine, &timing).why, "");
  return run_aries(model::Dragonfly::make({.groups = 1}).value(), timing, workload, {.threads = threads}, 1);
}
using Network = SimResult (*)(Node, Workload&, unsigned);

// How long a lone packet is on its way.
Tick quiet(Network network, Node nodes, Node from, Node to) {
  OnePacket one(from, to, 8);
  network(nodes, one, 1);
  EXPECT_GT(one.at, 0u);
  return one.at;
}

struct Ran {
  SimResult result;
  std::uint64_t expected;
  Node complete;
  std::uint32_t steps;
};
Ran run(Network network, Node nodes, Kind kind, std::uint64_t bytes = 8, std::uint64_t repeat = 1,
        unsigned threads = 1) {
  SoftwareCollective workload(nodes, {.kind = kind, .bytes = bytes, .payload_max = 64, .repeat = repeat});
  SimResult result = network(nodes, workload, threads);
  return {std::move(result), workload.expected_packets(), workload.complete(), workload.steps()};
}

TEST(SoftwareCollective, EveryNodeDoesEveryStepAndEveryPacketArrives) {
  for (const auto& [network, sizes] :
       {std::pair<Network, std::vector<Node>>{on_bluegene, {2, 3, 5, 8, 13, 16}},
        {on_seastar, {2, 7, 8}},
        {on_gemini, {8, 12}},
        {on_aries, {384}}})
    for (const Node nodes : sizes)
      for (const Kind kind : {Kind::broadcast, Kind::barrier, Kind::allreduce})
        for (const std::uint64_t repeat : {1, 5}) {
          if (kind == Kind::broadcast && repeat != 1) continue;
          const Ran ran = run(network, nodes, kind, 200, repeat);
          EXPECT_EQ(ran.result.outcome.stop, Stop::finished) << nodes;
          EXPECT_TRUE(ran.result.outcome.conserved) << nodes;
          EXPECT_EQ(ran.result.outcome.total.delivered, ran.expected) << nodes;
          EXPECT_EQ(ran.complete, nodes) << static_cast<int>(kind);
        }
}

TEST(SoftwareCollective, HasAsManyMessagesAsItsAlgorithm) {
  const auto messages = [](Kind kind, Node nodes) {
    return SoftwareCollective(nodes, {.kind = kind}).expected_packets();
  };
  EXPECT_EQ(messages(Kind::broadcast, 100), 99u);
  EXPECT_EQ(messages(Kind::barrier, 64), 64u * 6);
  EXPECT_EQ(messages(Kind::barrier, 65), 65u * 7);
  EXPECT_EQ(messages(Kind::allreduce, 64), 64u * 6);
  EXPECT_EQ(messages(Kind::allreduce, 100), 64u * 6 + 2 * 36);
}

// Two or three nodes in a ring share no link in a step: each step is one quiet latency.
TEST(SoftwareCollective, ABarrierTakesItsRoundsOfOneWayLatency) {
  for (const Network network : {Network{on_bluegene}, Network{on_seastar}}) {
    EXPECT_EQ(run(network, 2, Kind::barrier).result.outcome.end, quiet(network, 2, 0, 1));
    EXPECT_EQ(run(network, 3, Kind::barrier).result.outcome.end, 2 * quiet(network, 3, 0, 1));
    EXPECT_EQ(run(network, 3, Kind::barrier, 8, 10).result.outcome.end, 20 * quiet(network, 3, 0, 1));
  }
}

TEST(SoftwareCollective, OfAPowerOfTwoNodesTakesNoLessThanItsQuietSteps) {
  for (const Network network : {Network{on_bluegene}, Network{on_seastar}, Network{on_gemini}}) {
    constexpr Node kNodes = 16;
    Tick bound = 0;
    for (Node far = 1; far < kNodes; far *= 2) bound += quiet(network, kNodes, 0, far);
    for (const Kind kind : {Kind::barrier, Kind::allreduce}) {
      const Tick end = run(network, kNodes, kind).result.outcome.end;
      EXPECT_GE(end, bound);
      // Packets of a step that share links wait for each other: at most eight go over one, half way round.
      EXPECT_LE(end, 6 * bound);
    }
  }
}

TEST(SoftwareCollective, ABroadcastIsAsDeepAsItsTree) {
  for (const Network network : {Network{on_bluegene}, Network{on_seastar}, Network{on_gemini}}) {
    // The last leaf is node 15: by way of 1, 3 and 7.
    constexpr Node kNodes = 16;
    const Tick bound = quiet(network, kNodes, 0, 1) + quiet(network, kNodes, 1, 3) +
                       quiet(network, kNodes, 3, 7) + quiet(network, kNodes, 7, 15);
    const Ran ran = run(network, kNodes, Kind::broadcast);
    EXPECT_EQ(ran.steps, 4u);
    EXPECT_GE(ran.result.outcome.end, bound);
    EXPECT_LE(ran.result.outcome.end, 2 * bound);
  }
}

TEST(SoftwareCollective, IsBitIdenticalForAnyThreads) {
  const auto on_cube = [](Node, Workload& workload, unsigned threads) {
    BglConfig config;
    config.sides = {4, 4, 8};
    return run_bgl(config, workload, {.threads = threads});
  };
  for (const Kind kind : {Kind::broadcast, Kind::barrier, Kind::allreduce}) {
    const SimResult one = run(on_cube, 128, kind, 100).result,
                    two = run(on_cube, 128, kind, 100, 1, 2).result;
    EXPECT_EQ(one.outcome.end, two.outcome.end);
    EXPECT_EQ(one.outcome.total.link_ticks, two.outcome.total.link_ticks);
    EXPECT_EQ(one.outcome.latency.mean(), two.outcome.latency.mean());
  }
}

SimResult simulated(const RunSpec& spec) {
  SimResult result;
  EXPECT_EQ(simulate(spec, &result).why, "");
  return result;
}

TEST(OrderedWorkloads, RunByNameOnEveryMachine) {
  for (const auto& [machine, nodes, count] : {std::tuple{"bluegene-l", "4x4x4", 64u},
                                              {"gemini", "4x4x4", 64u},
                                              {"seastar", "4x4x4", 64u},
                                              {"aries", "2", 768u}})
    for (const auto& [name, packets] :
         {std::pair{"broadcast", count - 1},
          {"barrier", count * static_cast<unsigned>(std::bit_width(count - 1))},
          {"allreduce", std::bit_floor(count) * (std::bit_width(std::bit_floor(count)) - 1) +
                            2 * (count - std::bit_floor(count))}}) {
      RunSpec spec;
      spec.machine = machine;
      spec.nodes = nodes;
      spec.workload = name;
      const SimResult result = simulated(spec);
      EXPECT_EQ(result.outcome.stop, Stop::finished) << machine << name;
      EXPECT_TRUE(result.outcome.conserved) << machine << name;
      EXPECT_EQ(result.outcome.total.delivered, packets) << machine << name;
    }
}

TEST(OrderedWorkloads, FillsAndRowsLeaveACopyWithEveryNode) {
  for (const auto& [name, bytes, delivered] : {std::tuple{"line-fill", 48000, 2 * 100 * 4},
                                               {"plane-fill", 48000, 4 * 50 * 29},
                                               {"row-broadcast", 4800, 20 * 90 * 4}}) {
    RunSpec spec;
    spec.nodes = "5x6x3";
    spec.workload = name;
    spec.bytes = static_cast<std::uint64_t>(bytes);
    const SimResult result = simulated(spec);
    EXPECT_EQ(result.outcome.stop, Stop::finished) << name;
    EXPECT_TRUE(result.outcome.conserved) << name;
    EXPECT_EQ(result.outcome.total.delivered, static_cast<std::uint64_t>(delivered)) << name;
  }
}

TEST(OrderedWorkloads, AnAllToAllInsideGroupsLeavesNoGroup) {
  RunSpec spec;
  spec.machine = "aries";
  spec.nodes = "3";
  spec.subset = "groups";
  spec.routing = "minimal";
  spec.bytes = 64;
  spec.keep_link_busy = true;
  const SimResult result = simulated(spec);
  EXPECT_EQ(result.outcome.total.delivered, 3u * 384 * 383);
  const auto dragonfly = model::Dragonfly::make({.groups = 3}).value();
  std::uint64_t between = 0, inside = 0;
  for (model::LinkId link = 0; link < dragonfly.link_slots(); ++link) {
    if (!dragonfly.has_link(link)) continue;
    const model::LinkEnds ends = dragonfly.ends(link);
    const bool same =
        ends.from / model::Dragonfly::kRoutersPerGroup == ends.to / model::Dragonfly::kRoutersPerGroup;
    (same ? inside : between) += result.link_busy[link];
  }
  EXPECT_EQ(between, 0u);
  EXPECT_GT(inside, 0u);
}

TEST(OrderedWorkloads, RefuseInOneLineWhatTheyCannotHave) {
  const auto why = [](auto change) {
    RunSpec spec;
    spec.nodes = "4x4x4";
    change(spec);
    SimResult result;
    return simulate(spec, &result).why;
  };
  EXPECT_EQ(why([](RunSpec& s) { s.workload = "barrier", s.load = 0.5; }),
            "barrier: expected no load, no gets, no subset, and its own end");
  EXPECT_EQ(why([](RunSpec& s) { s.workload = "broadcast", s.repeat = 3; }),
            "3 broadcasts: expected 1, the root of a second one would wait for no node");
  EXPECT_EQ(why([](RunSpec& s) { s.workload = "line-fill", s.machine = "gemini"; }),
            "line-fill on gemini: expected bluegene-l, whose packets leave copies on their way");
  EXPECT_EQ(why([](RunSpec& s) { s.workload = "plane-fill", s.nodes = "4x2x4"; }),
            "plane-fill on 4x2x4: expected at least 3 nodes round x and y");
  EXPECT_EQ(why([](RunSpec& s) { s.workload = "row-broadcast", s.routing = "deterministic"; }),
            "row-broadcast: expected dynamic routing, six FIFOs, and more --bytes instead of --repeat");
  EXPECT_EQ(why([](RunSpec& s) { s.subset = "groups"; }),
            "subset 'groups' on bluegene-l: expected lines or planes");
  EXPECT_EQ(why([](RunSpec& s) { s.machine = "aries", s.nodes = "2", s.subset = "lines"; }),
            "subset 'lines' on aries: expected groups");
}

}  // namespace
}  // namespace orrery::sim
