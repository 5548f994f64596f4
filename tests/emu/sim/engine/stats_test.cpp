// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/engine/stats.hpp"

#include <gtest/gtest.h>

namespace orrery::sim {
namespace {

TEST(LatencyHistogram, KeepsMeanAndMaximumExactlyAndPercentilesToAThirtySecond) {
  LatencyHistogram histogram;
  for (Tick t = 1; t <= 100000; ++t) histogram.add(t);
  EXPECT_EQ(histogram.count(), 100000u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 50000.5);
  EXPECT_EQ(histogram.max(), 100000u);
  for (double p : {0.01, 0.5, 0.9, 0.99}) {
    const double exact = p * 100000;
    EXPECT_GE(static_cast<double>(histogram.percentile(p)), exact) << p;
    EXPECT_LE(static_cast<double>(histogram.percentile(p)), exact * (1 + 1.0 / 32) + 1) << p;
  }
  EXPECT_EQ(histogram.percentile(1.0), 100000u);
}

TEST(LatencyHistogram, AddsUpInAnyOrder) {
  LatencyHistogram odd, even, one, other;
  for (Tick t = 1; t < 5000; ++t) (t & 1 ? odd : even).add(t * t);
  one.add(odd);
  one.add(even);
  other.add(even);
  other.add(odd);
  EXPECT_EQ(one.count(), 4999u);
  EXPECT_EQ(one.percentile(0.5), other.percentile(0.5));
  EXPECT_EQ(one.max(), 4999u * 4999u);
}

TEST(LatencyHistogram, HoldsSmallValuesExactly) {
  for (Tick t = 0; t < 64; ++t) {
    LatencyHistogram histogram;
    histogram.add(t);
    histogram.add(1000);
    EXPECT_EQ(histogram.percentile(0.5), t);
  }
}

}  // namespace
}  // namespace orrery::sim
