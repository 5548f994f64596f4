// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/state/arena.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <set>

namespace orrery::nic {
namespace {

struct Arenas : ::testing::Test {
  box::World world{1, box::Path::direct};
  Arena arena{world[0].nic().view()};
};

TEST_F(Arenas, GiveAlignedBlocksUntilTheyAreUsedUp) {
  std::set<std::uint64_t> offsets;
  for (std::uint64_t at = 0; (at = arena.take(1u << 20, Arena::Use::ring)) != 0;) {
    EXPECT_EQ(at % kCacheLine, 0u);
    EXPECT_TRUE(offsets.insert(at).second);
  }
  EXPECT_GE(offsets.size(), 7u) << "of 8 MiB";
  EXPECT_EQ(arena.take(1u << 20, Arena::Use::segment_list), 0u);
  arena.give_back(*offsets.begin(), 1u << 20, Arena::Use::ring);
  EXPECT_EQ(arena.take(1u << 20, Arena::Use::ring), *offsets.begin());
}

TEST_F(Arenas, UseABlockAgainForTheSameAloneAndBySize) {
  const std::uint64_t ring = arena.take(100, Arena::Use::ring);
  arena.give_back(ring, 100, Arena::Use::ring);
  EXPECT_NE(arena.take(100, Arena::Use::segment_list), ring);
  EXPECT_NE(arena.take(300, Arena::Use::ring), ring);
  EXPECT_EQ(arena.take(128, Arena::Use::ring), ring) << "100 bytes are a block of 128";
}

TEST_F(Arenas, RefuseWhatNoArenaHolds) {
  EXPECT_EQ(arena.take(UINT64_MAX, Arena::Use::ring), 0u);
  EXPECT_EQ(arena.take(std::uint64_t{1} << 50, Arena::Use::ring), 0u);
}

}  // namespace
}  // namespace orrery::nic
