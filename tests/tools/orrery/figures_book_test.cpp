// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/figures/figures_book.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::tool::test {
namespace {

TEST(FiguresBook, ALoadThatTheNetworkDoesNotCarryHasNoResponseTime) {
  Book book(FigureOptions{});
  sim::RunSpec spec;
  spec.nodes = "8x8x8";
  spec.workload = "uniform";
  spec.preset = "fig2-deterministic";
  spec.warmup_us = 40;
  spec.measure_us = 20;
  spec.until_us = 500;
  spec.load = 0.3;
  const double light = book.latency_us(spec);
  EXPECT_GT(light, 1);
  EXPECT_LT(light, 3);
  spec.load = 0.9;
  const sim::SimResult full = book.run(spec);
  ASSERT_TRUE(full.saturated());
  ASSERT_GT(full.outcome.latency.count(), 0u);  // there are latencies, of how long the run was
  EXPECT_TRUE(std::isnan(book.latency_us(spec)));
}

// What Figure 13's row rests on: while 1,024 outstanding packets a node fill the network, links carry more
// than arrives.
TEST(FiguresBook, ARunThatOnlyFillsTheNetworkIsNotCalledSteady) {
  Book book(FigureOptions{});
  sim::RunSpec spec;
  spec.machine = "aries";
  spec.nodes = "2";
  spec.bytes = 4096;
  spec.order = "shift";
  spec.grain = 8;
  spec.repeat = 1000;
  spec.sample_us = 0.5;
  spec.warmup_us = 0.5;
  spec.until_us = 2;
  EXPECT_FALSE(book.run(spec).outcome.steady);
  spec.warmup_us = 5;
  spec.until_us = 20;
  EXPECT_TRUE(book.run(spec).outcome.steady);
}

}  // namespace
}  // namespace orrery::tool::test
