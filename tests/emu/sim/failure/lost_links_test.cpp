// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Lost links that need new routing tables: every pair keeps a way without them, no chain of channels that
// wait for each other closes, and a network that is quiesced for the tables delivers everything.
#include "emu/model/reroute.hpp"
#include "emu/sim/failure/failed_links.hpp"
#include "emu/sim/scene/simulate.hpp"
#include "emu/sim/tile/dragonfly_fabric.hpp"
#include "emu/sim/tile/torus_fabric.hpp"
#include "tests/emu/sim/failure/lost_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace orrery::sim {
namespace {

struct TorusCase {
  const char* name;
  model::TorusShape shape;
};

model::TorusShape open_shape(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  model::TorusShape shape = model::plain_torus_shape(x, y, z);
  shape.closed = {true, false, true};
  return shape;
}

class LostDirections : public testing::TestWithParam<TorusCase> {};

TEST_P(LostDirections, LeaveEveryPairAWayAndNoChainOfChannelsThatCloses) {
  const model::Torus torus = model::Torus::make(GetParam().shape).value();
  int led_round = 0, refused = 0;
  constexpr int kDraws = 60;
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<FailedLink> lost;
    std::vector<Node> dead;
    ASSERT_EQ(pick_severed(torus, 1 + random.below(8), seed, &lost).why, "");
    for (std::uint32_t i = random.below(3); i > 0; --i) {
      const Node router = random.below(torus.routers());
      if (std::find(dead.begin(), dead.end(), router) == dead.end()) dead.push_back(router);
    }
    for (const Node router : dead) sever_router(torus, router, &lost);
    TorusDetours detours;
    if (TorusDetours::make(torus, lost, dead, &detours).refused()) {
      ++refused;
      continue;
    }
    EXPECT_TRUE(detours.needed());
    TorusFabric fabric(torus, TorusTiming(), detours);
    fabric.use_new_tables();
    LostView view(fabric, lost, seed);
    ChannelChains chains(std::size_t{fabric.sites()} * fabric.ports() * TorusFabric::kVcs);
    const std::uint32_t nics = fabric.nics();
    const auto is_dead = [&](Node r) { return std::find(dead.begin(), dead.end(), r) != dead.end(); };
    for (Node from = 0; from < torus.routers(); ++from)
      for (Node to = 0; to < torus.routers(); ++to) {
        if (is_dead(from) || is_dead(to)) continue;
        for (const std::uint8_t flags : {std::uint8_t{0}, std::uint8_t{kResponse}})
          ASSERT_LT(follow(fabric, view, random, from * nics, to * nics, flags, &chains), 40)
              << from << " to " << to;
        led_round += detours.find(from, to) != nullptr;
      }
    EXPECT_TRUE(chains.closed().empty());
  }
  EXPECT_LE(refused, kDraws / 3);
  EXPECT_GT(led_round, kDraws * 20);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LostDirections,
                         testing::Values(TorusCase{"gemini", model::gemini_shape_of(4, 8, 4)},
                                         TorusCase{"odd", model::plain_torus_shape(5, 3, 4)},
                                         TorusCase{"flat", model::plain_torus_shape(6, 6, 2)},
                                         TorusCase{"open", open_shape(4, 4, 4)}),
                         [](const auto& c) { return std::string(c.param.name); });

// Back over a lost link of x, along its line: up, back and down in y, or the same in z.
TEST(LostDirections, DealPairsOverEquallyShortWays) {
  const model::Torus torus = model::Torus::make(model::plain_torus_shape(8, 6, 6)).value();
  int by_y = 0, by_z = 0;
  for (Node router = 0; router < torus.routers(); router += 5) {
    const model::LinkId link = torus.link(router, model::Direction::x_plus);
    const std::vector<FailedLink> lost{{router, link % torus.links_per_router()}};
    TorusDetours detours;
    ASSERT_EQ(TorusDetours::make(torus, lost, {}, &detours).why, "");
    const TorusDetours::Way* way = detours.find(torus.neighbour(router, model::Direction::x_plus), router);
    ASSERT_NE(way, nullptr);
    by_y += way->hints == (1u << 1 | 8u | 8u << 1);
    by_z += way->hints == (1u << 2 | 8u | 8u << 2);
  }
  EXPECT_EQ(by_y + by_z, 58);
  EXPECT_GT(by_y, 15);
  EXPECT_GT(by_z, 15);
}

// What keeps the tables above from it is their order: shortest ways in any order close a chain.
TEST(LostDirections, WouldCloseAChainIfTheShortestWaysWereTaken) {
  const model::Torus torus = model::Torus::make(model::plain_torus_shape(4, 4, 4)).value();
  int closed = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<FailedLink> lost;
    ASSERT_EQ(pick_severed(torus, 20, seed, &lost).why, "");
    model::FailedLinks failed(torus.link_slots());
    for (const FailedLink& link : lost) {
      const model::LinkId id = link.router * torus.links_per_router() + link.port;
      const model::Direction d = torus.direction_of(id);
      failed.fail(id);
      failed.fail(torus.link(torus.neighbour(link.router, d), model::opposite(d)));
    }
    ChannelChains chains(2 * std::size_t{torus.link_slots()});
    for (Node from = 0; from < torus.nodes(); ++from)
      for (Node to = 0; to < torus.nodes(); ++to) {
        const auto detour = model::route_around(torus, failed, from, to, {});
        if (!detour.ok()) continue;
        std::size_t holds = ChannelChains::kNone;
        int dimension = -1;
        bool crossed = false;
        for (const model::LinkId link : detour.value().route) {
          const model::LinkEnds ends = torus.ends(link);
          if (const int d = model::dimension_of(torus.direction_of(link)); d != dimension)
            crossed = false, dimension = d;
          const std::size_t next = 2 * std::size_t{link} + crossed;
          chains.wait(holds, next);
          holds = next;
          const auto a = torus.router_coordinates(ends.from), b = torus.router_coordinates(ends.to);
          const auto i = static_cast<std::size_t>(dimension);
          crossed = crossed || (a.at[i] > b.at[i] ? a.at[i] - b.at[i] : b.at[i] - a.at[i]) > 1;
        }
      }
    closed += !chains.closed().empty();
  }
  EXPECT_GT(closed, 5);
}

TEST(LostGreenLinks, AreGoneRoundByAHubAndNoChainOfChannelsCloses) {
  const model::Dragonfly dragonfly = model::Dragonfly::make({.groups = 2}).value();
  for (const AriesRouting routing :
       {AriesRouting::minimal, AriesRouting::valiant, AriesRouting::adaptive, AriesRouting::ordered})
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      std::vector<FailedLink> lost;
      ASSERT_EQ(pick_severed(dragonfly, 35, seed, &lost).why, "");
      DragonflyDetours detours;
      ASSERT_EQ(DragonflyDetours::make(dragonfly, lost, {}, &detours).why, "");
      AriesTiming timing;
      timing.routing = routing;
      DragonflyFabric fabric(dragonfly, timing, detours);
      fabric.use_new_tables();
      LostView view(fabric, lost, seed);
      ChannelChains chains(std::size_t{fabric.sites()} * fabric.ports() * DragonflyFabric::kVcs);
      Random random(seed);
      int longest = 0;
      for (Node from = 0; from < dragonfly.routers(); ++from)
        for (Node to = 0; to < dragonfly.routers(); ++to)
          for (const std::uint8_t flags : {std::uint8_t{0}, std::uint8_t{kResponse}}) {
            const int links = follow(fabric, view, random, from * 4, to * 4, flags, &chains);
            ASSERT_LE(links, 14) << from << " to " << to;
            longest = std::max(longest, links);
          }
      EXPECT_GE(longest, 6);  // minimal ways are of 5 at most where nothing is lost
      EXPECT_TRUE(chains.closed().empty());
    }
}

// ---- runs

std::ptrdiff_t idle_links(const SimResult& r) {
  return std::count(r.link_busy.begin(), r.link_busy.end(), 0u);
}

struct RunCase {
  const char *machine, *nodes;
  std::uint32_t severed;
  std::int64_t links;  // that this takes, both ways
};

class SeveredNeighbours : public testing::TestWithParam<RunCase> {};

TEST_P(SeveredNeighbours, AreLedRoundAndEverythingArrivesTheSameWithAnyThreads) {
  const RunCase& c = GetParam();
  RunSpec spec = all_to_all(c.machine, c.nodes);
  const SimResult whole = run(spec);
  spec.severed = c.severed;
  const SimResult some = run(spec);
  EXPECT_EQ(some.links + static_cast<std::uint64_t>(c.links), whole.links);
  EXPECT_EQ(some.outcome.stop, Stop::finished);
  EXPECT_TRUE(some.outcome.conserved);
  EXPECT_EQ(some.outcome.total.delivered, whole.outcome.total.delivered);
  EXPECT_EQ(some.outcome.total.resent, 0u);
  // What is lost carried nothing, what was led round went further.
  EXPECT_GE(idle_links(some), idle_links(whole) + c.links);
  EXPECT_GT(some.outcome.total.delivered_hops, whole.outcome.total.delivered_hops);
  EXPECT_GT(some.outcome.latency.mean(), whole.outcome.latency.mean());
  spec.threads = 2;
  const SimResult crew = run(spec);
  EXPECT_EQ(crew.outcome.end, some.outcome.end);
  EXPECT_EQ(crew.outcome.total.link_hops, some.outcome.total.link_hops);
  EXPECT_EQ(crew.outcome.latency.mean(), some.outcome.latency.mean());
}

TEST_P(SeveredNeighbours, InTheRunQuiesceTheNetworkForNewTablesAndNothingIsLost) {
  const RunCase& c = GetParam();
  RunSpec spec = all_to_all(c.machine, c.nodes);
  const SimResult whole = run(spec);
  spec.severed = c.severed;
  spec.fail_at_us = static_cast<double>(whole.outcome.end) * whole.tick_ns / 2000;  // half way
  spec.reroute_us = 7;
  spec.sample_us = 0.5;
  const SimResult some = run(spec);
  EXPECT_EQ(some.outcome.stop, Stop::finished);
  EXPECT_TRUE(some.outcome.conserved);
  EXPECT_EQ(some.outcome.total.delivered, whole.outcome.total.delivered);
  EXPECT_EQ(some.outcome.total.delivered_bytes, whole.outcome.total.delivered_bytes);
  EXPECT_EQ(some.outcome.total.delivered_hops, some.outcome.total.link_hops);
  EXPECT_GT(some.outcome.total.resent, 0u);
  const Quiesce& q = some.quiesce;
  EXPECT_EQ(q.began, static_cast<Tick>(spec.fail_at_us * 1000 / some.tick_ns));
  EXPECT_GT(q.drained, q.began);
  EXPECT_EQ(q.released, q.drained + static_cast<Tick>(7000 / some.tick_ns));
  EXPECT_GE(some.outcome.end, whole.outcome.end + (q.released - q.drained));
  // Nothing moves in between.
  int still = 0;
  for (std::size_t i = 1; i < some.outcome.samples.size(); ++i) {
    const Sample &from = some.outcome.samples[i - 1], &to = some.outcome.samples[i];
    if (from.at < q.drained || to.at > q.released) continue;
    ++still;
    EXPECT_EQ(from.totals.link_hops, to.totals.link_hops);
    EXPECT_EQ(from.totals.delivered, to.totals.delivered);
    EXPECT_EQ(from.totals.injected, to.totals.injected);
  }
  EXPECT_GE(still, 10);
  spec.threads = 3;
  const SimResult crew = run(spec);
  EXPECT_EQ(crew.outcome.end, some.outcome.end);
  EXPECT_EQ(crew.quiesce.drained, q.drained);
  EXPECT_EQ(crew.outcome.total.resent, some.outcome.total.resent);
  EXPECT_EQ(crew.outcome.latency.mean(), some.outcome.latency.mean());
}

INSTANTIATE_TEST_SUITE_P(Machines, SeveredNeighbours,
                         testing::Values(RunCase{"gemini", "4x8x4", 1, 8 * 2},
                                         RunCase{"seastar", "6x5x4", 6, 6 * 2},
                                         RunCase{"aries", "2", 40, 40 * 2}),
                         [](const auto& c) { return std::string(c.param.machine); });

// The adaptive hardware masks what has a link beside it: no packet is held back.
TEST(FailedLinksInTheRun, AreMaskedAtOnceAndWhatTheyHeldIsSentAgain) {
  for (const char* machine : {"gemini", "aries"}) {
    SCOPED_TRACE(machine);
    RunSpec spec = all_to_all(machine, machine == std::string("gemini") ? "4x8x4" : "2");
    const SimResult whole = run(spec);
    spec.failed_links = 150;
    spec.fail_at_us = static_cast<double>(whole.outcome.end) * whole.tick_ns / 2000;
    const SimResult some = run(spec);
    EXPECT_EQ(some.outcome.stop, Stop::finished);
    EXPECT_TRUE(some.outcome.conserved);
    EXPECT_EQ(some.links + 300, whole.links);
    EXPECT_EQ(some.outcome.total.delivered, whole.outcome.total.delivered);
    EXPECT_GT(some.outcome.total.resent, 0u);
    EXPECT_EQ(some.quiesce.began, 0u);
    spec.threads = 2;
    EXPECT_EQ(run(spec).outcome.end, some.outcome.end);
  }
}

// A ring without one of its links is a line. Of 16 nodes 8 of each half send 8 of 15 packets over its middle,
// by one link each way instead of two.
TEST(SeveredNeighbours, HalveTheThroughputOfARing) {
  const auto at = [](double load, std::uint32_t severed) {
    RunSpec spec;
    spec.machine = "seastar";
    spec.nodes = "16x1x1";
    spec.workload = "uniform";
    spec.load = load;
    spec.severed = severed;
    spec.warmup_us = 50;
    spec.measure_us = 200;
    return run(spec);
  };
  const double most = 3.0 * 15 / 64;  // GB/s a node; links of 3 GB/s
  EXPECT_FALSE(at(0.4, 1).saturated());
  EXPECT_FALSE(at(0.7, 0).saturated());
  EXPECT_GT(at(0.7, 0).payload_gb_per_node(), 1.4 * most);
  EXPECT_TRUE(at(0.7, 1).saturated());
  EXPECT_LT(at(0.7, 1).payload_gb_per_node(), 1.02 * most);
  EXPECT_GT(at(0.7, 1).payload_gb_per_node(), 0.85 * most);
}

TEST(Losses, AreRefusedInOneLineWhereNothingLeadsRound) {
  const auto why = [](const char* machine, const char* nodes, auto change) {
    RunSpec spec = all_to_all(machine, nodes);
    change(spec);
    SimResult result;
    return simulate(spec, &result).why;
  };
  EXPECT_EQ(why("seastar", "8x1x1", [](RunSpec& s) { s.severed = 2; }),
            "lost links cut the network in two, routers 0.0.0 and 1.0.0: expected a way between every two");
  EXPECT_EQ(why("seastar", "8x1x1", [](RunSpec& s) { s.failed_nodes = "1.0.0,4.0.0"; }),
            "lost links cut the network in two, routers 0.0.0 and 2.0.0: expected a way between every two");
  EXPECT_EQ(why("seastar", "4x4x4", [](RunSpec& s) { s.severed = 49; }),
            "49 pairs of neighbours severed: expected at most 48, a quarter of them");
  EXPECT_NE(why("seastar", "4x4x1", [](RunSpec& s) { s.severed = 8, s.seed = 2; })
                .find("in the routers' order of directions: expected fewer, or others"),
            std::string::npos);
  EXPECT_NE(
      why("aries", "1", [](RunSpec& s) { s.severed = 180; }).find("lost green links at every router of"),
      std::string::npos);
  EXPECT_NE(why("bluegene-l", "4x4x4", [](RunSpec& s) { s.severed = 1; }).find("have routing tables"),
            std::string::npos);
  EXPECT_NE(why("asci-q", "64", [](RunSpec& s) { s.failed_nodes = "1"; }).find("failed nodes on asci-q"),
            std::string::npos);
  EXPECT_NE(why("seastar", "4x4x4", [](RunSpec& s) { s.failed_nodes = "4.0.0"; }).find("of 4x4x4 of them"),
            std::string::npos);
  EXPECT_NE(
      why("seastar", "4x4x4", [](RunSpec& s) { s.failed_nodes = "1", s.order = "shift", s.in_step = true; })
          .find("expected neither in step"),
      std::string::npos);
  EXPECT_NE(why("gemini", "4x4x4", [](RunSpec& s) { s.fail_at_us = 5; }).find("with it"), std::string::npos);
  EXPECT_NE(why("gemini", "4x4x4", [](RunSpec& s) { s.severed = 1, s.reroute_us = 5; }).find("with it"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::sim
