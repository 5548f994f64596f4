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
        ASSERT_TRUE(target.triggered().unit().post(name, 3, [&] { ++fired; }).ok());
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
        target.triggered().unit().cancel(name);
        ASSERT_TRUE(target.counters().destroy(name).ok());
      });
}

// The victim reaches the threshold, and carries out itself what waits: a put from the target's memory to
// another's, whose end fires an addition, which fires one more. Wherever it died, what was counted has been
// carried out once when the target hears of the death, or when a survivor counts next.
TEST_F(KillAdder, ThatCarriesOutWhatItTriggered) {
  Scene scene(Path::direct);
  Nic& owner = scene.world[1].nic();
  Nic& other = scene.world[2].nic();
  auto* const words = reinterpret_cast<std::uint64_t*>(scene.memory + 20'480);
  const MemKey source_key =
      owner.register_region(scene.world[1].port(), address_of(words), 8, 0, nullptr).value();
  const MemKey target_key =
      other.register_region(scene.world[2].port(), address_of(words + 512), 8, 0, nullptr).value();
  const auto endpoint = scene.world.endpoint(1, 2, nullptr);
  Request put = put_word(words, words + 512, target_key, 0);
  put.local = source_key;
  CounterName name, ended, last;
  std::uint64_t rounds = 0;
  run(
      scene,
      [&] {
        words[0] = ++rounds;
        words[512] = 0;
        for (CounterName* one : {&name, &ended, &last}) *one = owner.counters().create().value();
        ASSERT_TRUE(owner.triggered().post_put(name, 3, *endpoint, put, ended, {.success = 1}).ok());
        ASSERT_TRUE(owner.triggered().unit().post_add(ended, 1, last, {.success = 10, .failure = 1}).ok());
        ASSERT_TRUE(owner.triggered().unit().post_add(name, 4, last, {.success = 100}).ok());
        counter::add(owner.view(), name, {.success = 2});
      },
      [&] { (void)scene.world[0].nic().triggered().add(scene.world[1].name(), name, {.success = 1}); },
      [&] {
        const std::uint64_t counted = owner.counters().get(name).value().success;
        ASSERT_TRUE(counted == 2 || counted == 3) << counted;
        // In every other round the owner is not there to hear of it: a survivor goes on.
        if (rounds % 2 == 0) {
          scene.world.kill(0);
          const std::uint64_t times = counted - 2;
          ASSERT_EQ(words[512], times * rounds);
          ASSERT_EQ(owner.counters().get(ended).value(), (CounterValue{times, 0}));
          ASSERT_EQ(owner.counters().get(last).value(), (CounterValue{times * 10, times}));
        }
        ASSERT_EQ(other.triggered().add(scene.world[1].name(), name, {.success = 4 - counted}), Errc::ok);
        ASSERT_EQ(words[512], rounds);
        ASSERT_EQ(owner.counters().get(ended).value(), (CounterValue{1, 0}));
        ASSERT_EQ(owner.counters().get(last).value(), (CounterValue{110, 1}));
        ASSERT_EQ(owner.triggered().unit().pending(), 0u);
        if (rounds % 2 != 0) scene.world.kill(0);
        for (const CounterName one : {name, ended, last}) ASSERT_TRUE(owner.counters().destroy(one).ok());
      });
}

// The same of puts whose source and target are the owner's own, in one registration and in two: the owner may
// withdraw both after the death, and what was counted has been stored.
TEST_F(KillAdder, ThatCarriesOutPutsWithinItsOwner) {
  Scene scene(Path::direct);
  Nic& owner = scene.world[1].nic();
  auto* const words = reinterpret_cast<std::uint64_t*>(scene.memory + 20'480);
  const auto endpoint = scene.world.endpoint(1, 1, nullptr);
  MemKey keys[2];
  CounterName name, ended;
  std::uint64_t rounds = 0;
  run(
      scene,
      [&] {
        words[0] = ++rounds;
        words[8] = words[512] = 0;
        for (int i = 0; i < 2; ++i)
          keys[i] = owner.register_region(scene.world[1].port(), address_of(words + i * 512), 512, 0, nullptr)
                        .value();
        for (CounterName* one : {&name, &ended}) *one = owner.counters().create().value();
        Request put = put_word(words, words + 8, keys[0], 0);
        put.local = keys[0];
        ASSERT_TRUE(owner.triggered().post_put(name, 1, *endpoint, put, ended, {.success = 1}).ok());
        put = put_word(words + 8, words + 512, keys[1], 0);
        put.local = keys[0];
        ASSERT_TRUE(owner.triggered().post_put(name, 1, *endpoint, put, ended, {.success = 10}).ok());
      },
      [&] { (void)scene.world[0].nic().triggered().add(scene.world[1].name(), name, {.success = 1}); },
      [&] {
        const std::uint64_t counted = owner.counters().get(name).value().success;
        scene.world.kill(0);
        ASSERT_EQ(words[8], counted * rounds);
        ASSERT_EQ(words[512], counted * rounds);
        ASSERT_EQ(owner.counters().get(ended).value(), (CounterValue{counted * 11, 0}));
        owner.triggered().unit().cancel(name);
        for (const MemKey& key : keys) ASSERT_TRUE(owner.deregister(key).ok());
        for (const CounterName one : {name, ended}) ASSERT_TRUE(owner.counters().destroy(one).ok());
      });
}

// The victim owns the counter. It posts, is counted at, carries out, and dies: a survivor that counts there
// neither waits nor finds a list that leads nowhere. What it finds whole it carries out once.
TEST_F(KillAdder, OwnerInTheMiddleOfItsTriggers) {
  Scene scene(Path::direct);
  CounterName name, raised;
  run(
      scene,
      [&] {
        Nic& owner = scene.world[0].nic();
        name = owner.counters().create().value();
        raised = owner.counters().create().value();
        ASSERT_TRUE(owner.triggered().unit().post_add(name, 2, raised, {.success = 1}).ok());
      },
      [&] {
        Nic& owner = scene.world[0].nic();
        (void)owner.triggered().unit().post_add(name, 1, raised, {.success = 10});
        (void)owner.triggered().unit().post_add(name, 3, raised, {.success = 100});
        (void)owner.triggered().add(name, {.success = 1}, false);
      },
      [&] {
        Nic& survivor = scene.world[2].nic();
        const NicView view = scene.world[0].nic().view();
        const std::uint64_t before = counter::read(*counter::find(view, name)).success;
        ASSERT_EQ(survivor.triggered().add(scene.world[0].name(), name, {.success = 3 - before}), Errc::ok);
        const std::uint64_t sum = counter::read(*counter::find(view, raised)).success;
        ASSERT_EQ(sum % 10, 1u);
        ASSERT_LE(sum / 10 % 10, 1u);
        ASSERT_LE(sum / 100, 1u);
        scene.world.kill(0);
      });
}

// The owner is stopped and never goes on: what waits at its counter is carried out all the same.
TEST_F(KillAdder, OwnerThatIsStopped) {
  Scene scene(Path::direct);
  scene.new_victim();
  auto* const words = reinterpret_cast<std::uint64_t*>(scene.memory + 20'480);
  const MemKey target_key =
      scene.world[2].nic().register_region(scene.world[2].port(), address_of(words), 8, 0, nullptr).value();
  words[0] = 0;
  auto* const source = reinterpret_cast<std::uint64_t*>(scene.memory + kBytes / 2);
  *source = 4711;
  Nic& owner = scene.world[0].nic();
  const auto endpoint = scene.world.endpoint(0, 2, nullptr);
  const CounterName name = owner.counters().create().value();
  const CounterName ended = owner.counters().create().value();
  Request put = put_word(source, words, target_key, 0);
  put.local = scene.victim_key;
  test::Stepper stepper;
  const auto end = stepper.start(
      [&] { (void)owner.triggered().post_put(name, 1, *endpoint, put, ended, {.success = 1}); }, UINT64_MAX);
  if (end == test::Stepper::End::refused)
    GTEST_SKIP() << "this system does not let a process trace its child";
  ASSERT_EQ(end, test::Stepper::End::finished);
  // By then the child is stopped at an instruction after its post, and stays so.
  ASSERT_EQ(scene.world[1].nic().triggered().add(scene.world[0].name(), name, {.success = 1}), Errc::ok);
  EXPECT_EQ(words[0], 4711u);
  EXPECT_EQ(counter::read(*counter::find(owner.view(), ended)), (CounterValue{1, 0}));
  stepper.kill();
  scene.world.kill(0);
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
