// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/stepper.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

// Processes that die, or stop, after any instruction of one operation. The victim is a forked child that
// plays slot 0 of the box; its segment, its peers' and the target's memory are shared with it. The survivors
// live here: slot 1 is the target, slot 2 another initiator. They are the same ones all the time, so that
// what one death spoils would add up; every victim is the successor of the one before in its slot.
// ORRERY_LONG_TESTS=1 kills after every instruction of up to 2,000.
namespace orrery::nic {
namespace {

using box::Path;
using box::Stepper;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

constexpr std::size_t kBytes = 64 << 10;
// Little, because every instruction costs two system calls here: lanes of the smallest size, two frames.
constexpr std::uint32_t kLaneBytes = wire::kLaneControlBytes + wire::kMinLaneDataBytes;
constexpr std::size_t kVictimBytes = 150;

class Scene {
 public:
  explicit Scene(Path path, std::int64_t drain_limit_ns = 20'000'000'000)
      : world(3, path, {.drain_limit_ns = drain_limit_ns}, MAP_SHARED, kLaneBytes) {
    memory = static_cast<std::uint8_t*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ORRERY_CHECK(memory != MAP_FAILED, "no memory");
    target_queue = world[1].nic().create_queue(64, 0).value();
    key = register_target();
    survivor = world.endpoint(2, 1, world[2].nic().create_queue(64, 0).value());
    world.kill(0);
  }
  ~Scene() { munmap(memory, kBytes); }

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

  // Everybody alive runs until the survivor's queue has an event; the outcome of that operation.
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
    ASSERT_EQ(take_event(), from.remote_value);
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
    ASSERT_EQ(told, victim->remote_value);
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
    ASSERT_EQ(survivor->queue->open_transactions(), 0u);

    to_victim.reset();
    world.revive(0);
    const auto successor = world.endpoint(0, 1, world[0].nic().create_queue(8, 0).value());
    ASSERT_NO_FATAL_FAILURE(put(*successor, 0, *successor->queue));
    world.kill(0);
  }

  box::World world;
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

bool long_tests() {
  const char* value = std::getenv("ORRERY_LONG_TESTS");
  return value != nullptr && value[0] == '1';
}

class KillAnywhere : public ::testing::Test {
 protected:
  // Kills victims after instruction 0, 1, 2 ... of `operation`. `prepare` comes before each, `check` after.
  void run(Scene& scene, const std::function<void()>& prepare, const std::function<void()>& operation,
           const std::function<void()>& check) {
    Stepper stepper;
    scene.new_victim();
    prepare();
    const Stepper::End end = stepper.start(operation, UINT64_MAX);
    stepper.kill();
    if (end == Stepper::End::refused) GTEST_SKIP() << "this system does not let a process trace its child";
    ASSERT_EQ(end, Stepper::End::finished);
    const std::uint64_t length = stepper.steps;
    check();
    ASSERT_NO_FATAL_FAILURE(scene.check_survivors());
    const std::uint64_t most = long_tests() ? 2'000 : 120;
    const std::uint64_t runs = std::min(length, most);
    std::printf("%llu instructions, killed %llu times\n", static_cast<unsigned long long>(length),
                static_cast<unsigned long long>(runs));
    for (std::uint64_t i = 0; i < runs; ++i) {
      const std::uint64_t limit = i * length / runs;
      scene.new_victim();
      prepare();
      const Stepper::End how = stepper.start(operation, limit);
      stepper.kill();
      ASSERT_TRUE(how == Stepper::End::stopped || how == Stepper::End::finished) << "after " << limit;
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

TEST_F(KillAnywhere, FirstPutThatGoesDirect) {
  Scene scene(Path::direct);
  run(
      scene, nothing, [&] { (void)scene.world[0].nic().post(*scene.victim, scene.victims_put()); }, nothing);
}

TEST_F(KillAnywhere, LaterPutThatGoesDirect) {
  Scene scene(Path::direct);
  run(
      scene,
      [&] {
        Request request = scene.victims_put();
        request.flags = 0;
        request.length = 1;
        ASSERT_EQ(scene.world[0].nic().post(*scene.victim, request), Errc::ok);
      },
      [&] { (void)scene.world[0].nic().post(*scene.victim, scene.victims_put()); }, nothing);
}

TEST_F(KillAnywhere, FirstPutThatGoesByFrame) {
  Scene scene(Path::frame);
  run(
      scene, nothing, [&] { (void)scene.world[0].nic().post(*scene.victim, scene.victims_put()); }, nothing);
}

TEST_F(KillAnywhere, LaterPutThatGoesByFrame) {
  Scene scene(Path::frame);
  run(
      scene,
      [&] {
        Request request = scene.victims_put();
        request.flags = 0;
        request.length = 1;
        ASSERT_EQ(scene.world[0].nic().post(*scene.victim, request), Errc::ok);
        scene.world[1].nic().serve();
      },
      [&] { (void)scene.world[0].nic().post(*scene.victim, scene.victims_put()); }, nothing);
}

TEST_F(KillAnywhere, AnswersBeingTakenIn) {
  Scene scene(Path::frame);
  run(
      scene,
      [&] {
        ASSERT_EQ(scene.world[0].nic().post(*scene.victim, scene.victims_put()), Errc::ok);
        scene.world[1].nic().serve();
      },
      [&] { scene.world[0].nic().progress(); }, nothing);
}

TEST_F(KillAnywhere, EventPushedIntoAPeersQueue) {
  Scene scene(Path::direct);
  run(
      scene, [&] { std::memcpy(scene.memory, scene.source.data(), kVictimBytes); },
      [&] {
        const auto queue = open_queue(scene.world[1].nic().view(), scene.target_queue->index());
        (void)push_event(*queue, {EventKind::remote, Errc::ok, scene.victim->remote_value});
      },
      nothing);
}

// What a survivor asks of a dead owner ends, one way or the other, and only once.
class KillOwnerAnywhere : public KillAnywhere {
 protected:
  static Request put_to_victim(const Scene& scene, const std::uint64_t& value) {
    Request request;
    request.flags = kLocalEvent | kRemoteEvent;
    request.local_address = address_of(&value);
    request.remote_address = address_of(scene.memory + kBytes / 2);
    request.length = 8;
    request.remote = scene.victim_key;
    return request;
  }
  void put_and_hear(Scene& scene) {
    const std::uint64_t value = 5;
    ASSERT_EQ(scene.world[2].nic().post(*scene.to_victim, put_to_victim(scene, value)), Errc::ok);
    for (int i = 0; i < 4; ++i) scene.world[2].nic().serve();
    scene.world.kill(0);
    const Errc outcome = scene.survivors_event();
    EXPECT_TRUE(outcome == Errc::ok || outcome == Errc::invalid_handle || outcome == Errc::unreachable)
        << errc_name(outcome);
    ASSERT_EQ(scene.world[2].nic().post(*scene.to_victim, put_to_victim(scene, value)), Errc::ok);
    EXPECT_EQ(scene.survivors_event(), Errc::unreachable);
    EXPECT_EQ(scene.to_victim->in_flight.load(), 0u);
  }
  void add_events(Scene& scene) {
    for (std::uint64_t i = 1; i < 4; ++i) {
      ASSERT_EQ(push_event(scene.victim_queue->view(), {EventKind::remote, Errc::ok, i}), Errc::ok);
    }
  }
};

TEST_F(KillOwnerAnywhere, EventBeingTaken) {
  Scene scene(Path::direct);
  run(
      scene, [&] { add_events(scene); },
      [&] {
        Event event;
        for (int i = 0; i < 4; ++i) (void)scene.world[0].nic().poll(*scene.victim_queue, &event);
      },
      [&] { put_and_hear(scene); });
}

TEST_F(KillOwnerAnywhere, BlockingWaitThatFindsAnEvent) {
  Scene scene(Path::direct);
  run(
      scene, [&] { add_events(scene); },
      [&] { (void)scene.world[0].nic().wait(*scene.victim_queue, std::nullopt); },
      [&] { put_and_hear(scene); });
}

TEST_F(KillOwnerAnywhere, BlockingWaitThatFindsNothing) {
  Scene scene(Path::direct);
  run(
      scene, nothing, [&] { (void)scene.world[0].nic().wait(*scene.victim_queue, 0); },
      [&] { put_and_hear(scene); });
}

TEST_F(KillOwnerAnywhere, DeregistrationOfMemoryThatPeersTouched) {
  Scene scene(Path::direct);
  const std::uint64_t value = 9;
  run(
      scene,
      [&] {
        ASSERT_EQ(scene.world[2].nic().post(*scene.to_victim, put_to_victim(scene, value)), Errc::ok);
        ASSERT_EQ(scene.survivors_event(), Errc::ok);
      },
      [&] { (void)scene.world[0].nic().deregister(scene.victim_key); }, [&] { put_and_hear(scene); });
}

TEST_F(KillOwnerAnywhere, Registration) {
  Scene scene(Path::direct);
  run(
      scene, nothing,
      [&] {
        (void)scene.world[0].nic().register_region(scene.world[0].port(), address_of(scene.memory), 4096, 0,
                                                   scene.victim_queue);
      },
      [&] { put_and_hear(scene); });
}

TEST_F(KillOwnerAnywhere, QueueMadeAndDestroyed) {
  Scene scene(Path::direct);
  run(
      scene, nothing,
      [&] {
        const auto queue = scene.world[0].nic().create_queue(4, 0);
        if (queue.ok()) (void)scene.world[0].nic().destroy_queue(queue.value());
      },
      [&] {
        // The new queue's place is the second one: there is nothing there, or a queue.
        const auto queue = open_queue(scene.world[0].nic().view(), 1);
        if (queue) {
          EXPECT_EQ(push_event(*queue, {EventKind::remote, Errc::ok, 1}), Errc::ok);
        }
        put_and_hear(scene);
      });
}

TEST_F(KillOwnerAnywhere, FramesBeingApplied) {
  Scene scene(Path::frame);
  const std::uint64_t value = 9;
  run(
      scene,
      [&] { ASSERT_EQ(scene.world[2].nic().post(*scene.to_victim, put_to_victim(scene, value)), Errc::ok); },
      [&] { scene.world[0].nic().serve(); },
      [&] {
        const Errc before = [&] {
          scene.world[2].nic().serve();
          scene.world.kill(0);
          return scene.survivors_event();
        }();
        EXPECT_TRUE(before == Errc::ok || before == Errc::unreachable) << errc_name(before);
        put_and_hear(scene);
      });
}

// A process that is stopped, not dead, for as long as it likes.
TEST(StopAnywhere, DeregistrationEndsAndOthersGoOnWhileAnInitiatorIsStopped) {
  constexpr std::int64_t kLimitNs = 2'000'000;
  Scene scene(Path::direct, kLimitNs);
  Stepper stepper;
  const auto post = [&] { (void)scene.world[0].nic().post(*scene.victim, scene.victims_put()); };
  scene.new_victim();
  const Stepper::End end = stepper.start(post, UINT64_MAX);
  stepper.kill();
  if (end == Stepper::End::refused) GTEST_SKIP() << "this system does not let a process trace its child";
  const std::uint64_t length = stepper.steps;
  scene.check_survivors();
  const char* asked = std::getenv("ORRERY_TEST_SEED");
  std::uint64_t state = asked != nullptr ? std::strtoull(asked, nullptr, 0) : 1;
  std::printf("ORRERY_TEST_SEED=%llu\n", static_cast<unsigned long long>(state));
  int stalled = 0;
  // The access is a few instructions of a post: on until one of them was met.
  const int rounds = long_tests() ? 1'000 : 100;
  for (int i = 0; i < rounds || (stalled == 0 && i < 10 * rounds); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t limit = (state >> 33) % length;
    scene.new_victim();
    ASSERT_NE(stepper.start(post, limit), Stepper::End::crashed);
    const int cut_offs = scene.world[1].cut_offs;
    const std::int64_t begin = monotonic_ns();
    ASSERT_TRUE(scene.world[1].nic().deregister(scene.key).ok());
    // A tenth of a second for a machine that has better things to do.
    EXPECT_LT(monotonic_ns() - begin, kLimitNs + 100'000'000) << "stopped after " << limit;
    if (scene.world[1].cut_offs != cut_offs) ++stalled;
    while (scene.take_event() != 0) {
    }
    scene.key = scene.register_target();
    ASSERT_NO_FATAL_FAILURE(scene.put(*scene.survivor, 2, *scene.survivor->queue))
        << "stopped after " << limit;
    // It goes on, and what it was doing ends without harm to the queue.
    stepper.let_finish();
    for (std::uint64_t told = scene.take_event(); told != 0; told = scene.take_event()) {
      ASSERT_EQ(told, scene.victim->remote_value);
    }
    ASSERT_NO_FATAL_FAILURE(scene.put(*scene.survivor, 2, *scene.survivor->queue))
        << "stopped after " << limit;
    stepper.kill();
    scene.world.kill(0);
  }
  std::printf("%d of them in the middle of the access\n", stalled);
  EXPECT_GT(stalled, 0);
}

}  // namespace
}  // namespace orrery::nic
