// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/collective/tree.hpp"
#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/stepper.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <cstdio>

// A PE that dies after any instruction of a reduction: of its own contribution, and of the look that computes
// the result, hands it to the parent VCE and looks there. The victim is a forked child that plays slot 0.
// ORRERY_LONG_TESTS=1 kills after every instruction.
namespace orrery::nic {
namespace {

using box::Path;
using box::Tree;
using box::World;
using test::Stepper;

constexpr std::uint8_t kAdd = 0x15;
constexpr int kRuns = 50;

// Which process dies, and how contributions and results travel.
struct Shape {
  int low_owner = 1;        // of the VCE between the victim and the root
  bool by_packets = false;  // else by slots that are mapped
  bool flat = false;        // all below the root, and by the fast path
};

// Root at node 1 with a leaf of node 2; below it a VCE whose leaves are the victim, of node 0, and one of
// node 2.
struct Scene {
  explicit Scene(const Shape& shape)
      : world(3, shape.by_packets ? Path::frame : Path::direct, options(shape), MAP_SHARED,
              wire::kLaneControlBytes + wire::kMinLaneDataBytes),
        tree(world) {
    const int root = tree.vce(1, -1);
    const int low = shape.flat ? root : tree.vce(shape.low_owner, root);
    victim = tree.leaf(0, low);
    beside = tree.leaf(2, low);
    above = tree.leaf(2, root);
    EXPECT_TRUE(tree.configure());
    // Every process knows the way by now.
    for (const int leaf : {victim, beside, above}) EXPECT_EQ(tree.join(leaf, 3, kAdd, 1, 0), Errc::ok);
    for (int i = 0; i < 10; ++i) tree.look();
    for (const int leaf : {victim, beside, above}) EXPECT_TRUE(tree.done(leaf));
    tree.usual = shape.flat;
    EXPECT_EQ(tree.join(beside, one(10)), Errc::ok);
    EXPECT_EQ(tree.join(above, one(100)), Errc::ok);
    EXPECT_EQ(tree.short_joins, shape.flat ? 2 : 0);
    if (!shape.by_packets) return;
    // What they said has arrived.
    for (int i = 0; i < 10; ++i) tree.look();
  }
  static CeValue one(std::uint64_t operand) {
    return {.operand = {operand, 0}, .reduction = 3, .command = kAdd};
  }
  static Nic::Options options(const Shape& shape) {
    Nic::Options options;
    options.collective_by_packets = shape.by_packets;
    return options;
  }
  World world;
  Tree tree;
  int victim = 0;
  int beside = 0;
  int above = 0;
};

void kill_anywhere(const Shape& shape) {
  Stepper stepper;
  const auto operation = [](Scene& scene) {
    return [&scene] {
      (void)scene.tree.join(scene.victim, Scene::one(1));
      scene.tree.check(scene.victim);
      scene.world[0].nic().progress();
      scene.world[0].nic().serve();  // an owner's duties
    };
  };
  std::uint64_t length = 0;
  {
    Scene scene(shape);
    const Stepper::End end = stepper.start(operation(scene), UINT64_MAX);
    stepper.kill();
    if (end == Stepper::End::refused)
      ORRERY_SKIP("ptrace") << "this system does not let a process trace its child";
    ASSERT_EQ(end, Stepper::End::finished);
    length = stepper.steps;
  }
  const std::uint64_t stride = box::long_tests() ? 1 : std::max<std::uint64_t>(1, length / kRuns);
  int sums = 0;
  int errors = 0;
  for (std::uint64_t limit = 0; limit < length; limit += stride) {
    Scene scene(shape);
    ASSERT_NE(stepper.start(operation(scene), limit), Stepper::End::crashed);
    stepper.kill();
    scene.world.kill(0);
    for (int i = 0; i < 10; ++i) scene.tree.look();
    for (const int leaf : {scene.beside, scene.above}) {
      ASSERT_TRUE(scene.tree.done(leaf))
          << "killed after " << limit << ": leaf " << leaf << " waits for ever";
      if (scene.tree.status(leaf) == CeStatus::ok) {
        ASSERT_EQ(scene.tree.result(leaf, 1), 111u) << "killed after " << limit;
        ++sums;
      } else {
        ASSERT_EQ(scene.tree.status(leaf), CeStatus::unreachable) << "killed after " << limit;
        ++errors;
      }
    }
  }
  std::printf("%llu instructions; %d sums, %d errors\n", static_cast<unsigned long long>(length), sums,
              errors);
  EXPECT_GT(sums, 0);
  EXPECT_GT(errors, 0);
}

TEST(KillAnywhere, JoinAndReleaseLeaveEverybodyWithTheSumOrAnError) { kill_anywhere({}); }
TEST(KillAnywhere, ThoseOfTheShortWayToo) { kill_anywhere({.flat = true}); }
TEST(KillAnywhere, SoDoesTheOwnerOfAnInteriorVce) { kill_anywhere({.low_owner = 0}); }
TEST(KillAnywhere, JoinsAndReleasesByPacketToo) { kill_anywhere({.by_packets = true}); }
TEST(KillAnywhere, TheOwnerOfAnInteriorVceByPacketToo) {
  kill_anywhere({.low_owner = 0, .by_packets = true});
}

}  // namespace
}  // namespace orrery::nic
