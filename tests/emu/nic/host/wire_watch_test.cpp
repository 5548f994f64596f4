// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/host/wire_watch.hpp"

#include "tests/emu/nic/seeds.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace orrery::nic {
namespace {

// A process at the wire: its descriptor, its timer, its service thread, and the time, which only passes when
// it is told to. What comes is `waiting` until a thread takes it.
struct End final : WireWatch::System {
  WireWatch watch_state{*this};
  std::vector<std::string> calls;
  std::int64_t now = 1'000'000'000;
  std::int64_t timer = 0;  // 0: not set
  std::uint64_t polls = 0;
  std::uint64_t polls_seen = 0;  // by the service thread
  int waiting = 0;
  int taken = 0;
  int wakes = 0;  // of the service thread, by what came
  bool watched = false;
  bool refuses_timer = false;

  bool watch(bool on) override {
    EXPECT_NE(on, watched) << "only changes are system calls";
    calls.push_back(on ? "watch" : "leave");
    watched = on;
    return true;
  }
  bool set_timer(std::int64_t at_ns) override {
    if (refuses_timer) return false;
    calls.push_back("timer");
    timer = at_ns;
    return true;
  }
  std::int64_t now_ns() override { return now; }

  // The service thread is asleep on the descriptor.
  End() { EXPECT_TRUE(watch_state.start()); }
  void poll() {
    ++polls;
    take();
  }
  void take() {
    taken += waiting;
    waiting = 0;
  }
  void post() { watch_state.before_post(polls); }
  void arrive() {
    ++waiting;
    if (!watched) return;
    ++wakes;
    take();
  }
  // What Runtime::on_wire_timer() does, its tick included, which comes soon and until no thread polls.
  void fire() {
    timer = 0;
    watch_state.timer_fired(polls);
    if (polls != polls_seen) watch_state.stop();
    polls_seen = polls;
    EXPECT_TRUE(watch_state.start());
    take();
  }
  void pass(std::int64_t ns) {
    now += ns;
    if (timer != 0 && timer <= now) fire();
  }
};

TEST(WireWatch, WhoPolledBetweenItsPostsTakesTheWatchOffOnce) {
  End end;
  end.poll();
  end.calls.clear();
  end.post();
  EXPECT_EQ(end.calls, (std::vector<std::string>{"timer", "leave"})) << "first what brings it back";
  for (int i = 0; i < 100; ++i) {
    end.arrive();
    end.poll();
    end.post();
  }
  EXPECT_EQ(end.calls.size(), 2u) << "a busy program pays nothing";
  EXPECT_EQ(end.wakes, 0);
  EXPECT_EQ(end.taken, 100);
}

TEST(WireWatch, WhoNeverPollsBetweenItsPostsLeavesTheWatchOn) {
  End end;
  for (int i = 0; i < 100; ++i) {
    end.post();
    end.arrive();
  }
  EXPECT_EQ(end.wakes, 100);
  EXPECT_EQ(end.taken, 100);
}

TEST(WireWatch, AnAnswerIsTakenAlthoughTheProgramNeverPollsAgain) {
  End end;
  end.poll();
  end.post();
  end.arrive();
  EXPECT_EQ(end.taken, 0) << "left to the program";
  end.pass(WireWatch::kAwayNs);
  EXPECT_EQ(end.taken, 1);
  EXPECT_TRUE(end.watched);
  end.arrive();
  EXPECT_EQ(end.taken, 2);
  EXPECT_EQ(end.wakes, 1) << "and from now on at once";
}

TEST(WireWatch, WhoDidNotPollAfterAPostIsNotTrustedForAWhile) {
  End end;
  end.poll();
  end.post();
  end.pass(WireWatch::kAwayNs);
  for (std::uint32_t i = 0; i < WireWatch::kDistrust; ++i) {
    end.poll();
    end.post();
    ASSERT_TRUE(end.watched) << i;
  }
  end.poll();
  end.post();
  EXPECT_FALSE(end.watched);
}

TEST(WireWatch, WhoSleepsAfterAPostHandsTheWatchBackAndIsNotTrustedForAWhile) {
  End end;
  EXPECT_FALSE(end.watch_state.hand_back()) << "nothing to hand back";
  end.poll();
  end.post();
  ASSERT_TRUE(end.watch_state.hand_back());
  EXPECT_TRUE(end.watch_state.start());  // the service thread, which was rung
  EXPECT_TRUE(end.watched);
  end.arrive();
  EXPECT_EQ(end.wakes, 1);
  end.poll();
  end.post();
  EXPECT_TRUE(end.watched);
}

TEST(WireWatch, WhoPolledAfterAPostIsTrustedNextTime) {
  End end;
  for (int i = 0; i < 10; ++i) {
    end.poll();
    end.post();
    EXPECT_FALSE(end.watched);
    end.poll();
    end.pass(WireWatch::kAwayNs);
    EXPECT_TRUE(end.watched);
  }
}

TEST(WireWatch, ATimerThatWasSetForEarlierSaysNothingAboutTheProgram) {
  End end;
  EXPECT_TRUE(end.watch_state.set_timer(end.now + 1));
  end.poll();
  end.post();
  EXPECT_EQ(end.timer, end.now + 1);
  end.pass(1);
  EXPECT_TRUE(end.watched) << "it comes back sooner";
  end.poll();
  end.post();
  EXPECT_FALSE(end.watched);
}

TEST(WireWatch, ATargetIsWokenByWhoHasTakenItsOwnWatchOff) {
  End asker;
  End target;
  asker.poll();
  asker.post();
  target.arrive();  // the put
  EXPECT_EQ(target.wakes, 1);
  asker.arrive();  // its answer
  EXPECT_EQ(asker.wakes, 0) << "the program looks";
  asker.poll();
  EXPECT_EQ(asker.taken, 1);
}

TEST(WireWatch, WithoutATimerTheWatchStays) {
  End end;
  end.refuses_timer = true;
  end.poll();
  end.post();
  EXPECT_TRUE(end.watched);
  EXPECT_FALSE(end.watch_state.hand_back()) << "it is there";
}

// Whatever happens in whatever order: what came is taken within kAwayNs, and a timer is set while no thread
// would be woken.
TEST(WireWatch, NothingWaitsLongerThanTheWatchIsAway) {
  box::for_every_seed(200, 20'000, [](std::uint64_t seed) -> std::string {
    std::mt19937_64 random(seed);
    End end;
    std::int64_t oldest = 0;
    for (int i = 0; i < 2000; ++i) {
      switch (random() % 5) {
        case 0:
          end.poll();
          break;
        case 1:
          end.post();
          break;
        case 2:
          end.arrive();
          break;
        case 3:
          end.pass(static_cast<std::int64_t>(random() % (WireWatch::kAwayNs / 2)));
          break;
        default:
          EXPECT_TRUE(
              end.watch_state.set_timer(end.now + 1 + static_cast<std::int64_t>(random() % 50'000'000)));
      }
      if (end.waiting == 0) oldest = end.now;
      if (end.now - oldest > WireWatch::kAwayNs + WireWatch::kAwayNs / 2) return "it waits for too long";
      if (!end.watched && (end.timer == 0 || end.timer > end.now + WireWatch::kAwayNs))
        return "no thread would be woken";
    }
    return "";
  });
}

}  // namespace
}  // namespace orrery::nic
