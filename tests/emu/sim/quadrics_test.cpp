// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/quadrics.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace orrery::sim
