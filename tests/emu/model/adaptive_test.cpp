// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/adaptive.hpp"

#include "emu/model/route.hpp"
#include "tests/emu/model/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orrery::model {
namespace {

TEST(Adaptive, AQuietNetworkIsRoutedMinimallyInEveryMode) {
  for (const AdaptiveBias bias : kAdaptiveModes) EXPECT_EQ(choose_adaptive({0, 0, 0, 0}, bias), 0);
}

TEST(Adaptive, IsNeverWorseThanTheBetterCandidate) {
  Choices pick(test_seed());
  for (int i = 0; i < 10000; ++i) {
    const CandidateLoads loads{pick.below(200), pick.below(200), pick.below(200), pick.below(200)};
    EXPECT_EQ(loads[choose_adaptive(loads, {0, 0})], *std::min_element(loads.begin(), loads.end()));
    for (const AdaptiveBias bias : kAdaptiveModes) {
      const int chosen = choose_adaptive(loads, bias);
      for (int other = 0; other < 4; ++other) {
        EXPECT_LE(weighted_load(loads, chosen, bias), weighted_load(loads, other, bias));
      }
      // A detour is taken only when it is lighter even before its weight.
      EXPECT_TRUE(chosen < kMinimalCandidates || loads[chosen] < std::min(loads[0], loads[1]));
    }
  }
}

TEST(Adaptive, AStrongerBiasTakesFewerDetours) {
  Choices pick(test_seed());
  std::array<int, 4> detours{};
  for (int i = 0; i < 10000; ++i) {
    const CandidateLoads loads{pick.below(200), pick.below(200), pick.below(200), pick.below(200)};
    for (std::size_t mode = 0; mode < 4; ++mode)
      detours[mode] += choose_adaptive(loads, kAdaptiveModes[mode]) >= 2;
  }
  for (std::size_t mode = 1; mode < 4; ++mode) EXPECT_LT(detours[mode], detours[mode - 1]);
}

}  // namespace
}  // namespace orrery::model
