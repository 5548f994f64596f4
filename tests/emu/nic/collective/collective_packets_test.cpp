// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/collective/collective_packets.hpp"

#include "emu/nic/nic.hpp"
#include "tests/emu/nic/collective/tree.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

// Trees that span NICs whose state is not mapped: everything between two nodes is a packet.
namespace orrery::nic {
namespace {

using box::kAdd;
using box::kAddDouble;
using box::Path;
using box::Tree;
using box::World;

Nic::Options by_packets() {
  Nic::Options options;
  options.collective_by_packets = true;
  return options;
}

struct PacketWorld : World {
  explicit PacketWorld(int nodes) : World(nodes, Path::frame, by_packets()) {}
};

// A leaf on each of two nodes. The root is node 0's; the other leaf is below it, or below a VCE of its own.
struct TwoPes {
  explicit TwoPes(bool own_vce = false) {
    const int root = tree.vce(0, -1);
    const int above = own_vce ? tree.vce(1, root) : root;
    tree.leaf(0, root);
    tree.leaf(1, above);
    configured = tree.configure();
  }
  PacketWorld world{2};
  Tree tree{world};
  bool configured = false;
};

// All processes look until nothing can change any more.
void settle(Tree& tree) {
  for (int i = 0; i < 40; ++i) tree.look();
}

TEST(CollectivePackets, SayAgainWhatTheyWereToldToSay) {
  const ce_packet::Join join{.domain = 7,
                             .vce = 11,
                             .child = 31,
                             .turn = 1234567,
                             .value = {.operand = {1, ~0ull},
                                       .reduction = 99,
                                       .command = kAdd,
                                       .two_operands = true,
                                       .exceptions = 5,
                                       .status = CeStatus::inconsistent},
                             .from = {true, 0x7abc, 13}};
  const ce_packet::Join again = ce_packet::join_of(ce_packet::header_of(join));
  EXPECT_EQ(again.domain, 7);
  EXPECT_EQ(again.vce, 11u);
  EXPECT_EQ(again.child, 31u);
  EXPECT_EQ(again.turn, 1234567u);
  EXPECT_EQ(again.value.operand[1], ~0ull);
  EXPECT_EQ(again.value.reduction, 99u);
  EXPECT_TRUE(again.value.two_operands);
  EXPECT_EQ(again.value.exceptions, 5);
  EXPECT_EQ(again.value.status, CeStatus::inconsistent);
  EXPECT_TRUE(again.from.is_vce);
  EXPECT_EQ(again.from.generation, 0x7abc);
  EXPECT_EQ(again.from.index, 13);
}

TEST(CollectivePackets, TwoPesGetTheSumWhoeverComesLast) {
  TwoPes pes;
  Tree& tree = pes.tree;
  ASSERT_TRUE(pes.configured);
  for (std::uint64_t round = 1; round < 50; ++round) {
    const int first = static_cast<int>(round % 2);
    ASSERT_EQ(tree.join(first, 7, kAdd, round, 10), Errc::ok);
    settle(tree);
    EXPECT_FALSE(tree.done(first)) << "one of two is not all";
    ASSERT_EQ(tree.join(1 - first, 7, kAdd, 2 * round, 20), Errc::ok);
    settle(tree);
    for (int leaf = 0; leaf < 2; ++leaf) {
      ASSERT_TRUE(tree.done(leaf)) << leaf;
      EXPECT_EQ(tree.status(leaf), CeStatus::ok);
      EXPECT_EQ(tree.result(leaf, 1), 3 * round);
      EXPECT_EQ(tree.result(leaf, 2), 30u);
      EXPECT_EQ(ce_result::reduction(tree.result(leaf, 0)), 7u);
    }
  }
}

// A program that waits for a result is there long before its service thread.
TEST(CollectivePackets, GoUpByThePollsOfTheProgramsAlone) {
  TwoPes pes(true);
  Tree& tree = pes.tree;
  ASSERT_TRUE(pes.configured);
  settle(tree);
  for (std::uint64_t round = 1; round < 20; ++round) {
    const int first = static_cast<int>(round % 2);
    ASSERT_EQ(tree.join(first, 7, kAdd, round, 10), Errc::ok);
    ASSERT_EQ(tree.join(1 - first, 7, kAdd, 2 * round, 20), Errc::ok);
    for (int i = 0; i < 20; ++i) pes.world[i % 2].nic().progress();
    for (int leaf = 0; leaf < 2; ++leaf) {
      ASSERT_TRUE(tree.done(leaf)) << leaf << " in round " << round;
      EXPECT_EQ(tree.result(leaf, 1), 3 * round);
    }
  }
}

// A PE that has its own result goes away to compute: what it owes others is sent by then.
TEST(CollectivePackets, GoDownByTheLookThatFindsTheResult) {
  TwoPes pes;
  Tree& tree = pes.tree;
  ASSERT_TRUE(pes.configured);
  settle(tree);
  for (std::uint64_t round = 1; round < 20; ++round) {
    ASSERT_EQ(tree.join(1, 7, kAdd, round, 10), Errc::ok);
    for (int i = 0; i < 4; ++i) pes.world[i % 2].nic().progress();
    ASSERT_EQ(tree.join(0, 7, kAdd, 2 * round, 20), Errc::ok);
    tree.check(0);
    ASSERT_TRUE(tree.done(0)) << "in round " << round;
    for (int i = 0; i < 4; ++i) pes.world[1].nic().progress();
    ASSERT_TRUE(tree.done(1)) << "in round " << round;
    EXPECT_EQ(tree.result(1, 1), 3 * round);
  }
}

// Three levels, more leaves than one VCE has children, over eight nodes, in every rounding mode: the bits are
// those of the tree order.
TEST(CollectivePackets, ATreeOfThreeLevelsAddsInTreeOrder) {
  for (const Rounding rounding : {Rounding::nearest, Rounding::up, Rounding::down, Rounding::zero}) {
    PacketWorld world(8);
    Tree tree(world);
    tree.modes = static_cast<std::uint32_t>(rounding);
    tree.grow_three_levels();
    ASSERT_TRUE(tree.configure());
    std::mt19937_64 random(77 + static_cast<unsigned>(rounding));
    for (int round = 0; round < 10; ++round) {
      std::vector<CeValue> values;
      for (int leaf = 0; leaf < tree.leaves(); ++leaf) {
        const double a = std::ldexp(static_cast<double>(random()), -static_cast<int>(random() % 64));
        values.push_back({.operand = {std::bit_cast<std::uint64_t>(a), std::bit_cast<std::uint64_t>(-a / 3)},
                          .reduction = 5,
                          .command = kAddDouble,
                          .two_operands = true});
      }
      for (const int leaf : tree.shuffled(random)) {
        ASSERT_EQ(tree.join(leaf, values[static_cast<std::size_t>(leaf)]), Errc::ok);
        if (random() % 4 == 0) tree.look();
      }
      settle(tree);
      const CeValue expected = tree.oracle(values, rounding);
      for (int leaf = 0; leaf < tree.leaves(); ++leaf) {
        ASSERT_TRUE(tree.done(leaf)) << leaf << " in round " << round;
        ASSERT_EQ(tree.status(leaf), CeStatus::ok);
        ASSERT_EQ(tree.result(leaf, 1), expected.operand[0]);
        ASSERT_EQ(tree.result(leaf, 2), expected.operand[1]);
      }
    }
  }
}

TEST(CollectivePackets, SeveralReductionsAreInFlightAtOnce) {
  PacketWorld world(3);
  Tree tree(world);
  tree.results_per_leaf = kCeLanes;
  const int root = tree.vce(0, -1);
  const int below = tree.vce(1, root);
  tree.leaf(0, root);
  tree.leaf(1, below);
  tree.leaf(2, below);
  ASSERT_TRUE(tree.configure());
  for (std::uint64_t round = 0; round < 10; ++round) {
    for (int leaf = 0; leaf < 3; ++leaf) {
      for (std::uint64_t i = 0; i < kCeLanes; ++i) {
        const CeValue value{
            .operand = {i + round, 0}, .reduction = 100 + i, .command = kAdd, .two_operands = true};
        ASSERT_EQ(tree.join(leaf, value, static_cast<int>(i)), Errc::ok);
      }
    }
    settle(tree);
    for (int leaf = 0; leaf < 3; ++leaf) {
      for (std::uint64_t i = 0; i < kCeLanes; ++i) {
        ASSERT_TRUE(tree.done(leaf, static_cast<int>(i)));
        ASSERT_EQ(tree.status(leaf, static_cast<int>(i)), CeStatus::ok);
        ASSERT_EQ(tree.result(leaf, 1, static_cast<int>(i)), 3 * (i + round));
      }
    }
  }
}

// The leaf's packet comes before the owner has set its VCE up, and before the parent's has.
TEST(CollectivePackets, AContributionMayComeBeforeTheTreeStands) {
  PacketWorld world(3);
  Tree tree(world);
  const int root = tree.vce(0, -1);
  const int below = tree.vce(1, root);
  tree.leaf(2, below);
  tree.leaf(0, root);
  for (int leaf = 0; leaf < 2; ++leaf) ASSERT_EQ(tree.join(leaf, 3, kAdd, 5, 0), Errc::ok);
  settle(tree);
  EXPECT_FALSE(tree.done(0));
  ASSERT_TRUE(tree.configure());
  settle(tree);
  for (int leaf = 0; leaf < 2; ++leaf) {
    ASSERT_TRUE(tree.done(leaf)) << leaf;
    EXPECT_EQ(tree.result(leaf, 1), 10u);
  }
}

struct Broken {
  const char* name;
  int victim;       // node
  bool after_join;  // it dies with its own contribution made, or before
};
class CollectivePacketsDeath : public ::testing::TestWithParam<Broken> {};

// Root on node 0, interior VCE on node 1, leaves everywhere. Every survivor gets an error, and none hangs.
TEST_P(CollectivePacketsDeath, EndsTheReductionInErrorForEverybodyLeft) {
  const Broken& b = GetParam();
  PacketWorld world(4);
  Tree tree(world);
  const int root = tree.vce(0, -1);
  const int below = tree.vce(1, root);
  for (const int node : {0, 3}) tree.leaf(node, root);
  for (const int node : {1, 2}) tree.leaf(node, below);
  const std::vector<int> node_of{0, 3, 1, 2};
  ASSERT_TRUE(tree.configure());
  // One good round first.
  for (int leaf = 0; leaf < 4; ++leaf) ASSERT_EQ(tree.join(leaf, 1, kAdd, 1, 0), Errc::ok);
  settle(tree);
  for (int leaf = 0; leaf < 4; ++leaf) ASSERT_EQ(tree.result(leaf, 1), 4u);

  for (int leaf = 0; leaf < 4; ++leaf) {
    const bool missing = node_of[static_cast<std::size_t>(leaf)] == b.victim && !b.after_join;
    // Leaf 3 stays out: nothing can be complete when the victim dies.
    if (leaf != 3 && !missing) {
      ASSERT_EQ(tree.join(leaf, 2, kAdd, 1, 0), Errc::ok);
    }
  }
  tree.look();
  world.kill(b.victim);
  if (b.victim != 2) {
    const Errc joined = tree.join(3, 2, kAdd, 1, 0);
    EXPECT_TRUE(joined == Errc::ok || joined == Errc::unreachable);
  }
  settle(tree);
  for (int leaf = 0; leaf < 4; ++leaf) {
    const int node = node_of[static_cast<std::size_t>(leaf)];
    if (node == b.victim) continue;
    if (leaf == 3 && b.victim == 2) continue;
    ASSERT_TRUE(tree.done(leaf)) << "leaf " << leaf;
    if (b.victim == 3 && b.after_join) continue;  // all that it owed was there: either end is right
    EXPECT_EQ(tree.status(leaf), CeStatus::unreachable) << "leaf " << leaf;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, CollectivePacketsDeath,
                         ::testing::Values(Broken{"InteriorOwner", 1, true},
                                           Broken{"InteriorOwnerBeforeItsOwnJoin", 1, false},
                                           Broken{"RootOwner", 0, true}, Broken{"LeafBelow", 2, false},
                                           Broken{"LeafOfTheRoot", 3, false},
                                           Broken{"LeafOfTheRootAfterItsJoin", 3, true}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CollectivePackets, AChildThatThereIsNoneOfIsRefused) {
  PacketWorld world(2);
  Tree tree(world);
  const int root = tree.vce(0, -1);
  tree.leaf(0, root);
  tree.leaf(1, root);
  ASSERT_TRUE(tree.configure());
  const int stranger = tree.leaf_as(1, root, 9);
  ASSERT_EQ(tree.join(stranger, 1, kAdd, 1, 0), Errc::ok);
  settle(tree);
  ASSERT_TRUE(tree.done(stranger));
  EXPECT_EQ(tree.status(stranger), CeStatus::child_invalid);
}

TEST(CollectivePackets, AVceThatIsGoneRefuses) {
  PacketWorld world(2);
  Tree tree(world);
  const int root = tree.vce(0, -1);
  tree.leaf(0, root);
  const int far = tree.leaf(1, root);
  ASSERT_TRUE(tree.configure());
  ASSERT_EQ(tree.join(far, 1, kAdd, 1, 0), Errc::ok);
  settle(tree);
  EXPECT_FALSE(tree.done(far));
  tree.destroy(root);
  settle(tree);
  ASSERT_TRUE(tree.done(far));
  EXPECT_EQ(tree.status(far), CeStatus::unexpected);
  ASSERT_EQ(tree.join(far, 2, kAdd, 1, 0), Errc::ok);
  settle(tree);
  EXPECT_EQ(tree.status(far), CeStatus::unexpected);
}

// Whatever a peer sends: it is refused or ignored, and the tree goes on.
TEST(CollectivePackets, NonsenseDoesNoHarm) {
  PacketWorld world(3);
  Tree tree(world);
  const int root = tree.vce(0, -1);
  tree.leaf(0, root);
  tree.leaf(1, root);
  ASSERT_TRUE(tree.configure());
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 20; ++i) {
      wire::PacketHeader header;
      header.verb = random() % 2 == 0 ? wire::Verb::join : wire::Verb::release;
      header.source = 2;  // a process that has no part in the tree
      header.domain = static_cast<std::uint16_t>(random() % 4 == 0 ? random() : 7);
      header.key_index = static_cast<std::uint16_t>(random() % 3 == 0 ? random() : random() % 17);
      header.key_generation = static_cast<std::uint16_t>(random() % 3 == 0 ? random() : 2 + random() % 31);
      header.address = random() % 2 == 0 ? random() % 8 : random();
      header.match_bits = random() % 2 == 0 ? random() : random() % 64;
      header.operand[0] = random();
      header.event_data = random() % 3 == 0 ? random() : 7;
      header.aux = random() % 2 == 0 ? random() : kAdd;
      (void)world[static_cast<int>(random() % 2)].nic().collective().take(header);
    }
    for (int leaf = 0; leaf < 2; ++leaf) ASSERT_EQ(tree.join(leaf, 7, kAdd, 1, 0), Errc::ok);
    settle(tree);
    for (int leaf = 0; leaf < 2; ++leaf) {
      ASSERT_TRUE(tree.done(leaf));
      ASSERT_EQ(tree.status(leaf), CeStatus::ok);
      ASSERT_EQ(tree.result(leaf, 1), 2u);
    }
  }
}

TEST(CollectivePackets, ALostContributionBreaksTheTree) {
  std::string why;
  for (const Path path : {Path::frame, Path::direct}) {
    Nic::Options options;
    options.faults = parse_faults("drop=1", &why).value();
    options.collective_by_packets = path == Path::frame;
    World world(2, path, options);
    Tree tree(world);
    const int root = tree.vce(0, -1);
    tree.leaf(0, root);
    tree.leaf(1, root);
    ASSERT_TRUE(tree.configure());
    ASSERT_EQ(tree.join(0, 4, kAdd, 1, 0), Errc::ok);  // by the engine itself, past the faults
    CompletionQueue* const queue = world[1].nic().create_queue(8, 0).value();
    const auto endpoint = world.endpoint(1, 0, queue);
    CeEdge edge{.set = true, .is_vce = true, .nic_address = 0, .id = tree.id(root), .child = 1};
    std::uint64_t result[3] = {};
    Request request;
    request.flags = kGlobalEvent;
    ASSERT_EQ(world[1].nic().collective().post(
                  *endpoint, edge, request,
                  {.value = {.operand = {1, 0}, .reduction = 4, .command = kAdd}, .result = result}),
              Errc::ok);
    Event event;
    ASSERT_EQ(world[1].nic().poll(*queue, &event), Errc::ok);
    EXPECT_EQ(event.status, Errc::timeout);
    settle(tree);
    ASSERT_TRUE(tree.done(0));
    EXPECT_EQ(tree.status(0), CeStatus::unreachable);
    EXPECT_EQ(static_cast<CeStatus>(ce_result::status(result[0])), CeStatus::unreachable);
  }
}

}  // namespace
}  // namespace orrery::nic
