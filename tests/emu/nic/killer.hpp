// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/stepper.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <cstdio>

// Processes that die, or stop, after any instruction of one operation. The victim is a forked child that
// plays slot 0 of the box; its segment, its peers' and the target's memory are shared with it. The survivors
// live here: slot 1 is the target, slot 2 another initiator. They are the same ones all the time, so that
// what one death spoils would add up; every victim is the successor of the one before in its slot.
// ORRERY_LONG_TESTS=1 kills after every instruction of up to 2,000.
namespace orrery::nic::box {

inline std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

inline constexpr std::size_t kBytes = 64 << 10;
// Little, because every instruction costs two system calls here: lanes of the smallest size, two frames.
inline constexpr std::uint32_t kLaneBytes = wire::kLaneControlBytes + wire::kMinLaneDataBytes;
inline constexpr std::size_t kVictimBytes = 150;

class Scene {
 public:
  explicit Scene(Path path, std::int64_t drain_limit_ns = 20'000'000'000, Nic::Options options = {})
      : world(3, path, with_limit(options, drain_limit_ns), MAP_SHARED, kLaneBytes) {
    memory = static_cast<std::uint8_t*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ORRERY_CHECK(memory != MAP_FAILED, "no memory");
    target_queue = world[1].nic().create_queue(64, 0).value();
    key = register_target();
    survivor = world.endpoint(2, 1, world[2].nic().create_queue(64, 0).value());
    world.kill(0);
  }
  ~Scene() { munmap(memory, kBytes); }

  static Nic::Options with_limit(Nic::Options options, std::int64_t drain_limit_ns) {
    options.drain_limit_ns = drain_limit_ns;
    return options;
  }

  // A new victim, alive, with an endpoint to the target and to itself registered memory and a queue.
  void new_victim() {
    ++round;
    to_victim.reset();
    victim.reset();
    world.revive(0);
    world.bury();
    victim_queue = world[0].nic().create_queue(8, 0).value();
    victim = world.endpoint(0, 1, victim_queue);
    victim_key =
        world[0]
            .nic()
            .register_region(world[0].port(), address_of(memory + kBytes / 2), kBytes / 4, 0, victim_queue)
            .value();
    to_victim = world.endpoint(2, 0, survivor->queue);
    source.assign(kVictimBytes, static_cast<std::uint8_t>(round * 2 + 1));
    std::memset(memory, 0, kVictimBytes);
  }

  MemKey register_target() {
    return world[1]
        .nic()
        .register_region(world[1].port(), address_of(memory), kBytes / 2, 0, target_queue)
        .value();
  }

  Request victims_put() const {
    Request request;
    request.flags = kLocalEvent | kRemoteEvent;
    request.local_address = address_of(source.data());
    request.remote_address = address_of(memory);
    request.length = kVictimBytes;
    request.remote = key;
    return request;
  }

  // All living processes run until the survivor's queue has an event; the outcome of that operation.
  Errc survivors_event() {
    Event event;
    for (int i = 0; i < 10'000; ++i) {
      if (world[2].nic().poll(*survivor->queue, &event) == Errc::ok) {
        EXPECT_TRUE(survivor->queue->completed(event.transaction(), event.status).ok());
        return event.status;
      }
      world.serve_all();
    }
    ADD_FAILURE() << "an operation of the survivor never ended";
    return Errc::timeout;
  }

  void put(Endpoint& from, int node, CompletionQueue& queue) {
    const std::uint64_t value = round * 0x1'0000'0001;
    Request request;
    request.flags = kLocalEvent | kRemoteEvent;
    request.local_address = address_of(&value);
    request.remote_address = address_of(memory + 16'384);
    request.length = 8;
    request.remote = key;
    ASSERT_EQ(world[node].nic().post(from, request), Errc::ok);
    Event event;
    Errc found = Errc::not_done;
    for (int i = 0; i < 10'000 && found == Errc::not_done; ++i) {
      found = world[node].nic().poll(queue, &event);
      world.serve_all();
    }
    ASSERT_EQ(found, Errc::ok) << "a put never ended";
    ASSERT_EQ(event.status, Errc::ok);
    ASSERT_TRUE(queue.completed(event.transaction(), event.status).ok());
    ASSERT_EQ(std::memcmp(memory + 16'384, &value, 8), 0);
    ASSERT_EQ(take_event(), from.remote_event_data);
  }

  // The next event at the target; 0 when there is none.
  std::uint64_t take_event() {
    Event event;
    const Errc found = target_queue->take(&event);
    return found == Errc::ok ? event.data : 0;
  }

  // What the victim left at the target: nothing, or all of it.
  void check_victims_put() {
    for (int i = 0; i < 10; ++i) world.serve_all();
    const std::uint64_t told = take_event();
    if (told == 0) return;
    ASSERT_EQ(told, victim->remote_event_data);
    ASSERT_EQ(std::memcmp(memory, source.data(), kVictimBytes), 0) << "the event came before the data";
    ASSERT_EQ(take_event(), 0u);
  }

  // The survivors hear of it and go on; then a successor does.
  void check_survivors() {
    world.kill(0);
    check_victims_put();
    ASSERT_NO_FATAL_FAILURE(put(*survivor, 2, *survivor->queue));
    ASSERT_TRUE(world[1].nic().deregister(key).ok());
    ASSERT_EQ(world[1].cut_offs, 0) << "a deregistration waited for the dead";
    key = register_target();
    ASSERT_NO_FATAL_FAILURE(put(*survivor, 2, *survivor->queue));
    ASSERT_EQ(survivor->in_flight.load(), 0u);
    ASSERT_EQ(survivor->queue->posts_open(), 0u);

    to_victim.reset();
    world.revive(0);
    const auto successor = world.endpoint(0, 1, world[0].nic().create_queue(8, 0).value());
    ASSERT_NO_FATAL_FAILURE(put(*successor, 0, *successor->queue));
    world.kill(0);
  }

  World world;
  std::uint8_t* memory = nullptr;  // half the target's, a quarter the victim's
  CompletionQueue* target_queue = nullptr;
  CompletionQueue* victim_queue = nullptr;
  MemKey key;
  MemKey victim_key;
  std::unique_ptr<Endpoint> survivor;
  std::unique_ptr<Endpoint> to_victim;  // the survivor's
  std::unique_ptr<Endpoint> victim;
  std::vector<std::uint8_t> source;
  std::uint64_t round = 0;
};

class KillAnywhere : public ::testing::Test {
 protected:
  // Kills victims after instruction 0, 1, 2 ... of `operation`. `prepare` comes before each, `check` after.
  void run(Scene& scene, const std::function<void()>& prepare, const std::function<void()>& operation,
           const std::function<void()>& check) {
    test::Stepper stepper;
    scene.new_victim();
    prepare();
    const test::Stepper::End end = stepper.start(operation, UINT64_MAX);
    stepper.kill();
    if (end == test::Stepper::End::refused)
      ORRERY_SKIP("ptrace") << "this system does not let a process trace its child";
    ASSERT_EQ(end, test::Stepper::End::finished);
    const std::uint64_t length = stepper.steps;
    check();
    ASSERT_NO_FATAL_FAILURE(scene.check_survivors());
    // In the short mode an operation that is long for what it brings along is stopped at fewer points.
    const std::uint64_t most =
        long_tests() ? 2'000 : std::clamp<std::uint64_t>(100'000 / (length + 1), 8, 24);
    const std::uint64_t runs = std::min(length, most);
    std::printf("%llu instructions, killed %llu times\n", static_cast<unsigned long long>(length),
                static_cast<unsigned long long>(runs));
    for (std::uint64_t i = 0; i < runs; ++i) {
      const std::uint64_t limit = i * length / runs;
      scene.new_victim();
      prepare();
      const test::Stepper::End how = stepper.start(operation, limit);
      stepper.kill();
      ASSERT_TRUE(how == test::Stepper::End::stopped || how == test::Stepper::End::finished)
          << "after " << limit;
      check();
      scene.check_survivors();
      if (HasFatalFailure() || HasNonfatalFailure()) {
        ADD_FAILURE() << "killed after " << limit << " instructions of " << length;
        return;
      }
    }
  }

  static void nothing() {}
};

}  // namespace orrery::nic::box
