// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/nic/world_model.hpp"

#include <gtest/gtest.h>

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
  // A third of the worlds for each path.
  box::for_every_seed(70, 33'334,
                      [](std::uint64_t seed) { return box::Simulation(seed, GetParam()).run(kSteps); });
}

}  // namespace
}  // namespace orrery::nic
