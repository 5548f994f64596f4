// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/record_queue.hpp"
#include "emu/nic/message/receive_queue.hpp"
#include "emu/nic/target/atomic_unit.hpp"

#include "tests/emu/nic/killer.hpp"

#include <complex>

namespace orrery::nic {
namespace {

using namespace box;

class KillProducer : public KillAnywhere {};

// Whatever the victim left: its record is there whole or not at all, no place stays claimed, and a full lap
// of others' records goes through.
TEST_F(KillProducer, PublicationOfARecord) {
  Scene scene(Path::direct);
  RecordQueue& queue = *scene.world[1].nic().record_queues().create(4).value();
  const EventRecord victims{.kind = 3, .user = 77, .extra = {1, 2, 3}};
  run(
      scene, nothing,
      [&] {
        const auto view = open_record_queue(scene.world[1].nic().view(), queue.ring().index());
        (void)push_record(*view, victims, claimer_word(0, scene.world[0].name().generation));
      },
      [&] {
        scene.world.kill(0);
        EventRecord record;
        bool gap = false;
        if (queue.take(&record, &gap) == Errc::ok) {
          ASSERT_EQ(record, victims);
        }
        ASSERT_FALSE(queue.has_claims());
        for (std::uint64_t i = 0; i < 4; ++i)
          ASSERT_EQ(push_record(queue.view(), {.user = i}, claimer_word(2, 0)), Errc::ok);
        for (std::uint64_t i = 0; i < 4; ++i) {
          ASSERT_EQ(queue.take(&record, &gap), Errc::ok);
          ASSERT_EQ(record.user, i);
          ASSERT_FALSE(gap);
        }
      });
}

// Wherever the victim died: all buffers are free again in the end, or told of as filled, once.
TEST_F(KillProducer, ClaimOfAReceiveBuffer) {
  Scene scene(Path::direct);
  Nic& target = scene.world[1].nic();
  constexpr std::uint32_t kBuffers = 3;
  const std::uint64_t offset = target.arena().take(ReceiveQueue::bytes_for(kBuffers), Arena::Use::unit);
  ReceiveQueue queue(target.view(), offset, kBuffers, address_of(scene.memory), 64, 1);
  run(
      scene, nothing,
      [&] {
        const auto view = open_receive_queue(scene.world[1].nic().view(), queue.name()).value();
        const auto claimed = claim_buffer(view, claimer_word(0, scene.world[0].name().generation)).value();
        std::memcpy(reinterpret_cast<void*>(address_of(view, claimed)), "hello", 6);
        (void)publish_buffer(view, claimed, 6, 9);
      },
      [&] {
        scene.world.kill(0);
        int filled = 0;
        const std::uint32_t freed = queue.repair(
            [&](std::uint16_t s, std::uint32_t g) {
              return scene.world[1].alive(ProcessName{s, g});
            },
            [&](const ReceiveBufferName& buffer) {
              ++filled;
              const auto got = queue.take(buffer);
              ASSERT_TRUE(got.ok());
              ASSERT_EQ(got.value().bytes, 6u);
              ASSERT_EQ(std::memcmp(reinterpret_cast<const void*>(got.value().address), "hello", 6), 0);
              ASSERT_EQ(queue.give_back(buffer), Errc::ok);
            });
        ASSERT_LE(freed + static_cast<std::uint32_t>(filled), 1u);
        std::vector<ReceiveBufferName> all;
        for (std::uint32_t i = 0; i < kBuffers; ++i) {
          const auto claimed = claim_buffer(queue.view(), claimer_word(2, 0));
          ASSERT_TRUE(claimed.ok());
          all.push_back(claimed.value());
        }
        ASSERT_FALSE(claim_buffer(queue.view(), claimer_word(2, 0)).ok());
        for (const auto& buffer : all) {
          ASSERT_EQ(publish_buffer(queue.view(), buffer, 1, 0), Errc::ok);
          ASSERT_TRUE(queue.take(buffer).ok());
          ASSERT_EQ(queue.give_back(buffer), Errc::ok);
        }
        std::memset(scene.memory, 0, kVictimBytes);
      });
}

// 32 bytes under the lock: the next one finds the number whole, with the victim's addend or without.
TEST_F(KillProducer, AtomicUnderTheLock) {
  using Number = std::complex<long double>;
  Scene scene(Path::direct);
  auto* const target = reinterpret_cast<Number*>(scene.memory);
  const auto agent = [&](std::uint16_t slot) {
    return AtomicAgent{
        .slot = slot,
        .generation = scene.world[slot].name().generation,
        .alive =
            [&](std::uint16_t s, std::uint32_t g) {
              return scene.world[2].alive(ProcessName{s, g});
            },
        .map = [](std::uint64_t address, std::uint64_t) { return reinterpret_cast<std::byte*>(address); }};
  };
  const auto add = [&](std::uint16_t who, Number by) {
    return apply_atomic(
        scene.world[1].nic().view(), agent(who),
        {.op = AtomicOp::sum, .type = AtomicType::long_complex, .data = std::as_bytes(std::span(&by, 1))},
        reinterpret_cast<std::byte*>(target), address_of(target));
  };
  run(
      scene,
      [&] {
        *target = {10, 20};
      },
      [&] {
        (void)add(0, {1, 1});
      },
      [&] {
        scene.world.kill(0);
        ASSERT_EQ(add(2, {100, 100}), Errc::ok);
        ASSERT_TRUE(*target == Number(110, 120) || *target == Number(111, 121));
        std::memset(scene.memory, 0, sizeof(Number));
      });
}

}  // namespace
}  // namespace orrery::nic
