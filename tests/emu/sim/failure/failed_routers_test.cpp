// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Routers that fail with their nodes: every pair of the others keeps a way, no chain of channels that wait
// for each other closes, and no node is left waiting for what they held.
#include "emu/sim/failure/failed_links.hpp"
#include "emu/sim/failure/without_nodes.hpp"
#include "emu/sim/scene/machine_timing.hpp"
#include "emu/sim/scene/simulate.hpp"
#include "emu/sim/tile/dragonfly_fabric.hpp"
#include "emu/sim/tile/tile_run.hpp"
#include "emu/sim/workload/traffic.hpp"
#include "tests/emu/sim/failure/lost_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace orrery::sim {
namespace {

// What is lost of a dragonfly: routers, and links beside.
struct Lost {
  std::vector<FailedLink> links;
  std::vector<Node> routers;
  bool has(Node router) const { return std::find(routers.begin(), routers.end(), router) != routers.end(); }
};

// A number of routers, of green links and of black and blue ones.
Lost draw(const model::Dragonfly& dragonfly, std::uint32_t routers, std::uint32_t green, std::uint32_t others,
          std::uint64_t seed) {
  Lost lost;
  EXPECT_EQ(pick_failed_links(dragonfly, others, seed, &lost.links).why, "");
  EXPECT_EQ(pick_severed(dragonfly, green, seed, &lost.links).why, "");
  Random random(seed, 77);
  while (lost.routers.size() < routers)
    if (const Node router = random.below(dragonfly.routers()); !lost.has(router))
      lost.routers.push_back(router);
  for (const Node router : lost.routers) sever_router(dragonfly, router, &lost.links);
  return lost;
}

// Follows packets both ways between all pairs of routers that are left; the longest way.
int walk(const model::Dragonfly& dragonfly, const Lost& lost, const DragonflyDetours& detours,
         AriesRouting routing, std::uint64_t seed) {
  AriesTiming timing;
  timing.routing = routing;
  DragonflyFabric fabric(dragonfly, timing, detours);
  if (fabric.has_new_tables()) fabric.use_new_tables();
  LostView view(fabric, lost.links, seed);
  ChannelChains chains(std::size_t{fabric.sites()} * fabric.ports() * DragonflyFabric::kVcs);
  Random random(seed);
  int longest = 0;
  for (Node from = 0; from < dragonfly.routers(); ++from)
    for (Node to = 0; to < dragonfly.routers(); ++to) {
      if (lost.has(from) || lost.has(to)) continue;
      for (const std::uint8_t flags : {std::uint8_t{0}, std::uint8_t{kResponse}}) {
        const int links = follow(fabric, view, random, from * 4, to * 4, flags, &chains);
        EXPECT_LE(links, 14) << from << " to " << to;
        if (links > 14) return links;
        longest = std::max(longest, links);
      }
    }
  EXPECT_TRUE(chains.closed().empty());
  return longest;
}

constexpr AriesRouting kRoutings[] = {AriesRouting::minimal, AriesRouting::valiant, AriesRouting::adaptive,
                                      AriesRouting::ordered};

TEST(FailedAriesRouters, AreGoneRoundAndNoChainOfChannelsCloses) {
  const model::Dragonfly dragonfly = model::Dragonfly::make({.groups = 2}).value();
  int refused = 0, three_in_a_group = 0;
  constexpr int kDraws = 60;
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    // Every third draw many routers and nothing else, every third some of all.
    const std::uint32_t kind = seed % 3;
    const Lost lost = draw(dragonfly, kind == 0 ? 24 : 8, kind == 1 ? 20 : 0, kind == 0 ? 0 : 120, seed);
    DragonflyDetours detours;
    if (DragonflyDetours::make(dragonfly, lost.links, lost.routers, &detours).refused()) {
      ++refused;
      continue;
    }
    EXPECT_TRUE(detours.needed());
    // Minimal ways are of 5 links at most where nothing is lost; round a router one group takes a third.
    three_in_a_group += walk(dragonfly, lost, detours, kRoutings[seed % 4], seed) >= 6;
  }
  EXPECT_LE(refused, 15);
  EXPECT_GE(three_in_a_group, 30);
}

// Roots are drawn among the routers that a group has.
TEST(FailedAriesRouters, MayBeOfAGroupThatIsSmallerThanOthers) {
  const model::Dragonfly dragonfly = model::Dragonfly::make({.groups = 2, .last_group_chassis = 2}).value();
  for (const std::uint32_t routers : {0u, 10u}) {
    const Lost lost = draw(dragonfly, routers, routers / 5, 0, 3);
    DragonflyDetours detours;
    ASSERT_EQ(DragonflyDetours::make(dragonfly, lost.links, lost.routers, &detours).why, "");
    for (const AriesRouting routing : kRoutings) EXPECT_LE(walk(dragonfly, lost, detours, routing, 3), 14);
  }
}

// The turn from black to green is what a column is for: three routers in a row of slots and chassis, so that
// black and green links taken in any slot would wait for each other in a ring.
TEST(FailedAriesRouters, OnADiagonalAreGoneRoundByColumns) {
  const model::Dragonfly dragonfly = model::Dragonfly::make({.groups = 1}).value();
  Lost lost;
  for (std::uint32_t i = 0; i < 6; ++i) lost.routers.push_back(i * 16 + i);
  for (const Node router : lost.routers) sever_router(dragonfly, router, &lost.links);
  DragonflyDetours detours;
  ASSERT_EQ(DragonflyDetours::make(dragonfly, lost.links, lost.routers, &detours).why, "");
  EXPECT_EQ(detours.hubs(2), 0xffff & ~(1u << 2));
  EXPECT_EQ(detours.columns(0, 3), 0xffc0);
  EXPECT_TRUE(detours.dead(17));
  EXPECT_FALSE(detours.dead(16));
  for (const AriesRouting routing : kRoutings) walk(dragonfly, lost, detours, routing, 5);
  // From chassis 0 to slot 0 of another: by a column. From a router of one it is one link less.
  DragonflyFabric fabric(dragonfly, {.routing = AriesRouting::minimal}, detours);
  fabric.use_new_tables();
  LostView view(fabric, lost.links, 1);
  ChannelChains chains(std::size_t{fabric.sites()} * fabric.ports() * DragonflyFabric::kVcs);
  Random random(1);
  EXPECT_EQ(follow(fabric, view, random, 3 * 4, 16 * 4, 0, &chains), 3);
  EXPECT_EQ(follow(fabric, view, random, 9 * 4, 16 * 4, 0, &chains), 2);
  EXPECT_EQ(follow(fabric, view, random, 3 * 4, 17 * 4 + 4, 0, &chains), 2);
}

TEST(FailedRouters, AreLedRoundAndNeitherSendNorReceive) {
  for (auto [machine, nodes, dead, left] : {std::tuple{"gemini", "4x8x4", "1.2.3,0.0.0", 124},
                                            {"seastar", "5x4x4", "1.2.3,1.3.3,4.0.0", 77},
                                            {"seastar", "5x4x4", "4", 76},
                                            {"aries", "2", "0.2.5,1.0.0,1.5.15,0.3.6", 768 - 16},
                                            {"aries", "2", "12", 768 - 48}}) {
    SCOPED_TRACE(machine);
    RunSpec spec = all_to_all(machine, nodes);
    spec.failed_nodes = dead;
    const SimResult one = run(spec);
    EXPECT_EQ(one.outcome.stop, Stop::finished);
    EXPECT_TRUE(one.outcome.conserved);
    EXPECT_EQ(one.outcome.total.delivered, static_cast<std::uint64_t>(left) * (left - 1) * 4 / spec.grain);
    spec.threads = 2;
    EXPECT_EQ(run(spec).outcome.end, one.outcome.end);
    spec.workload = "uniform";
    spec.bytes = 64 * spec.grain;
    spec.load = 0.3;
    spec.measure_us = 5;
    spec.sample_us = 1;
    const SimResult rate = run(spec);
    EXPECT_TRUE(rate.outcome.conserved);
    EXPECT_FALSE(rate.saturated());
  }
}

TEST(FailedAriesRouters, AreRefusedInOneLineWhereNothingLeadsRound) {
  const auto why = [](const char* nodes, const std::string& failed, auto change) {
    RunSpec spec = all_to_all("aries", nodes);
    spec.failed_nodes = failed;
    change(spec);
    SimResult result;
    return simulate(spec, &result).why;
  };
  const auto same = [](RunSpec&) {};
  EXPECT_EQ(
      why("2", "0.6.0", same),
      "failed nodes '0.6.0': expected a number of routers, or group.chassis.slot of 2 groups of 6 chassis "
      "of 16 such as 1.0.2,0.1.1");
  EXPECT_EQ(why("2", "2.0.0", same).find("failed nodes '2.0.0': expected a number"), 0u);
  EXPECT_EQ(why("2", "0.0.16", same).find("failed nodes '0.0.16': expected a number"), 0u);
  EXPECT_EQ(why("2", "0.0.1,", same).find("failed nodes '0.0.1,': expected a number"), 0u);
  EXPECT_EQ(why("2", "49", same), "49 failed routers: expected 1 to 48, a quarter of them");
  // Of every slot one router.
  std::string diagonal;
  for (int slot = 0; slot < 16; ++slot)
    diagonal += (slot ? ",0." : "0.") + std::to_string(slot % 6) + "." + std::to_string(slot);
  EXPECT_EQ(
      why("1", diagonal, same),
      "failed routers leave no way from chassis 0 to router 0 of chassis 1 of group 0: expected a slot that "
      "no chassis has lost, with all of its green links in both");
  // A whole chassis is no slot that has lost its router: no node is left there to come from.
  std::string chassis;
  for (int slot = 0; slot < 16; ++slot) chassis += (slot ? ",0.3." : "0.3.") + std::to_string(slot);
  EXPECT_EQ(why("1", chassis, same), "");
  // 64 groups: three cables join every two, to as many pairs of routers.
  std::string owners;
  for (int router = 0; router < 6; ++router) owners += (router ? ",0.0." : "0.0.") + std::to_string(router);
  EXPECT_EQ(why("64", owners, [](RunSpec& s) { s.workload = "uniform", s.load = 0.1, s.until_us = 0.5; }),
            "lost all blue links between groups 0 and 1: expected one left");
  EXPECT_EQ(why("2", "1", [](RunSpec& s) { s.job_nodes = 96, s.job_groups = 2; }),
            "failed nodes and a job of 96: expected an alltoall of the whole machine");
  RunSpec spec = all_to_all("bluegene-l", "4x4x4");
  spec.grain = 1;
  spec.failed_nodes = "1";
  spec.fail_at_us = 5;
  SimResult result;
  EXPECT_EQ(
      simulate(spec, &result).why,
      "what fails at 5 us: expected failed links, severed neighbours or failed nodes of gemini, seastar or "
      "aries with it");
}

// ---- in the run

// An all-to-all that notes, at each node, how much came from each.
class Noted final : public Workload {
 public:
  Noted(Node nodes, const AllToAll::Options& options)
      : inner_(nodes, options), nodes_(nodes), came_(std::size_t{nodes} * nodes), last_(nodes) {}
  Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) override {
    return inner_.next(node, fifo, now, random, out);
  }
  bool delivered(Node node, const Packet& packet, Tick now, bool copy) override {
    ++came_[std::size_t{node} * nodes_ + packet.src];
    last_[node] = now;
    return inner_.delivered(node, packet, now, copy);
  }
  int came(Node at, Node from) const { return came_[std::size_t{at} * nodes_ + from]; }
  Tick last(Node at) const { return last_[at]; }

 private:
  AllToAll inner_;
  Node nodes_;
  std::vector<std::uint8_t> came_;
  std::vector<Tick> last_;
};

struct InTheRun {
  const char* name;
  bool get;
  std::uint32_t window;  // one slot: not given back it is missed
};

class RoutersThatFail : public testing::TestWithParam<InTheRun> {
 protected:
  // kPieces packets from each node to each other one; at `at` the routers fail, 0: none does.
  SimResult run(Tick at, unsigned threads = 1) const {
    const InTheRun& c = GetParam();
    RunLimits limits;
    limits.threads = threads;
    limits.sample_every = 1000;
    AllToAll::Options options;
    options.fifos = 1;
    options.bytes = 64 * kPieces;
    options.payload_max = 64;
    options.flags = c.get ? kGet : 0;
    const bool aries = c.name == std::string("aries");
    const Node nodes = aries ? 384 : kTorus * (c.name == std::string("gemini") ? 2 : 1);
    const Node nics = aries ? 4 : nodes / kTorus;
    Losses losses;
    losses.at = at;
    losses.reroute = 30000;
    if (at != 0) losses.routers = {5, 22, 63};
    std::vector<bool> failed(nodes);
    for (const Node router : losses.routers)
      for (Node n = 0; n < nics; ++n) failed[router * nics + n] = true;
    auto noted = std::make_unique<Noted>(nodes, options);
    const Noted& came = *noted;
    WithoutNodes workload(std::move(noted), failed, false, at);
    SimResult result;
    if (aries) {
      const auto dragonfly = model::Dragonfly::make({.groups = 1}).value();
      for (const Node router : losses.routers) sever_router(dragonfly, router, &losses.links);
      DragonflyDetours detours;
      EXPECT_EQ(DragonflyDetours::make(dragonfly, losses.links, losses.routers, &detours).why, "");
      AriesTiming timing;
      timing.nic.outstanding = c.window;
      result = run_aries(dragonfly, timing, workload, limits, 1, false, losses, detours);
    } else {
      const auto torus =
          model::Torus::make(nics == 2 ? model::gemini_shape_of(4, 8, 4) : model::plain_torus_shape(4, 4, 4))
              .value();
      for (const Node router : losses.routers) sever_router(torus, router, &losses.links);
      TorusDetours detours;
      EXPECT_EQ(TorusDetours::make(torus, losses.links, losses.routers, &detours).why, "");
      TorusTiming timing;
      EXPECT_EQ(timing_of(*model::build_machine(c.name).machine, &timing).why, "");
      if (c.window != 0) timing.nic.outstanding = c.window;
      result = run_torus(torus, timing, workload, limits, 1, false, losses, detours);
    }
    const Counters& t = result.outcome.total;
    EXPECT_EQ(result.outcome.stop, Stop::finished);
    EXPECT_TRUE(result.outcome.conserved);
    EXPECT_EQ(result.outcome.in_flight, 0u);
    EXPECT_EQ(t.injected + t.responses, t.delivered + t.responses_back + t.dropped);
    // Between nodes that are left everything came, and once.
    int before = 0;
    for (Node a = 0; a < nodes; ++a)
      for (Node b = 0; b < nodes; ++b) {
        if (a == b) continue;
        if (!failed[a] && !failed[b]) {
          EXPECT_EQ(came.came(a, b), kPieces) << b << " to " << a;
        } else {
          EXPECT_LE(came.came(a, b), kPieces);
          before += came.came(a, b);
        }
      }
    EXPECT_EQ(before > 0, at != 0);
    for (Node n = 0; n < nodes; ++n) EXPECT_TRUE(!failed[n] || came.last(n) < at) << n;
    return result;
  }
  static constexpr int kPieces = 2;
  static constexpr Node kTorus = 64;  // routers
};

TEST_P(RoutersThatFail, InTheRunTakeTheirNodesPacketsWithThemAndNobodyElses) {
  const SimResult whole = run(0);
  EXPECT_EQ(whole.outcome.total.dropped, 0u);
  const Tick at = whole.outcome.end / 2;
  const SimResult some = run(at);
  const Counters& t = some.outcome.total;
  EXPECT_GT(t.dropped, 0u);
  if (GetParam().window == 0) {
    EXPECT_GT(t.resent, 0u);
  }
  EXPECT_LT(t.injected, whole.outcome.total.injected);
  EXPECT_EQ(some.quiesce.began, at);
  EXPECT_GT(some.quiesce.drained, at);
  EXPECT_EQ(some.quiesce.released, some.quiesce.drained + 30000);
  // With new tables nothing more goes to them.
  for (const Sample& sample : some.outcome.samples)
    EXPECT_TRUE(sample.at < some.quiesce.drained || sample.totals.dropped == t.dropped) << sample.at;
  const SimResult crew = run(at, 2);
  EXPECT_EQ(crew.outcome.end, some.outcome.end);
  EXPECT_EQ(crew.outcome.total.dropped, t.dropped);
  EXPECT_EQ(crew.outcome.total.resent, t.resent);
  EXPECT_EQ(crew.outcome.total.link_hops, t.link_hops);
}

INSTANTIATE_TEST_SUITE_P(Machines, RoutersThatFail,
                         testing::Values(InTheRun{"gemini", false, 1}, InTheRun{"gemini", true, 1},
                                         InTheRun{"gemini", false, 0}, InTheRun{"seastar", false, 0},
                                         InTheRun{"aries", false, 1}, InTheRun{"aries", true, 1}),
                         [](const auto& c) {
                           return std::string(c.param.name) + (c.param.get ? "_gets_" : "_puts_") +
                                  std::to_string(c.param.window);
                         });

// The rest goes on as if they had been gone from the start.
TEST(RoutersThatFail, LeaveTheOthersTheirLoad) {
  for (const char* machine : {"gemini", "seastar", "aries"}) {
    SCOPED_TRACE(machine);
    RunSpec spec = all_to_all(machine, machine == std::string("aries") ? "1" : "4x8x4");
    spec.workload = "uniform";
    spec.bytes = 64 * spec.grain;
    spec.load = 0.4;
    spec.failed_nodes = "3";
    spec.warmup_us = 40;
    spec.measure_us = 20;
    spec.sample_us = 2;
    const SimResult before = run(spec);
    spec.fail_at_us = 5;
    spec.reroute_us = 3;
    const SimResult in_the_run = run(spec);
    EXPECT_TRUE(in_the_run.outcome.conserved);
    EXPECT_GT(in_the_run.outcome.total.dropped, 0u);
    EXPECT_EQ(before.outcome.total.dropped, 0u);
    EXPECT_EQ(in_the_run.offered, before.offered);
    EXPECT_EQ(in_the_run.links, before.links);
    EXPECT_NEAR(in_the_run.accepted(), before.accepted(), 0.03 * before.accepted());
    EXPECT_NEAR(in_the_run.mean_latency_ns(), before.mean_latency_ns(), 0.05 * before.mean_latency_ns());
  }
}

}  // namespace
}  // namespace orrery::sim
