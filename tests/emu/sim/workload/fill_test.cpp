// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/workload/fill.hpp"

#include "emu/sim/bgl/bgl_run.hpp"

#include <gtest/gtest.h>

namespace orrery::sim {
namespace {

TEST(Fill, EveryNodeOfTheLineGetsEveryPacketAtTheRateOfTwoLinks) {
  BglConfig config;
  Fill fill(Box{config.sides}, false, 2000, 240);
  const SimResult result = run_bgl(config, fill, {});
  EXPECT_EQ(result.outcome.stop, Stop::finished);
  EXPECT_TRUE(result.outcome.conserved);
  EXPECT_EQ(fill.complete(), 8u);
  EXPECT_EQ(result.outcome.total.link_hops, 2u * 2000 * 7);
  EXPECT_GT(2000 * 270.0 / static_cast<double>(result.outcome.end), 0.99);
}

TEST(Fill, EveryNodeOfThePlaneGetsFourColoursAtTheRateOfFourLinks) {
  for (std::array<std::uint32_t, 3> sides : {std::array<std::uint32_t, 3>{8, 8, 1}, {5, 7, 2}}) {
    BglConfig config;
    config.sides = sides;
    Fill fill(Box{config.sides}, true, 1000, 240);
    const SimResult result = run_bgl(config, fill, {});
    EXPECT_EQ(result.outcome.stop, Stop::finished);
    EXPECT_TRUE(result.outcome.conserved);
    EXPECT_EQ(fill.complete(), sides[0] * sides[1]);
    EXPECT_GT(1000 * 270.0 / static_cast<double>(result.outcome.end), 0.96);
  }
}

TEST(Gather, KeepsTheLinksIntoAHotRegionBusy) {
  BglConfig config;
  std::vector<Node> inside, outside;
  for (Node n = 0; n < 512; ++n) (n % 8 < 2 && n / 8 % 8 < 2 && n / 64 < 2 ? inside : outside).push_back(n);
  Gather gather(512, outside, inside, 10, 240, 1);
  const SimResult result = run_bgl(config, gather, {});
  EXPECT_EQ(result.outcome.stop, Stop::finished);
  EXPECT_EQ(result.outcome.total.delivered, 504u * 8 * 10);
  const double bound = 270.0 * 504 * 8 * 10 / 24;
  EXPECT_NEAR(bound / static_cast<double>(result.outcome.end), 0.95, 0.02);
}

// Six links bring a full packet every 45 ticks; a processor that needs longer holds them back, and the
// network behind them, through reception FIFOs that fill.
TEST(Gather, AHotSpotIsAsFastAsItsProcessorReads) {
  const auto end_with = [](std::uint32_t ticks, std::uint32_t processors) {
    BglConfig config;
    config.processor_ticks = config.processor_full_ticks = ticks;
    config.processors = processors;
    std::vector<Node> senders;
    for (Node n = 1; n < 512; ++n) senders.push_back(n);
    Gather gather(512, senders, {0}, 10, 240, 1);
    const SimResult result = run_bgl(config, gather, {});
    EXPECT_EQ(result.outcome.stop, Stop::finished);
    EXPECT_TRUE(result.outcome.conserved);
    EXPECT_EQ(result.outcome.total.delivered, 511u * 10);
    return static_cast<double>(result.outcome.end);
  };
  EXPECT_NEAR(end_with(100, 1) / (5110 * 100), 1.01, 0.01);
  EXPECT_NEAR(end_with(200, 2) / (5110 * 100), 1.02, 0.02);  // two of half the speed, each three links
  EXPECT_LT(end_with(20, 1), 1.15 * end_with(0, 1));         // one that keeps up is not what limits
}

// A deposit's copies and corner turns are work for processors too: one core that takes a quarter of a
// packet's time for each of four receptions, and for what it sends, is too slow for four links; two are not.
TEST(Fill, APlaneTakesBothCoresToKeepFourLinksBusy) {
  const auto share = [](std::uint32_t processors) {
    BglConfig config;
    config.processor_ticks = config.processor_full_ticks = 60;
    config.processors = processors;
    Fill fill(Box{config.sides}, true, 500, 240);
    const SimResult result = run_bgl(config, fill, {});
    EXPECT_EQ(result.outcome.stop, Stop::finished);
    EXPECT_EQ(fill.complete(), 64u);
    return 500 * 270.0 / static_cast<double>(result.outcome.end);
  };
  EXPECT_LT(share(1), 0.8);
  EXPECT_GT(share(2), 0.95);
}

}  // namespace
}  // namespace orrery::sim
