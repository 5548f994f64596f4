// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/transport/peers.hpp"

#include "emu/nic/state/hazard.hpp"
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

// A library of ours may reach a process before the NIC does, and have announced an access by then.
TEST_F(Peers, AreLookedForFromTheFirstConnectionOnAndKeepWhatWasAnnounced) {
  const NicView& there = world[1].nic().view();
  const auto looks_for_us = [&] { return (there.service().sources[0].load() & 1) != 0; };
  ASSERT_FALSE(looks_for_us());
  Peer earlier(world[0].connect(world[1].name()).value(), 0);
  EXPECT_TRUE(looks_for_us());
  earlier.hazard(3) = hazard_word(7);
  ASSERT_TRUE(peers.connect(world[1].name()).ok());
  EXPECT_EQ(earlier.hazard(3), hazard_word(7));
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
