// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/memory/regions.hpp"

#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace orrery::nic {
namespace {

struct OwnRegions : ::testing::Test {
  parts::Pair pair;
  parts::Node& own = pair.a;
  alignas(4096) std::array<std::byte, 3 * 4096> memory{};
  std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(memory.data() + offset);
  }
};

TEST_F(OwnRegions, AreReachableUntilTheyAreDeregistered) {
  const MemKey key = own.expose(memory.data(), 4096);
  EXPECT_EQ(own.regions.check_local(7, key, at(0), 4096, true), Errc::ok);
  EXPECT_EQ(own.regions.check_local(7, key, at(1), 4096, true), Errc::bounds);
  EXPECT_EQ(own.regions.check_local(8, key, at(0), 8, true), Errc::protection);
  MemKey other = key;
  other.process = 1;
  EXPECT_EQ(own.regions.check_local(7, other, at(0), 8, true), Errc::invalid_handle);
  EXPECT_TRUE(own.regions.deregister(key).ok());
  EXPECT_NE(own.regions.check_local(7, key, at(0), 8, true), Errc::ok);
  EXPECT_EQ(own.regions.deregister(key).code(), Errc::invalid_handle);
}

TEST_F(OwnRegions, ADeregistrationWaitsForFramesAndForResults) {
  const MemKey key = own.expose(memory.data(), 4096);
  EXPECT_EQ(own.removed, 0);
  ASSERT_TRUE(own.regions.deregister(key).ok());
  EXPECT_EQ(own.removed, 1);
  EXPECT_GE(own.awaited_frames, 1);
}

TEST_F(OwnRegions, AQueueIsForgottenOnlyAfterTheFramesThatMayNameIt) {
  EXPECT_TRUE(own.regions.forget_queue(5));
  EXPECT_EQ(own.awaited_frames, 1);
}

TEST_F(OwnRegions, OfNoBytesOrRoundTheEndOfMemoryAreRefused) {
  EXPECT_EQ(own.regions.register_region(*own.port, at(0), 0, 0, nullptr).code(), Errc::invalid_param);
  EXPECT_EQ(own.regions.register_region(*own.port, UINT64_MAX - 1, 16, 0, nullptr).code(),
            Errc::invalid_param);
  EXPECT_EQ(own.regions.register_segments(*own.port, {}, 0, nullptr).code(), Errc::invalid_param);
}

TEST_F(OwnRegions, GatherAndScatterGoAcrossSegments) {
  const Segment segments[] = {{at(100), 3}, {at(2000), 5}};
  const MemKey key = own.regions.register_segments(*own.port, segments, 0, nullptr).value();
  const char text[] = "abcdefgh";
  std::array<std::byte, 8> bytes;
  std::memcpy(bytes.data(), text, 8);
  ASSERT_TRUE(own.regions.scatter(key, 0, bytes));
  EXPECT_EQ(std::memcmp(&memory[100], "abc", 3), 0);
  EXPECT_EQ(std::memcmp(&memory[2000], "defgh", 5), 0);
  std::array<std::byte, 4> back{};
  ASSERT_TRUE(own.regions.gather(key, 2, back));
  EXPECT_EQ(std::memcmp(back.data(), "cdef", 4), 0);
  EXPECT_EQ(own.regions.piece(key, 4).bytes, 4u);
  ASSERT_TRUE(own.regions.deregister(key).ok());
  EXPECT_FALSE(own.regions.gather(key, 2, back));
  EXPECT_EQ(own.regions.piece(key, 0).at, nullptr);
}

TEST_F(OwnRegions, WhatPeersAskForIsMovedAndThenDirect) {
  const MemKey key = own.expose(memory.data(), 4096);
  EXPECT_EQ(own.regions.table().state_of(key.index), RegionState::by_frame);
  own.regions.adopt_wanted();
  EXPECT_TRUE(own.host.adopted.empty());
  own.host.view.service().adoption_wanted[key.index / 64].fetch_or(1ull << key.index % 64);
  own.regions.adopt_wanted();
  ASSERT_EQ(own.host.adopted.size(), 1u);
  EXPECT_EQ(own.host.adopted[0].first, at(0));
  EXPECT_EQ(own.regions.table().state_of(key.index), RegionState::direct);
}

// Another thread deregisters the same pages while a peer is stalled in them: they leave the memory file after
// the inspection has found them there.
TEST_F(OwnRegions, PagesThatAreCutOffBetweenInspectionAndEntryAreNotTakenForDirect) {
  own.host.direct = true;
  const MemKey stalled = own.expose(memory.data(), 4096);
  ASSERT_EQ(own.regions.table().state_of(stalled.index), RegionState::direct);
  own.host.view.service().sources[0].fetch_or(2);
  own.host.view.region(stalled.index).touched.store(1);
  auto& word = own.host.view.hazards(1).slot[0];
  word.store(hazard_word(stalled.index));
  own.host.inspected = [&] { EXPECT_TRUE(own.regions.deregister(stalled).ok()); };
  const MemKey key = own.expose(memory.data(), 4096);
  EXPECT_FALSE(own.host.direct) << "nothing was cut off";
  EXPECT_EQ(own.regions.table().state_of(key.index), RegionState::by_frame);
  word.store(0);
}

TEST_F(OwnRegions, PagesThatNoRegistrationHasAnyMoreAreNotMoved) {
  EXPECT_EQ(own.regions.adopt_range(at(0), at(4096), true).code(), Errc::timeout);
  EXPECT_TRUE(own.host.adopted.empty());
}

}  // namespace
}  // namespace orrery::nic
