// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The per-operation model answers as the packet simulator does, under load: mean latency within 15 % below
// 70 % of the uniform peak, throughput within 10 %. Both are deterministic, so these are numbers, not
// chances.
#include "emu/sim/tile/tiers.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace orrery::sim {
namespace {

constexpr double kLatency = 0.15, kThroughput = 0.10;

class Tiers : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    tier_ = tier_cases()[static_cast<std::size_t>(GetParam())];
    machine_ = network_alone(tier_);
    ASSERT_NE(machine_, nullptr);
    quadrics_ = machine_->pricing.network == model::Network::fat_tree;
    // Long enough for some thousand packets, and its first third, which is not counted, for the longest way.
    tier_.window_us *= quadrics_ ? 1 : 0.4;
  }
  void compare(Pattern pattern, double load, bool latency) {
    SCOPED_TRACE(std::string(tier_.machine) + " " + pattern_name(pattern) + " at " + std::to_string(load));
    const TierTraffic traffic{pattern, load * uniform_peak(*machine_), 1, 1};
    const TierOutcome i = by_operations(*machine_, tier_, traffic),
                      ii = by_packets(*machine_, tier_, traffic);
    ASSERT_GT(ii.work, 1000u);
    EXPECT_NEAR(i.accepted, ii.accepted, kThroughput * ii.accepted);
    if (latency) {
      EXPECT_NEAR(i.latency_ns, ii.latency_ns, kLatency * ii.latency_ns);
    }
  }
  TierCase tier_{};
  std::unique_ptr<model::Machine> machine_;
  bool quadrics_ = false;
};

TEST_P(Tiers, AgreeUnderUniformLoad) {
  // Circuits of the fat tree fill it at a third of its links: past that the source queues grow in both.
  for (const double load : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65}) compare(Pattern::uniform, load, true);
}

TEST_P(Tiers, AgreeOnThroughputNearThePeak) { compare(Pattern::uniform, 0.9, false); }

// The long cables lie in both tiers where the machine file says.
TEST(TierOutcomes, AWholeQuadricsSegmentIsAsFarAcrossInBoth) {
  TierCase tier = tier_cases()[4];
  tier.sides[0] = 5;
  const auto machine = network_alone(tier);
  ASSERT_NE(machine, nullptr);
  const TierTraffic traffic{Pattern::uniform, 0.05 * uniform_peak(*machine), 1, 1};
  const TierOutcome i = by_operations(*machine, tier, traffic), ii = by_packets(*machine, tier, traffic);
  EXPECT_NEAR(i.latency_ns, ii.latency_ns, 0.05 * ii.latency_ns);
}

// Past what a network carries the queues at the sources grow all the time, and a mean latency says first of
// all of which packets it is: in both of those that came in the window. One that comes at t was made at
// t * carried / offered.
TEST(TierOutcomes, PastThePeakBothCountWhatCameInTheWindow) {
  const TierCase tier = tier_cases()[4];
  const auto machine = network_alone(tier);
  ASSERT_NE(machine, nullptr);
  const TierTraffic traffic{Pattern::uniform, 0.9 * uniform_peak(*machine), 1, 1};
  const double offered = traffic.packets_per_node_ns * machine->pricing.packet.payload;
  for (const TierOutcome& o : {by_operations(*machine, tier, traffic), by_packets(*machine, tier, traffic)}) {
    const double mean = tier.window_us * 1000 * 2 / 3 * (1 - o.accepted / offered);
    EXPECT_NEAR(o.latency_ns, mean, 0.1 * mean);
  }
}

// The circuit simulator has no such workload.
class TiersOfRouters : public Tiers {};

TEST_P(TiersOfRouters, AgreeOnAHotRegionUntilItsLinksFill) {
  for (const double load : {0.1, 0.3}) compare(Pattern::hot_region, load, true);
}

std::string name_of(const testing::TestParamInfo<int>& tier) {
  std::string name(tier_cases()[static_cast<std::size_t>(tier.param)].machine);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}
INSTANTIATE_TEST_SUITE_P(Machines, Tiers, testing::Range(0, 5), name_of);
INSTANTIATE_TEST_SUITE_P(Machines, TiersOfRouters, testing::Range(0, 4), name_of);

}  // namespace
}  // namespace orrery::sim
