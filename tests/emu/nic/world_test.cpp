// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/nic/world_model.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

// Random worlds against the model. ORRERY_TEST_SEED replays one; ORRERY_LONG_TESTS=1 tries 100,000.
namespace orrery::nic {
namespace {

class WorldInABox : public ::testing::TestWithParam<box::Path> {};

INSTANTIATE_TEST_SUITE_P(Paths, WorldInABox,
                         ::testing::Values(box::Path::direct, box::Path::frame, box::Path::adopt),
                         [](const auto& info) {
                           return info.param == box::Path::direct  ? "Direct"
                                  : info.param == box::Path::frame ? "Frame"
                                                                   : "Adopt";
                         });

TEST_P(WorldInABox, MemoryAndEventsAreWhatTheModelSays) {
  constexpr int kSteps = 300;
  if (const char* asked = std::getenv("ORRERY_TEST_SEED")) {
    const std::uint64_t seed = std::strtoull(asked, nullptr, 0);
    EXPECT_EQ(box::Simulation(seed, GetParam()).run(kSteps), "") << "seed " << seed;
    return;
  }
  // A third of the worlds for each path.
  const char* all = std::getenv("ORRERY_LONG_TESTS");
  const std::uint64_t seeds = all != nullptr && all[0] == '1' ? 33'334 : 70;
  std::printf("seeds 1..%llu\n", static_cast<unsigned long long>(seeds));
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::string failure = box::Simulation(seed, GetParam()).run(kSteps);
    ASSERT_EQ(failure, "") << "replay with ORRERY_TEST_SEED=" << seed;
  }
}

}  // namespace
}  // namespace orrery::nic
