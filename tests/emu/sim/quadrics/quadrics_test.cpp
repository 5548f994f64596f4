// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/quadrics/quadrics.hpp"

#include "emu/sim/failure/failed_links.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

namespace orrery::sim {
namespace {

TEST(Quadrics, BroadcastBandwidthMeetsItsTwoAnchors) {
  Quadrics machine({.levels = 5});
  EXPECT_NEAR(machine.broadcast_mb_per_s(64, 1000), 288, 288 * 0.05);
  EXPECT_NEAR(machine.broadcast_mb_per_s(1024, 1000), 140, 140 * 0.05);
}

TEST(Quadrics, BarriersAndAllreduceComeWithinFifteenPercent) {
  Quadrics machine({.levels = 5});
  EXPECT_NEAR(machine.hardware_barrier(64).ns, 6000, 900);
  EXPECT_NEAR(machine.hardware_barrier(1024).ns, 10000, 1500);
  EXPECT_NEAR(machine.software_barrier(64), 15000, 2250);
  EXPECT_NEAR(machine.software_barrier(1024), 30000, 4500);
  EXPECT_NEAR(machine.allreduce(1024), 160000, 24000);
  for (std::uint32_t nodes : {16u, 64u, 256u, 1024u})
    EXPECT_LT(machine.hardware_barrier(nodes).ns, machine.software_barrier(nodes)) << nodes;
}

TEST(Quadrics, AHotSpotIsFlatToAHundredAndTwentyEightNodesThenFalls) {
  Quadrics machine({.levels = 5});
  const auto rate = [&](std::uint32_t nodes) { return machine.hot_spot(nodes, 2e6).mb_per_s; };
  const double at16 = rate(16), at64 = rate(64), at128 = rate(128), at512 = rate(512), at1024 = rate(1024);
  EXPECT_NEAR(at16, 400, 20);
  EXPECT_GT(at64, 0.95 * at16);
  EXPECT_GT(at128, 0.9 * at16);
  EXPECT_LT(at512, 0.85 * at16);
  EXPECT_LE(at1024, at512 * 1.02);
}

TEST(Quadrics, MulticastsAreSerialisedAtTheRoot) {
  Quadrics machine({.levels = 3});
  const double alone = machine.multicasts({0.0}, 64, 384).front();
  const auto ends = machine.multicasts({0.0, 0.0, 0.0}, 64, 384);
  EXPECT_DOUBLE_EQ(ends[0], alone);
  EXPECT_GT(ends[1], ends[0] + 384 / 0.4);
  EXPECT_GT(ends[2], ends[1] + 384 / 0.4);
}

TEST(Quadrics, ALateProcessMakesTheBarrierRetryWithBackOff) {
  Quadrics machine({.levels = 3});
  std::vector<double> arrivals(64, 0.0);
  EXPECT_EQ(machine.hardware_barrier(64, arrivals).attempts, 1u);
  arrivals[40] = 100000;
  const auto late = machine.hardware_barrier(64, arrivals);
  EXPECT_GT(late.attempts, 3u);
  EXPECT_LT(late.attempts, 12u);  // doubling
  EXPECT_GT(late.ns, 100000);
}

TEST(Quadrics, UniformLoadIsCarriedAndLatencyRises) {
  Quadrics machine({.levels = 3});
  const auto light = machine.uniform(0.1, 400000), heavy = machine.uniform(0.4, 400000);
  EXPECT_NEAR(light.accepted, 0.04, 0.004);
  EXPECT_NEAR(heavy.accepted, 0.16, 0.016);
  EXPECT_GT(light.mean_latency, 384 / 0.4);
  EXPECT_GT(heavy.mean_latency, light.mean_latency);
}

TEST(Quadrics, BitErrorsCostTimeNeverPackets) {
  QuadricsConfig config{.levels = 3};
  const auto clean = Quadrics(config).uniform(0.05, 3e6);
  EXPECT_EQ(clean.retries, 0u);
  config.bit_error_rate = 1e-5;
  Quadrics machine(config);
  const auto noisy = machine.uniform(0.05, 3e6);
  // A packet of 384 bytes crosses 2, 4 or 6 links.
  double again = 0;
  for (const auto& [others, links] : {std::pair{3, 2}, {12, 4}, {48, 6}}) {
    const double hit = 1 - std::pow(1 - config.bit_error_rate, 8.0 * 384 * links);
    again += others / 63.0 * hit / (1 - hit);
  }
  // Packets are counted over the last two thirds.
  EXPECT_NEAR(static_cast<double>(noisy.retries) / (1.5 * static_cast<double>(noisy.packets)), again,
              0.1 * again);
  EXPECT_NEAR(noisy.accepted, clean.accepted, 0.03 * clean.accepted);
  EXPECT_GT(noisy.mean_latency, clean.mean_latency * (1 + again));
  // Of a multicast all is sent again, by the worst of its acknowledgments.
  EXPECT_LT(machine.broadcast_mb_per_s(64, 1000), 0.5 * Quadrics({.levels = 3}).broadcast_mb_per_s(64, 1000));
}

TEST(Quadrics, CircuitsGoRoundFailedLinks) {
  Quadrics machine({.levels = 3});
  const auto whole = machine.uniform(0.1, 1e6);
  const model::FatTree tree = model::FatTree::make(3).value();
  for (const model::LinkId link : {tree.up_link(1, 0), tree.up_link(1, 5), tree.up_link(2, 9),
                                   tree.down_link(1, 20), tree.down_link(2, 33), tree.down_link(2, 34)})
    ASSERT_FALSE(machine.fail_link(link).refused()) << link;
  const auto less = machine.uniform(0.1, 1e6);
  EXPECT_EQ(less.failed_passed, 0u);
  EXPECT_NEAR(less.accepted, whole.accepted, 0.03 * whole.accepted);
  // What would cut nodes off is refused and stays in service.
  EXPECT_TRUE(machine.fail_link(tree.link_slots()).refused());
  EXPECT_TRUE(machine.fail_link(tree.up_link(0, 7)).refused());
  EXPECT_TRUE(machine.fail_link(tree.down_link(0, 7)).refused());
  ASSERT_FALSE(machine.fail_link(tree.up_link(1, 1)).refused());
  ASSERT_FALSE(machine.fail_link(tree.up_link(1, 2)).refused());
  const Refusal last = machine.fail_link(tree.up_link(1, 3));
  EXPECT_NE(last.why.find("could not reach"), std::string::npos) << last.why;
  const auto least = machine.uniform(0.1, 1e6);
  EXPECT_EQ(least.failed_passed, 0u);
  EXPECT_NEAR(least.accepted, whole.accepted, 0.03 * whole.accepted);
}

TEST(Quadrics, LinksAreLostBothWaysAndAsManyAsWereAskedFor) {
  const model::FatTree tree = model::FatTree::make(3).value();
  Quadrics one({.levels = 3});
  EXPECT_TRUE(one.fail_both_ways(tree.down_link(1, 3)).refused());
  EXPECT_TRUE(one.fail_both_ways(tree.up_link(0, 3)).refused());
  ASSERT_FALSE(one.fail_both_ways(tree.up_link(1, 3)).refused());
  const model::LinkEnds ends = tree.ends(tree.up_link(1, 3));
  for (model::LinkId link = 0; link < tree.link_slots(); ++link) {
    const model::LinkEnds e = tree.ends(link);
    const bool lost = link == tree.up_link(1, 3) || (e.from == ends.to && e.to == ends.from);
    EXPECT_EQ(one.has_failed(link), lost) << link;
  }
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Quadrics many({.levels = 3});
    ASSERT_FALSE(fail_links(&many, 32, seed).refused());
    std::uint32_t lost = 0;
    for (model::LinkId link = 0; link < tree.link_slots(); ++link) lost += many.has_failed(link);
    EXPECT_EQ(lost, 64u);
    EXPECT_EQ(many.uniform(0.1, 2e5).failed_passed, 0u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace orrery::sim
