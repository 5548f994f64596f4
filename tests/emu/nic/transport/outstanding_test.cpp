// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/transport/outstanding.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <set>

namespace orrery::nic {
namespace {

TEST(OutstandingTable, HoldsItsCapacityUnderDifferentNames) {
  OutstandingTable table(0);
  std::set<std::uint32_t> names;
  for (std::uint32_t i = 0; i < OutstandingTable::kCapacity; ++i) {
    const auto name = table.open();
    ASSERT_TRUE(name.has_value());
    EXPECT_TRUE(names.insert(*name).second);
  }
  EXPECT_FALSE(table.open().has_value());
  EXPECT_EQ(table.open_count(), OutstandingTable::kCapacity);
  table.close(*names.begin());
  EXPECT_TRUE(table.open().has_value());
}

TEST(OutstandingTable, NameOfAFlightThatEndedFindsNothingAlthoughItsPlaceIsUsedAgain) {
  OutstandingTable table(5);
  const std::uint32_t first = *table.open();
  ASSERT_NE(table.find(first), nullptr);
  table.close(first);
  EXPECT_EQ(table.find(first), nullptr);
  const std::uint32_t second = *table.open();
  EXPECT_NE(second, first);
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_NE(table.find(second), nullptr);
  EXPECT_EQ(table.find(UINT32_MAX), nullptr);
}

TEST(OutstandingTable, GenerationsWrapWithoutLosingTheFlight) {
  OutstandingTable table(UINT32_MAX);
  for (int i = 0; i < 5; ++i) {
    const std::uint32_t name = *table.open();
    ASSERT_NE(table.find(name), nullptr);
    table.close(name);
  }
}

TEST(OutstandingTable, ProcessesOfOneSlotDoNotShareNames) {
  OutstandingTable before(1);
  OutstandingTable after(70'000);
  EXPECT_EQ(after.find(*before.open()), nullptr);
  (void)after.open();
  EXPECT_EQ(after.find(*before.open()), nullptr);
}

TEST(OutstandingTable, NamesForAPeerAreItsOpenFlightsOnly) {
  box::World world(2, box::Path::frame);
  Peer peer(world[0].connect({1, 0}).value(), 0);
  Peer other(world[0].connect({1, 0}).value(), 0);
  OutstandingTable table(0);
  const std::uint32_t a = *table.open(), b = *table.open(), c = *table.open();
  table.find(a)->peer = table.find(b)->peer = &peer;
  table.find(c)->peer = &other;
  table.close(a);
  EXPECT_EQ(table.names_for(peer), std::vector<std::uint32_t>{b});
}

}  // namespace
}  // namespace orrery::nic
