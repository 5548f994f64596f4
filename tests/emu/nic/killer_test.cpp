// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/nic/killer.hpp"
#include "emu/nic/initiator/fma_window.hpp"
#include "tests/require.hpp"

#include <cstdlib>

namespace orrery::nic {
namespace {

using namespace box;

auto victims_post(Scene& scene) {
  return [&scene] { (void)scene.world[0].nic().post(*scene.victim, scene.victims_put()); };
}
// The shortest put, without an event.
Request silent_byte(Scene& scene) {
  Request request = scene.victims_put();
  request.flags = 0;
  request.length = 1;
  return request;
}

TEST_F(KillAnywhere, FirstPutThatGoesDirect) {
  Scene scene(Path::direct);
  run(scene, nothing, victims_post(scene), nothing);
}

TEST_F(KillAnywhere, LaterPutThatGoesDirect) {
  Scene scene(Path::direct);
  run(
      scene, [&] { ASSERT_EQ(scene.world[0].nic().post(*scene.victim, silent_byte(scene)), Errc::ok); },
      victims_post(scene), nothing);
}

// A row of the victim's window to eight places of the target, again and again.
class VictimsRow {
 public:
  explicit VictimsRow(Scene& scene) : scene_(scene) {}
  void prepare() {
    std::vector<WindowPlace> places;
    for (std::size_t i = 0; i < 8; ++i) places.push_back({1, scene_.key, address_of(scene_.memory) + i * 64});
    window_ = FmaWindow::open(scene_.world[0].nic(), scene_.world[0].port(), {.pe_bits = 3}, places).value();
    for (int i = 0; i < 2; ++i) store();
    while (scene_.take_event() != 0) {
    }
  }
  void store() {
    std::vector<std::byte> lines(8 * 64);
    ASSERT_EQ(window_->begin(), Errc::ok);
    ASSERT_EQ(window_->store(0, lines.data(), lines.size()), Errc::ok);
    Errc status = Errc::ok;
    ASSERT_EQ(window_->test(window_->end().value(), &status), Errc::ok);
  }
  // While its NIC is still there.
  void forget() { window_.reset(); }

 private:
  Scene& scene_;
  std::unique_ptr<FmaWindow> window_;
};

TEST_F(KillAnywhere, RowOfAWindow) {
  Scene scene(Path::direct);
  VictimsRow row(scene);
  run(
      scene, [&] { row.prepare(); }, [&] { row.store(); }, [&] { row.forget(); });
}

TEST_F(KillAnywhere, FirstPutThatGoesByFrame) {
  Scene scene(Path::frame);
  run(scene, nothing, victims_post(scene), nothing);
}

TEST_F(KillAnywhere, LaterPutThatGoesByFrame) {
  Scene scene(Path::frame);
  run(
      scene,
      [&] {
        ASSERT_EQ(scene.world[0].nic().post(*scene.victim, silent_byte(scene)), Errc::ok);
        scene.world[1].nic().serve();
      },
      victims_post(scene), nothing);
}

TEST_F(KillAnywhere, LaterShortPutThatGoesByFrameAndTellsNobody) {
  Scene scene(Path::frame);
  run(
      scene,
      [&] {
        ASSERT_EQ(scene.world[0].nic().post(*scene.victim, silent_byte(scene)), Errc::ok);
        scene.world[1].nic().serve();
      },
      [&] { (void)scene.world[0].nic().post(*scene.victim, silent_byte(scene)); }, nothing);
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
        (void)push_event(*queue, {EventKind::remote, Errc::ok, scene.victim->remote_event_data});
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
      [&] { (void)scene.world[0].nic().waits().wait(*scene.victim_queue, std::nullopt); },
      [&] { put_and_hear(scene); });
}

TEST_F(KillOwnerAnywhere, BlockingWaitThatFindsNothing) {
  Scene scene(Path::direct);
  run(
      scene, nothing, [&] { (void)scene.world[0].nic().waits().wait(*scene.victim_queue, 0); },
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
void stop_anywhere(Scene& scene, const std::function<void()>& prepare, const std::function<void()>& post,
                   const std::function<void()>& forget) {
  test::Stepper stepper;
  scene.new_victim();
  prepare();
  const test::Stepper::End end = stepper.start(post, UINT64_MAX);
  stepper.kill();
  forget();
  if (end == test::Stepper::End::refused)
    ORRERY_SKIP("ptrace") << "this system does not let a process trace its child";
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
    prepare();
    ASSERT_NE(stepper.start(post, limit), test::Stepper::End::crashed);
    const int cut_offs = scene.world[1].cut_offs;
    // Returns although the initiator never goes on: after kLimitNs it is cut off. How long that takes on
    // a machine that has better things to do is not asserted; if it never did, the test would not end.
    ASSERT_TRUE(scene.world[1].nic().deregister(scene.key).ok());
    if (scene.world[1].cut_offs != cut_offs) ++stalled;
    while (scene.take_event() != 0) {
    }
    scene.key = scene.register_target();
    ASSERT_NO_FATAL_FAILURE(scene.put(*scene.survivor, 2, *scene.survivor->queue))
        << "stopped after " << limit;
    // It goes on, and what it was doing ends without harm to the queue.
    ASSERT_EQ(stepper.let_finish(), test::Stepper::End::finished) << "stopped after " << limit;
    for (std::uint64_t told = scene.take_event(); told != 0; told = scene.take_event()) {
      ASSERT_EQ(told, scene.victim->remote_event_data);
    }
    ASSERT_NO_FATAL_FAILURE(scene.put(*scene.survivor, 2, *scene.survivor->queue))
        << "stopped after " << limit;
    stepper.kill();
    forget();
    scene.world.kill(0);
  }
  std::printf("%d of them in the middle of the access\n", stalled);
  EXPECT_GT(stalled, 0);
}

constexpr std::int64_t kLimitNs = 2'000'000;

TEST(StopAnywhere, DeregistrationEndsAndOthersGoOnWhileAnInitiatorIsStopped) {
  Scene scene(Path::direct, kLimitNs);
  stop_anywhere(
      scene, [] {}, [&] { (void)scene.world[0].nic().post(*scene.victim, scene.victims_put()); }, [] {});
}

TEST(StopAnywhere, DeregistrationEndsAndOthersGoOnWhileAWindowIsStopped) {
  Scene scene(Path::direct, kLimitNs);
  VictimsRow row(scene);
  stop_anywhere(
      scene, [&] { row.prepare(); }, [&] { row.store(); }, [&] { row.forget(); });
}

}  // namespace
}  // namespace orrery::nic
