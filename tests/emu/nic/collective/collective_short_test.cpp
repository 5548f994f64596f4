// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Reductions by the collective engine that take the fast path (collective_short.cpp), and which threads may
// look for them.
#include "emu/nic/collective/collective_engine.hpp"

#include "tests/emu/nic/collective/flat_tree.hpp"
#include "tests/emu/nic/collective/tree.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

using box::FlatTreeOfTwo;
using box::kAdd;
using box::Path;
using box::Tree;
using box::World;

CeValue one(std::uint64_t reduction, std::uint64_t operand, std::uint8_t command = kAdd) {
  return {.operand = {operand, 0}, .reduction = reduction, .command = command};
}

TEST(CollectiveEngine, WhatGoesTheShortWayComesToTheSame) {
  World world(3, Path::direct);
  Tree tree(world);
  const int root = tree.vce(1, -1);
  for (int i = 0; i < 7; ++i) tree.leaf(i % 3, root);
  ASSERT_TRUE(tree.configure());
  std::mt19937_64 random(5);
  constexpr std::array<std::uint8_t, 7> kCommands{0x01, 0x03, 0x05, 0x15, 0x1d, 0x11, 0x14};
  for (int round = 0; round < 300; ++round) {
    const std::uint8_t command = kCommands[random() % kCommands.size()];
    const bool two = random() % 4 == 0;
    // Two lanes, each by two ids.
    const std::uint64_t id = random() % 2 + kCeLanes * (random() % 2);
    std::vector<CeValue> values;
    for (int leaf = 0; leaf < tree.leaves(); ++leaf) {
      CeValue value{
          .operand = {random(), random()}, .reduction = id, .command = command, .two_operands = two};
      if (command == 0x1d) {
        value.operand[0] =
            std::bit_cast<std::uint64_t>(std::ldexp(1.0 + leaf, static_cast<int>(random() % 90)));
        value.operand[1] = value.operand[0] ^ 3;
      }
      values.push_back(value);
    }
    for (const int leaf : tree.shuffled(random)) {
      tree.usual = random() % 8 != 0;
      ASSERT_EQ(tree.join(leaf, values[static_cast<std::size_t>(leaf)]), Errc::ok);
      for (int i = 0; i < tree.leaves(); ++i) {
        if (random() % 4 == 0) tree.check(i);
      }
    }
    for (int leaf = 0; leaf < tree.leaves(); ++leaf) tree.check(leaf);
    const CeValue expected = tree.oracle(values, Rounding::nearest);
    for (int leaf = 0; leaf < tree.leaves(); ++leaf) {
      if (!tree.done(leaf)) tree.look();  // one that was looked at in vain just before
      ASSERT_TRUE(tree.done(leaf)) << round << ' ' << leaf;
      ASSERT_EQ(tree.status(leaf), CeStatus::ok);
      ASSERT_EQ(tree.result(leaf, 1), expected.operand[0]) << round << ' ' << leaf;
      ASSERT_EQ(tree.result(leaf, 2), expected.operand[1]) << round << ' ' << leaf;
    }
  }
  EXPECT_GT(tree.short_joins, 1500);
}

TEST_F(FlatTreeOfTwo, TheShortWayEndsWhereTheVceIsSetUpAnew) {
  tree.usual = true;
  for (std::uint64_t round = 1; round < 4; ++round) {
    ASSERT_TRUE(tree.configure());
    for (std::uint64_t turn = 1; turn < 4; ++turn) {
      tree.short_joins = 0;
      for (const int leaf : {0, 1}) ASSERT_EQ(tree.join(leaf, one(5, round * turn)), Errc::ok);
      EXPECT_EQ(tree.short_joins, turn == 1 ? 0 : 2);
      for (const int leaf : {0, 1}) {
        tree.check(leaf);
        ASSERT_EQ(tree.result(leaf, 1), 2 * round * turn);
      }
    }
  }
  tree.destroy(root);
  EXPECT_NE(tree.join(1, one(5, 1)), Errc::ok);
  EXPECT_EQ(tree.status(1), CeStatus::unexpected);
}

TEST_F(FlatTreeOfTwo, TheShortWayRefusesASecondContributionAsTheLongOneDoes) {
  const int twin = tree.leaf_as(1, root, 1);  // another endpoint of the same child
  ASSERT_TRUE(tree.configure());
  tree.usual = true;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(tree.join(0, one(1, 1)), Errc::ok);
    ASSERT_EQ(tree.join(1, one(1, 2)), Errc::ok);
    EXPECT_EQ(tree.join(twin, one(1 + kCeLanes, 4)), Errc::no_resource) << "not looked at yet";
    tree.look();
    EXPECT_EQ(tree.result(1, 1), 3u);
    ASSERT_EQ(tree.join(twin, one(1 + kCeLanes, 4)), Errc::ok);
    EXPECT_EQ(tree.join(1, one(1 + 2 * kCeLanes, 16)), Errc::no_resource);
    EXPECT_EQ(tree.join(1, one(1 + kCeLanes, 16)), Errc::duplicate);
    EXPECT_EQ(tree.status(1), CeStatus::duplicate);
    ASSERT_EQ(tree.join(0, one(1 + kCeLanes, 8)), Errc::ok);
    tree.look();
    EXPECT_EQ(tree.result(0, 1), 12u);
    EXPECT_EQ(tree.result(twin, 1), 12u);
  }
}

TEST_F(FlatTreeOfTwo, AResultWhoseMemoryWasDeregisteredIsNotWritten) {
  tree.usual = true;
  for (const int leaf : {0, 1}) ASSERT_EQ(tree.join(leaf, one(1, 1)), Errc::ok);
  tree.look();
  for (const int leaf : {0, 1}) ASSERT_EQ(tree.join(leaf, one(1, 1)), Errc::ok);
  ASSERT_EQ(tree.short_joins, 2);
  ASSERT_TRUE(tree.deregister(0).ok());
  for (const int leaf : {0, 1}) tree.check(leaf);
  tree.look();
  EXPECT_FALSE(tree.done(0));
  EXPECT_TRUE(tree.done(1));
}

// Rounds in which leaf 0 polls until it has what it waits for; whether each had its sum, once.
bool sums_of_rounds(Tree& tree, std::uint64_t rounds) {
  bool all = true;
  for (std::uint64_t round = 1; round <= rounds && all; ++round) {
    for (const int leaf : {0, 1}) all = tree.join(leaf, one(3, round)) == Errc::ok && all;
    tree.check(1);
    for (int i = 0; i < 1'000'000 && !tree.done_now(0); ++i) tree.check(0);
    all = all && tree.done_now(0) && tree.done_now(1) && tree.result(0, 1) == 2 * round;
  }
  return all;
}

// The client polls while its service thread looks for the same results. Property: every round ends with its
// sum, once.
TEST_F(FlatTreeOfTwo, AClientAndItsServiceThreadDoNotDisturbEachOther) {
  tree.usual = true;
  std::atomic<bool> stop{false};
  std::thread service([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      world[0].nic().serve();
      std::this_thread::yield();
    }
  });
  const bool all = sums_of_rounds(tree, 3000);
  stop.store(true);
  service.join();
  EXPECT_TRUE(all);
  EXPECT_GT(tree.short_joins, 5000);
}

// Another thread of the client looks for the results that the first one waits for: for them, or for whatever
// there is. Property: every round ends with its sum, once.
TEST(CollectiveEngine, AnyThreadMayLookForAResult) {
  for (int run = 0; run < 20; ++run) {
    World world(2, Path::direct);
    Tree tree(world);
    const int root = tree.vce(0, -1);
    tree.leaf(0, root);
    tree.leaf(1, root);
    ASSERT_TRUE(tree.configure());
    tree.usual = true;
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        if (run % 2 == 0)
          tree.check(0);
        else
          world[0].nic().progress();
        std::this_thread::yield();
      }
    });
    const bool all = sums_of_rounds(tree, 200);
    stop.store(true);
    other.join();
    EXPECT_TRUE(all);
  }
}

// What is posted by one thread and looked for by others alone: the looks of progress() leave it to its own
// thread at first.
TEST_F(FlatTreeOfTwo, AResultThatItsThreadDoesNotLookForIsFoundByTheOthers) {
  tree.usual = true;
  for (std::uint64_t round = 1; round <= 5; ++round) {
    for (const int leaf : {0, 1}) ASSERT_EQ(tree.join(leaf, one(3, round)), Errc::ok);
    tree.check(1);
    ASSERT_TRUE(tree.done_now(1));
    std::thread([&] {
      if (round == 3) {
        world[0].nic().serve();
        world[0].nic().serve();
      }
      for (int i = 0; i < 1000 && !tree.done_now(0); ++i) world[0].nic().progress();
    }).join();
    ASSERT_TRUE(tree.done_now(0)) << "round " << round;
    EXPECT_EQ(tree.result(0, 1), 2 * round);
  }
}

// A process may be a child of a VCE twice under one number, as a PE and by a VCE of its own. Others may write
// into the slot of such a child, so that the turn of its last contribution does not say which is next.
TEST(CollectiveEngine, AChildThatIsAVceAsWellGoesTheLongWay) {
  World world(2, Path::direct);
  Tree tree(world);
  const int root = tree.vce(0, -1);
  const int low = tree.vce(0, root);
  const int beside = tree.leaf(1, root);
  tree.leaf(0, low);
  const int as_the_vce = tree.leaf_as(0, root, 0);
  ASSERT_TRUE(tree.configure());
  tree.usual = true;
  for (std::uint64_t round = 1; round <= 4; ++round) {
    for (const int leaf : {as_the_vce, beside}) ASSERT_EQ(tree.join(leaf, one(3, round)), Errc::ok);
    for (int i = 0; i < 5; ++i) tree.look();
    ASSERT_TRUE(tree.done(as_the_vce) && tree.done(beside)) << "round " << round;
    EXPECT_EQ(tree.result(beside, 1), 2 * round);
  }
  EXPECT_EQ(tree.short_joins, 3);  // all of them the other one's
}

}  // namespace
}  // namespace orrery::nic
