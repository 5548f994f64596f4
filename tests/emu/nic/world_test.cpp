// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/nic/world_model.hpp"

#include <gtest/gtest.h>

// Random worlds against the model. ORRERY_TEST_SEED replays one; ORRERY_LONG_TESTS=1 tries 100,000.
namespace orrery::nic {
namespace {

constexpr int kSteps = 300;

class WorldInABox : public ::testing::TestWithParam<box::Path> {};

INSTANTIATE_TEST_SUITE_P(Paths, WorldInABox,
                         ::testing::Values(box::Path::direct, box::Path::frame, box::Path::adopt),
                         [](const auto& info) {
                           return info.param == box::Path::direct  ? "Direct"
                                  : info.param == box::Path::frame ? "Frame"
                                                                   : "Adopt";
                         });

TEST_P(WorldInABox, MemoryAndEventsAreWhatTheModelSays) {
  // A third of the worlds for each path.
  box::for_every_seed(70, 33'334,
                      [](std::uint64_t seed) { return box::Simulation(seed, GetParam()).run(kSteps); });
}

// Seeds that failed once, each for a reason of its own: pages that were moved twice, a death that was not
// told, posts after the last look, a put into pages on the move, answers to a process that was there before.
TEST_P(WorldInABox, SeedsThatFailedOnceHold) {
  for (const std::uint64_t seed : {1912, 6008, 7839, 9653, 11852})
    EXPECT_EQ(box::Simulation(seed, GetParam()).run(kSteps), "") << "seed " << seed;
}

}  // namespace
}  // namespace orrery::nic
