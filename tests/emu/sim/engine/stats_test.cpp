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

TEST(Samples, JoinedInPairsKeepWhatTheirIntervalsHeld) {
  std::vector<Sample> samples(4);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].at = i + 1;
    samples[i].totals.delivered = 10 * (i + 1);
    samples[i].buffered = i;
    samples[i].vcs = {{i, 10, 0.1 * static_cast<double>(i)}, {1, 2, 0.5}};
  }
  samples[0].vcs.clear();  // no look in that interval
  samples[3].vcs.clear();
  join_pairs(&samples);
  ASSERT_EQ(samples.size(), 2u);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].at, 2 * (i + 1));
    EXPECT_EQ(samples[i].totals.delivered, 20 * (i + 1));
    EXPECT_EQ(samples[i].buffered, 2 * i + 1);
    ASSERT_EQ(samples[i].vcs.size(), 2u);
    EXPECT_EQ(samples[i].vcs[0].taken, i + 1);
    EXPECT_EQ(samples[i].vcs[0].room, 10u);
    EXPECT_EQ(samples[i].vcs[0].fullest, 0.1 * static_cast<double>(i + 1));
    EXPECT_EQ(samples[i].vcs[1].mean(), 0.5);
  }
}

}  // namespace
}  // namespace orrery::sim
