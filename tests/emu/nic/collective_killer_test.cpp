// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/stepper.hpp"
#include "tests/emu/nic/tree.hpp"

#include <gtest/gtest.h>

#include <cstdio>

// A PE that dies after any instruction of a reduction: of its own contribution, and of the look that computes
// the result, hands it to the parent VCE and looks there. The victim is a forked child that plays slot 0.
// ORRERY_LONG_TESTS=1 kills after every instruction.
namespace orrery::nic {
namespace {

using box::Path;
using box::Stepper;
using box::Tree;
using box::World;

constexpr std::uint8_t kAdd = 0x15;
constexpr int kRuns = 150;

// Root at node 1 with a leaf of node 2; below it a VCE of node 1 whose leaves are the victim and node 2.
struct Scene {
  Scene()
      : world(3, Path::direct, {}, MAP_SHARED, wire::kLaneControlBytes + wire::kMinLaneDataBytes),
        tree(world) {
    const int root = tree.vce(1, -1);
    const int low = tree.vce(1, root);
    victim = tree.leaf(0, low);
    beside = tree.leaf(2, low);
    above = tree.leaf(2, root);
    EXPECT_TRUE(tree.configure());
    // Everybody knows the way by now.
    for (const int leaf : {victim, beside, above}) EXPECT_EQ(tree.join(leaf, 3, kAdd, 1, 0), Errc::ok);
    tree.look();
    tree.look();
    EXPECT_EQ(tree.join(beside, 3, kAdd, 10, 0), Errc::ok);
    EXPECT_EQ(tree.join(above, 3, kAdd, 100, 0), Errc::ok);
  }
  World world;
  Tree tree;
  int victim = 0;
  int beside = 0;
  int above = 0;
};

TEST(KillAnywhere, JoinAndReleaseLeaveEverybodyWithTheSumOrAnError) {
  Stepper stepper;
  const auto operation = [](Scene& scene) {
    return [&scene] {
      (void)scene.tree.join(scene.victim, 3, kAdd, 1, 0);
      scene.world[0].nic().progress();
    };
  };
  std::uint64_t length = 0;
  {
    Scene scene;
    const Stepper::End end = stepper.start(operation(scene), UINT64_MAX);
    stepper.kill();
    if (end == Stepper::End::refused) GTEST_SKIP() << "this system does not let a process trace its child";
    ASSERT_EQ(end, Stepper::End::finished);
    length = stepper.steps;
  }
  const bool all = std::getenv("ORRERY_LONG_TESTS") != nullptr;
  const std::uint64_t stride = all ? 1 : std::max<std::uint64_t>(1, length / kRuns);
  int sums = 0;
  int errors = 0;
  for (std::uint64_t limit = 0; limit < length; limit += stride) {
    Scene scene;
    ASSERT_NE(stepper.start(operation(scene), limit), Stepper::End::crashed);
    stepper.kill();
    scene.world.kill(0);
    for (int i = 0; i < 4; ++i) scene.tree.look();
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

}  // namespace
}  // namespace orrery::nic
