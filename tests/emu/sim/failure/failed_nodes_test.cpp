// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/failure/failed_nodes.hpp"

#include "emu/sim/bgl/bgl_run.hpp"
#include "emu/sim/scene/simulate.hpp"

#include <gtest/gtest.h>

#include <set>

namespace orrery::sim {
namespace {

BglConfig torus(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  BglConfig config;
  config.sides = {x, y, z};
  return config;
}

// Every node that a packet with these hint bits can come to, step by step as the routers do it.
std::set<Node> reach(const TorusGrid& grid, Node from, Node to, std::uint8_t hints, bool fixed) {
  std::set<Node> seen;
  std::set<std::pair<Node, std::uint8_t>> open{{from, hints}}, done;
  while (!open.empty()) {
    const auto [node, bits] = *open.begin();
    open.erase(open.begin());
    if (!done.insert({node, bits}).second) continue;
    seen.insert(node);
    EXPECT_TRUE(bits != 0 || node == to);
    for (int dim = 0; dim < 3; ++dim) {
      const int d = bits >> dim & 1 ? dim : bits >> (dim + 3) & 1 ? dim + 3 : -1;
      if (d < 0) continue;
      const TorusGrid::Packed next = grid.step_packed(grid.coordinates(node), d);
      const bool there = TorusGrid::at(next, dim) == TorusGrid::at(grid.coordinates(to), dim);
      open.insert({grid.node(next), static_cast<std::uint8_t>(there ? bits & ~(1u << d) : bits)});
      if (fixed) break;
    }
  }
  EXPECT_TRUE(seen.count(to));
  return seen;
}

// Every pair of live nodes has a way, of one leg or two, that no failed node lies on. Returns the pairs by
// legs: any order, one order, by way of another node.
std::array<std::uint64_t, 3> check_all_pairs(const BglConfig& config, const std::vector<Node>& failed) {
  const TorusGrid grid(config.sides);
  FailedNodes ways;
  EXPECT_EQ(FailedNodes::make(config, failed, &ways).why, "");
  std::array<std::uint64_t, 3> kinds{};
  for (Node from = 0; from < grid.nodes(); ++from)
    for (Node to = 0; to < grid.nodes(); ++to) {
      if (from == to || ways.failed(from) || ways.failed(to)) continue;
      const std::uint32_t coin = (from ^ to) & 7;
      const FailedNodes::Way way = ways.way(from, to, coin);
      ++kinds[way.via != to ? 2 : way.fixed ? 1 : 0];
      for (const Node node : reach(grid, from, way.via, way.hints, way.fixed))
        EXPECT_FALSE(ways.failed(node));
      if (way.via == to) continue;
      const FailedNodes::Way rest = ways.way(way.via, to, coin);
      EXPECT_EQ(rest.via, to);
      for (const Node node : reach(grid, way.via, to, rest.hints, rest.fixed))
        EXPECT_FALSE(ways.failed(node));
    }
  return kinds;
}

TEST(FailedNodes, AnyThreeOfTheSmallestTorusThatAreNotColinearLeaveAllOthersConnected) {
  const BglConfig config = torus(3, 3, 3);
  // By symmetry the first is node 0.
  int sets = 0;
  for (Node b = 1; b < 27; ++b)
    for (Node c = b + 1; c < 27; ++c) {
      FailedNodes ways;
      if (FailedNodes::make(config, {0, b, c}, &ways).refused()) continue;
      ++sets;
      check_all_pairs(config, {0, b, c});
      if (HasFailure()) FAIL() << "0, " << b << ", " << c;
    }
  EXPECT_GT(sets, 100);
}

TEST(FailedNodes, MostPairsNeedNoThirdNode) {
  const auto kinds = check_all_pairs(torus(5, 4, 6), {0, 27, 93});
  EXPECT_EQ(kinds[0] + kinds[1] + kinds[2], 117u * 116);
  EXPECT_GT(kinds[0], 8 * (kinds[1] + kinds[2]));
  EXPECT_GT(kinds[1], 0u);
  EXPECT_GT(kinds[2], 0u);
  EXPECT_LT(kinds[2], 117u * 116 / 20);
}

TEST(FailedNodes, RefusesWhatHintBitsCannotLeadRound) {
  const auto why = [](const BglConfig& config, const std::string& words) {
    FailedNodes ways;
    return FailedNodes::parse(words, config, &ways).why;
  };
  EXPECT_EQ(why(torus(4, 4, 4), "1.2.3,1.0.3"),
            "failed nodes 1.2.3 and 1.0.3 are colinear: expected no two on one line");
  EXPECT_EQ(why(torus(4, 4, 4), "0.0.0,1.1.1,2.2.2,3.3.3"),
            "4 failed nodes: expected at most 3, that hint bits lead round");
  EXPECT_EQ(why(torus(4, 2, 4), "1"),
            "failed nodes on 4x2x4: expected three closed sides of at least 3 nodes");
  for (const char* bad : {"4", "0", "x", "", "1.2", "1.2.4", "0.0.0,", "1.1.1 2.2.2"})
    EXPECT_EQ(why(torus(4, 4, 4), bad), std::string("failed nodes '") + bad +
                                            "': expected 1 to 3, or as many coordinates of 4x4x4 such as "
                                            "1.0.2,0.1.1");
  EXPECT_EQ(why(torus(4, 4, 4), "3"), "");
  EXPECT_EQ(why(torus(4, 4, 4), "0.0.0,1.1.1,2.2.2"), "");
}

// Sends one packet to every other node; a packet's payload says whose it is.
class Everyone final : public Workload {
 public:
  Everyone(Node nodes, std::vector<std::vector<int>>* got) : nodes_(nodes), sent_(nodes, 0), got_(*got) {
    got_.assign(nodes, std::vector<int>(nodes, 0));
  }
  Next next(Node node, std::uint32_t, Tick now, Random&, Send& out) override {
    if (++sent_[node] >= nodes_) return Next::idle;
    out.dst = (node + sent_[node]) % nodes_;
    out.payload = static_cast<std::uint16_t>(node + 1);
    out.created = now;
    return Next::send;
  }
  bool delivered(Node node, const Packet& packet, Tick, bool) override {
    ++got_[node][packet.payload - 1u];
    return false;
  }

 private:
  Node nodes_;
  std::vector<Node> sent_;
  std::vector<std::vector<int>>& got_;
};

TEST(FailedNodes, EveryPacketBetweenTheOthersArrivesAndNoneCrossesAFailedOne) {
  for (const EscapeOrder order : {EscapeOrder::dimension, EscapeOrder::direction})
    for (const bool deterministic : {false, true}) {
      BglConfig config = torus(5, 4, 6);
      config.order = order;
      config.deterministic = deterministic;
      constexpr Node kNodes = 120;
      FailedNodes failed;
      ASSERT_EQ(FailedNodes::make(config, {0, 27, 93}, &failed).why, "");
      std::vector<std::vector<int>> got;
      AroundFailedNodes workload(std::make_unique<Everyone>(kNodes, &got), failed, kNodes, false);
      BglExtras extras;
      extras.keep_link_busy = true;
      // Their links stay in service: a packet that came there would go on and be seen.
      const SimResult result = run_bgl(config, workload, {}, extras);
      ASSERT_EQ(result.outcome.stop, Stop::finished);
      EXPECT_TRUE(result.outcome.conserved);
      EXPECT_GE(result.outcome.total.delivered, 117u * 116);
      for (Node to = 0; to < kNodes; ++to)
        for (Node from = 0; from < kNodes; ++from)
          EXPECT_EQ(got[to][from], from != to && !failed.failed(from) && !failed.failed(to)) << from << to;
      for (const BglFault& link : failed.links())
        EXPECT_EQ(result.link_busy[std::size_t{link.node} * 6 + static_cast<std::size_t>(link.direction)],
                  0u);
      // Without the hint bits packets do cross them.
      std::vector<std::vector<int>> plain_got;
      Everyone plain(kNodes, &plain_got);
      const SimResult crossed = run_bgl(config, plain, {}, extras);
      EXPECT_GT(crossed.link_busy[27 * 6], 0u);
    }
}

TEST(FailedNodes, RunsByNameBitIdenticalForAnyThreads) {
  for (const char* name : {"alltoall", "uniform"}) {
    const auto run = [&](unsigned threads, double us) {
      RunSpec spec;
      spec.nodes = "3x3x4";
      spec.workload = name;
      spec.failed_nodes = "3";
      spec.seed = 5;
      spec.threads = threads;
      if (spec.workload == "uniform") {
        spec.load = 0.3;
        spec.warmup_us = 10;
        spec.measure_us = us;
        spec.until_us = us;
      }
      SimResult result;
      EXPECT_EQ(simulate(spec, &result).why, "");
      return result;
    };
    const SimResult one = run(1, 20), two = run(2, 20);
    EXPECT_NE(one.outcome.stop, Stop::deadlock);
    EXPECT_TRUE(one.outcome.conserved);
    EXPECT_FALSE(run(1, 200).saturated(0.05));
    EXPECT_EQ(one.links, 36u * 6 - 3 * 12);
    // A packet that is sent on counts once in bytes.
    if (one.outcome.stop == Stop::finished) {
      EXPECT_EQ(one.outcome.total.delivered_bytes, 33u * 32 * 240);
    }
    EXPECT_EQ(one.outcome.total.link_ticks, two.outcome.total.link_ticks);
    EXPECT_EQ(one.outcome.latency.mean(), two.outcome.latency.mean());
  }
}

TEST(FailedNodes, AreRefusedWhereNothingLeadsRoundThem) {
  const auto why = [](auto change) {
    RunSpec spec;
    spec.nodes = "4x4x4";
    spec.failed_nodes = "1";
    change(spec);
    SimResult result;
    return simulate(spec, &result).why;
  };
  EXPECT_EQ(why([](RunSpec& s) { s.machine = "asci-q", s.nodes = "64"; }),
            "failed nodes on asci-q: expected none, only bluegene-l's hint bits and the tables of gemini, "
            "seastar and aries lead round them");
  EXPECT_EQ(why([](RunSpec& s) { s.workload = "barrier"; }),
            "failed nodes and barrier: expected alltoall or uniform");
}

}  // namespace
}  // namespace orrery::sim
