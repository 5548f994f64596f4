// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/transport/peers.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

namespace orrery::nic {
namespace {

struct Peers : ::testing::Test {
  box::World world{3, box::Path::direct};
  PeerTable peers{world[0], 0};
  std::uint32_t address(int node) { return world[node].port().nic_address; }
};

TEST_F(Peers, AreConnectedOnceAndFoundBySlotAndBehindTheirAddress) {
  EXPECT_EQ(peers.find(1), nullptr);
  Peer* const one = peers.connect(world[1].name()).value();
  EXPECT_EQ(peers.connect(world[1].name()).value(), one);
  EXPECT_EQ(peers.find(1), one);
  Peer* found = nullptr;
  EXPECT_EQ(peers.behind(address(1), 1, &found), Errc::ok);
  EXPECT_EQ(found, one);
  EXPECT_EQ(peers.behind(address(2), 2, &found), Errc::ok);
  EXPECT_NE(found, one);
}

TEST_F(Peers, OfNoSlotOrOfAnotherAddressAreRefused) {
  Peer* found = nullptr;
  EXPECT_EQ(peers.behind(address(1), kMaxProcesses, &found), Errc::invalid_handle);
  EXPECT_NE(peers.behind(address(1) + 77, 1, &found), Errc::ok);
  EXPECT_EQ(found, nullptr);
}

TEST_F(Peers, OfAnEarlierProcessInASlotStayBesideTheLaterOne) {
  Peer* const before = peers.connect(world[1].name()).value();
  const ProcessName dead = world[1].name();
  world.revive(1);
  Peer* const after = peers.connect(world[1].name()).value();
  EXPECT_NE(before, after);
  EXPECT_EQ(peers.find(1), after);
  EXPECT_EQ(peers.of(dead), std::vector{before});
  EXPECT_EQ(peers.of(world[1].name()), std::vector{after});
}

}  // namespace
}  // namespace orrery::nic
