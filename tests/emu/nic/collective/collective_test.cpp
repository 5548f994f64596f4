// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/nic.hpp"

#include "tests/emu/nic/collective/flat_tree.hpp"
#include "tests/emu/nic/collective/tree.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

using box::FlatTreeOfTwo;
using box::kAdd;
using box::kAddDouble;
using box::Path;
using box::Tree;
using box::World;

TEST_F(FlatTreeOfTwo, TwoPesGetTheSumWhoeverComesLast) {
  for (std::uint64_t round = 1; round < 50; ++round) {
    const int first = static_cast<int>(round % 2);
    ASSERT_EQ(tree.join(first, 7, kAdd, round, 10), Errc::ok);
    tree.look();
    EXPECT_FALSE(tree.done(first)) << "one of two is not all";
    ASSERT_EQ(tree.join(1 - first, 7, kAdd, 2 * round, 20), Errc::ok);
    tree.look();
    for (int leaf = 0; leaf < 2; ++leaf) {
      ASSERT_TRUE(tree.done(leaf));
      EXPECT_EQ(tree.status(leaf), CeStatus::ok);
      EXPECT_EQ(tree.result(leaf, 1), 3 * round);
      EXPECT_EQ(tree.result(leaf, 2), 30u);
      EXPECT_EQ(ce_result::reduction(tree.result(leaf, 0)), 7u);
    }
  }
}

TEST_F(FlatTreeOfTwo, APeThatNeverPollsIsServedByItsServiceThread) {
  ASSERT_EQ(tree.join(0, 1, kAdd, 1, 0), Errc::ok);
  EXPECT_TRUE(world[0].nic().collective().heartbeat()) << "it wants to be called while a result is due";
  ASSERT_EQ(tree.join(1, 1, kAdd, 1, 0), Errc::ok);
  world.serve_all();
  EXPECT_TRUE(tree.done(0));
  EXPECT_TRUE(tree.done(1));
}

// Three levels, more leaves than one VCE has children, over eight processes; the sum of doubles is the
// oracle's, which adds in tree order, bit for bit.
TEST(CollectiveEngine, ATreeOfThreeLevelsAddsInTreeOrderInEveryRoundingMode) {
  for (const Rounding rounding : {Rounding::nearest, Rounding::up, Rounding::down, Rounding::zero}) {
    World world(8, Path::direct);
    Tree tree(world);
    tree.modes = static_cast<std::uint32_t>(rounding);
    tree.grow_three_levels();
    ASSERT_TRUE(tree.configure());
    ASSERT_EQ(tree.leaves(), 43);
    std::mt19937_64 random(77 + static_cast<unsigned>(rounding));
    for (int round = 0; round < 20; ++round) {
      std::vector<CeValue> values;
      for (int leaf = 0; leaf < tree.leaves(); ++leaf) {
        const double a = std::ldexp(static_cast<double>(random()), -static_cast<int>(random() % 64));
        const double b = -std::ldexp(static_cast<double>(random()), -static_cast<int>(random() % 40));
        values.push_back({.operand = {std::bit_cast<std::uint64_t>(a), std::bit_cast<std::uint64_t>(b)},
                          .reduction = 5,
                          .command = kAddDouble,
                          .two_operands = true});
      }
      const auto order = tree.shuffled(random);
      for (const int leaf : order) {
        ASSERT_EQ(tree.join(leaf, values[static_cast<std::size_t>(leaf)]), Errc::ok);
        if (random() % 4 == 0) tree.look();
      }
      tree.look();
      tree.look();
      const CeValue expected = tree.oracle(values, rounding);
      for (int leaf = 0; leaf < tree.leaves(); ++leaf) {
        ASSERT_TRUE(tree.done(leaf)) << leaf;
        ASSERT_EQ(tree.status(leaf), CeStatus::ok);
        ASSERT_EQ(tree.result(leaf, 1), expected.operand[0]);
        ASSERT_EQ(tree.result(leaf, 2), expected.operand[1]);
        ASSERT_EQ(ce_result::exceptions(tree.result(leaf, 0)), expected.exceptions);
      }
    }
  }
}

TEST(CollectiveEngine, SeveralReductionsAreInFlightAtOnceInAnyOrder) {
  World world(3, Path::direct);
  Tree tree(world);
  tree.results_per_leaf = kCeLanes;
  const int root = tree.vce(0, -1);
  for (int i = 0; i < 3; ++i) tree.leaf(i, root);
  ASSERT_TRUE(tree.configure());
  std::mt19937_64 random(3);
  for (int round = 0; round < 30; ++round) {
    for (int leaf = 0; leaf < 3; ++leaf) {
      std::vector<std::uint64_t> ids(kCeLanes);
      for (std::uint64_t i = 0; i < kCeLanes; ++i) ids[i] = 100 + i;
      std::shuffle(ids.begin(), ids.end(), random);
      for (const std::uint64_t id : ids) {
        ASSERT_EQ(tree.join(leaf, id, kAdd, id * 10 + static_cast<std::uint64_t>(leaf), 0,
                            static_cast<int>(id - 100)),
                  Errc::ok);
      }
      EXPECT_EQ(tree.join(leaf, 100 + kCeLanes, kAdd, 1, 0, 0), Errc::no_resource)
          << "one more in a lane that is in use";
    }
    tree.look();
    for (int leaf = 0; leaf < 3; ++leaf) {
      for (int i = 0; i < static_cast<int>(kCeLanes); ++i) {
        ASSERT_TRUE(tree.done(leaf, i));
        EXPECT_EQ(tree.result(leaf, 1, i), static_cast<std::uint64_t>(100 + i) * 30 + 3);
      }
    }
  }
}

TEST(CollectiveEngine, WhatCannotBeAReductionEndsInTheErrorThatTheDeviceHasForIt) {
  World world(3, Path::direct);
  Tree tree(world);
  const int root = tree.vce(0, -1);
  for (int i = 0; i < 3; ++i) tree.leaf(i, root);
  ASSERT_TRUE(tree.configure());
  const auto all_end_in = [&](CeStatus status) {
    tree.look();
    for (int leaf = 0; leaf < 3; ++leaf) {
      ASSERT_TRUE(tree.done(leaf));
      EXPECT_EQ(tree.status(leaf), status);
      EXPECT_EQ(tree.result(leaf, 1), 0u);
    }
  };
  ASSERT_EQ(tree.join(0, 1, kAdd, 1, 0), Errc::ok);
  ASSERT_EQ(tree.join(1, 1 + kCeLanes, kAdd, 1, 0), Errc::ok);
  ASSERT_EQ(tree.join(2, 1, kAdd, 1, 0), Errc::ok);
  all_end_in(CeStatus::id_mismatch);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(tree.join(i, 2, i == 1 ? 0x14 : kAdd, 1, 0), Errc::ok);
  all_end_in(CeStatus::inconsistent);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(tree.join(i, 3, kAdd, 1, 0), Errc::ok);
  tree.look();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(tree.status(i), CeStatus::ok) << "what comes after is not harmed";
    EXPECT_EQ(tree.result(i, 1), 3u);
  }
}

TEST(CollectiveEngine, AJoinThatIsNotWelcomeIsRefusedAndTheOthersGoOn) {
  World world(3, Path::direct);
  Tree tree(world);
  const int root = tree.vce(0, -1);
  tree.leaf(0, root);
  tree.leaf(1, root);
  ASSERT_TRUE(tree.configure());
  const int stranger = tree.leaf(2, root);  // not configured
  EXPECT_EQ(tree.join(stranger, 1, kAdd, 1, 0), Errc::invalid_param);
  EXPECT_EQ(tree.status(stranger), CeStatus::child_invalid);
  ASSERT_EQ(tree.join(0, 1, kAdd, 5, 0), Errc::ok);
  const int again = tree.leaf_as(0, root, 0);
  EXPECT_EQ(tree.join(again, 1, kAdd, 1, 0), Errc::duplicate);
  EXPECT_EQ(tree.status(again), CeStatus::duplicate);
  const int usurper = tree.leaf_as(2, root, 1);
  ASSERT_EQ(tree.join(1, 1, kAdd, 6, 0), Errc::ok);
  EXPECT_EQ(tree.join(usurper, 1, kAdd, 1, 0), Errc::duplicate);
  EXPECT_EQ(tree.status(usurper), CeStatus::duplicate);
  tree.look();
  EXPECT_EQ(tree.result(0, 1), 11u);
  EXPECT_EQ(tree.result(1, 1), 11u);
  Port* const other_domain = world[1].nic().open_port(8, 1, 1);
  EXPECT_EQ(tree.join_through(*other_domain, 1), Errc::permission);
  EXPECT_EQ(tree.status(1), CeStatus::protection);
  world[1].nic().close_port(other_domain);
}

TEST_F(FlatTreeOfTwo, AVceThatIsDestroyedEndsWhatIsUnderWayAtIt) {
  ASSERT_EQ(tree.join(1, 1, kAdd, 1, 0), Errc::ok);
  tree.destroy(root);
  tree.look();
  ASSERT_TRUE(tree.done(1));
  EXPECT_EQ(tree.status(1), CeStatus::unexpected);
  EXPECT_EQ(tree.join(0, 1, kAdd, 1, 0), Errc::invalid_handle);
  // Its place is used again, and nothing is left of what was there.
  for (std::uint32_t i = 0; i < kVces; ++i) {
    Tree next(world);
    const int vce = next.vce(0, -1);
    next.leaf(0, vce);
    next.leaf(1, vce);
    ASSERT_TRUE(next.configure());
    ASSERT_EQ(next.join(0, 1, kAdd, 1, 0), Errc::ok);
    next.look();
    ASSERT_FALSE(next.done(0));
    ASSERT_EQ(next.join(1, 1, kAdd, 2, 0), Errc::ok);
    next.look();
    ASSERT_TRUE(next.done(0));
    EXPECT_EQ(next.result(0, 1), 3u);
    next.destroy(vce);
  }
}

// A process in the middle of the tree dies: every waiting process hears of it, at every level.
TEST(CollectiveEngine, TheDeathOfAnyProcessEndsAReductionInErrorEverywhere) {
  for (int victim = 0; victim < 7; ++victim) {
    World world(7, Path::direct);
    Tree tree(world);
    const int root = tree.vce(0, -1);
    const int left = tree.vce(1, root);
    const int right = tree.vce(2, root);
    tree.leaf(3, left);
    tree.leaf(4, left);
    tree.leaf(5, right);
    tree.leaf(6, right);
    ASSERT_TRUE(tree.configure());
    // One reduction that goes well first, so that all are known to all.
    for (int leaf = 0; leaf < 4; ++leaf) ASSERT_EQ(tree.join(leaf, 1, kAdd, 1, 0), Errc::ok);
    tree.look();
    tree.look();
    for (int leaf = 0; leaf < 4; ++leaf) ASSERT_TRUE(tree.done(leaf));
    for (int leaf = 0; leaf < 4; ++leaf) {
      if (3 + leaf == victim || (victim < 3 && leaf == 0)) continue;
      ASSERT_EQ(tree.join(leaf, 1, kAdd, 1, 0), Errc::ok);
    }
    world.kill(victim);
    for (int i = 0; i < 5; ++i) tree.look();
    for (int leaf = 0; leaf < 4; ++leaf) {
      if (3 + leaf == victim || (victim < 3 && leaf == 0)) continue;
      ASSERT_TRUE(tree.done(leaf)) << "victim " << victim << ", leaf " << leaf;
      EXPECT_EQ(tree.status(leaf), CeStatus::unreachable);
    }
  }
}

TEST(CollectiveEngine, WhatWasCompleteWhenSomebodyDiedIsComplete) {
  World world(3, Path::direct);
  Tree tree(world);
  const int root = tree.vce(0, -1);
  for (int i = 0; i < 3; ++i) tree.leaf(i, root);
  ASSERT_TRUE(tree.configure());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(tree.join(i, 4, kAdd, 1, 0), Errc::ok);
  world.kill(2);
  tree.look();
  EXPECT_EQ(tree.status(0), CeStatus::ok);
  EXPECT_EQ(tree.result(1, 1), 3u);
}

TEST(CollectiveEngine, AVceTellsItsQueueOfWhatIsCompleteAndOfWhatFailed) {
  World world(2, Path::direct);
  Tree tree(world);
  tree.modes = kCeOnComplete | kCeOnError;
  tree.queue = world[0].nic().create_queue(16, 0).value();
  const int root = tree.vce(0, -1);
  tree.leaf(1, root);
  tree.leaf(1, root);
  ASSERT_TRUE(tree.configure());
  Event event;
  for (std::uint64_t round = 1; round < 6; ++round) {
    ASSERT_EQ(tree.join(0, round, kAdd, 1, 0), Errc::ok);
    world.serve_all();
    ASSERT_EQ(tree.queue->take(&event), Errc::not_done);
    ASSERT_EQ(tree.join(1, round, kAdd, 1, 0), Errc::ok);
    world.serve_all();
    ASSERT_EQ(tree.queue->take(&event), Errc::ok);
    EXPECT_EQ(event.kind, EventKind::collective);
    EXPECT_EQ(event.data, round << 14 | tree.id(root));
    ASSERT_EQ(tree.queue->take(&event), Errc::not_done);
  }
  ASSERT_EQ(tree.join(0, 9, kAdd, 1, 0), Errc::ok);
  ASSERT_EQ(tree.join(1, 9, 0x14, 1, 0), Errc::ok);
  world.serve_all();
  ASSERT_EQ(tree.queue->take(&event), Errc::ok);
  EXPECT_EQ(event.data >> 48, static_cast<std::uint64_t>(CeStatus::inconsistent));
}

}  // namespace
}  // namespace orrery::nic
