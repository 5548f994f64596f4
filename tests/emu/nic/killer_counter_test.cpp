// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/nic/killer.hpp"

namespace orrery::nic {
namespace {

using namespace box;

class KillAdder : public KillAnywhere {};

// The victim adds to a counter of the target's, and so fires a trigger there. What it counted fires, once,
// when the target hears of the death, wherever the victim died; what it did not count does not.
TEST_F(KillAdder, IncrementThatFiresATrigger) {
  Scene scene(Path::direct);
  Nic& target = scene.world[1].nic();
  CounterName name;
  int fired = 0;
  run(
      scene,
      [&] {
        fired = 0;
        name = target.counters().create().value();
        ASSERT_TRUE(target.triggers().post(name, 3, [&] { ++fired; }).ok());
        counter::add(target.view(), name, {.success = 2});
      },
      [&] { (void)counter::add(scene.world[1].nic().view(), name, {.success = 1}); },
      [&] {
        scene.world.kill(0);
        const CounterValue value = target.counters().get(name).value();
        ASSERT_TRUE(value.success == 2 || value.success == 3) << value.success;
        ASSERT_EQ(fired, value.success == 3 ? 1 : 0);
        scene.world[1].nic().serve();
        ASSERT_EQ(fired, value.success == 3 ? 1 : 0);
        target.triggers().cancel(name);
        ASSERT_TRUE(target.counters().destroy(name).ok());
      });
}

TEST_F(KillAdder, SetAndIncrementOfBothCounts) {
  Scene scene(Path::direct);
  Nic& target = scene.world[1].nic();
  const CounterName name = target.counters().create().value();
  run(
      scene,
      [&] {
        counter::set(target.view(), name, {10, 20});
      },
      [&] {
        counter::add(scene.world[1].nic().view(), name, {.success = 1, .failure = 1});
        counter::set(scene.world[1].nic().view(), name, {30, 40});
      },
      [&] {
        const CounterValue value = target.counters().get(name).value();
        ASSERT_TRUE(value == (CounterValue{10, 20}) || value == (CounterValue{11, 21}) ||
                    value == (CounterValue{30, 40}))
            << value.success << " " << value.failure;
      });
}

}  // namespace
}  // namespace orrery::nic
