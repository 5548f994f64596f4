// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The figures of the Blue Gene/L paper that are small enough to hold in every build; the rest are
// `orrery figures`.
#include "emu/sim/bgl/bgl_run.hpp"
#include "emu/sim/workload/traffic.hpp"

#include <gtest/gtest.h>

namespace orrery::sim {
namespace {

TEST(BglFigures, ASteadySymmetricTorusKeepsItsLinksBusy) {
  BglConfig config;
  AllToAll::Options options;
  options.repeat = 1000;
  AllToAll workload(Box{config.sides}, 7, options);
  RunLimits limits;
  limits.warmup = 30000;
  limits.until_steady = true;
  limits.measure = 60000;
  const SimResult result = run_bgl(config, workload, limits);
  EXPECT_EQ(result.outcome.stop, Stop::steady);
  EXPECT_TRUE(result.outcome.steady);
  EXPECT_NEAR(result.link_utilisation(), 0.98, 0.02);
  // 240 of 270 bytes are payload: over six links and the mean distance of 6 * 512/511.
  const double payload = result.payload_gb_per_node() * result.tick_ns / (8.0 / 8);
  EXPECT_NEAR(payload, 0.87, 0.02);
}

}  // namespace
}  // namespace orrery::sim
