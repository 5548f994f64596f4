// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/amo_unit.hpp"
#include "tests/emu/nic/killer.hpp"

namespace orrery::nic {
namespace {

using namespace box;

// A victim's AMO is done once or not at all, whenever it dies; and it spoils no other process's.
class KillAmoAnywhere : public KillAnywhere {
 protected:
  static constexpr std::size_t kWord = 24'576;
  static std::uint64_t word(const Scene& scene) {
    std::uint64_t value = 0;
    std::memcpy(&value, scene.memory + kWord, sizeof value);
    return value;
  }
  static Request add(const Scene& scene, std::uint8_t command, std::uint64_t* result) {
    Request request;
    request.op = Op::amo;
    request.command = command;
    request.flags = kLocalEvent | kRemoteEvent;
    request.local_address = address_of(result);
    request.remote_address = address_of(scene.memory + kWord);
    request.length = 8;
    request.remote = scene.key;
    request.operand[0] = 1;
    return request;
  }
  void kill_adds(Path path, std::uint8_t command, const Nic::Options& options = {}) {
    Scene scene(path, 20'000'000'000, options);
    std::uint64_t result = 0;
    std::uint64_t before = 0;
    run(
        scene,
        [&] {
          before = word(scene);
          Request first = add(scene, command, &result);
          first.flags = 0;
          first.operand[0] = 0;
          ASSERT_EQ(scene.world[0].nic().post(*scene.victim, first), Errc::ok);
          for (int i = 0; i < 4; ++i) scene.world.serve_all();
        },
        [&] { (void)scene.world[0].nic().post(*scene.victim, add(scene, command, &result)); },
        [&] {
          scene.world.kill(0);
          for (int i = 0; i < 10; ++i) scene.world.serve_all();
          std::uint64_t mine = 0;
          ASSERT_EQ(scene.world[2].nic().post(*scene.survivor, add(scene, command | kAmoFetch, &mine)),
                    Errc::ok);
          ASSERT_EQ(scene.survivors_event(), Errc::ok);
          ASSERT_TRUE(mine == before || mine == before + 1) << mine << " after " << before;
          ASSERT_EQ(word(scene), mine + 1);
          // One event of the survivor's, and the victim's if it got so far, whose AMO is done then.
          bool told = false;
          for (std::uint64_t event = scene.take_event(); event != 0; event = scene.take_event())
            told = told || event == scene.victim->remote_event_data;
          if (told) {
            ASSERT_EQ(mine, before + 1);
          }
        });
  }
};

TEST_F(KillAmoAnywhere, ThatGoesDirect) { kill_adds(Path::direct, amo::command(AmoOp::add, kAmoFetch)); }

TEST_F(KillAmoAnywhere, ThatGoesThroughACoherentCache) {
  kill_adds(Path::direct, amo::command(AmoOp::add, kAmoCached));
}

TEST_F(KillAmoAnywhere, ThatGoesToALazyCache) {
  kill_adds(Path::direct, amo::command(AmoOp::add, kAmoCached), {.amo_cache_mode = AmoCacheMode::lazy});
}

TEST_F(KillAmoAnywhere, ThatGoesByFrame) { kill_adds(Path::frame, amo::command(AmoOp::add, kAmoFetch)); }

}  // namespace
}  // namespace orrery::nic
