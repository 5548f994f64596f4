// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/figures_book.hpp"

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

}  // namespace
}  // namespace orrery::tool::test
