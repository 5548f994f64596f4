// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/attendant.hpp"

#include "tests/emu/nic/gate/fake_clock.hpp"
#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace orrery::nic {
namespace {

using Share = Attendant::Share;

// A unit that says when it is called.
struct Unit {
  std::string name;
  std::vector<std::string>* calls;
  bool has_work = false;
  Share share = Share::idle;
  Attendant::Row row() {
    return {.poll = [this] { return note(" polled"), has_work; },
            .in_turn = [this] { note(" in turn"); },
            .serve = [this] { return note(" served"), share; },
            .last_look = [this] { return note(" looked at"), has_work; },
            .peer_died = [this](ProcessName process) { note(" lost " + std::to_string(process.slot)); }};
  }
  void note(const std::string& what) { calls->push_back(name + what); }
};

struct Attended : ::testing::Test {
  parts::Pair pair;
  parts::Node& a = pair.a;
  parts::Node& b = pair.b;
  Attendant attendant{a.host, a.pending, a.peers, a.transport};
  std::vector<std::string> calls;
  Unit first{"first", &calls};
  Unit second{"second", &calls};
  parts::Told told;
  std::uint64_t source = 7;
  alignas(4096) std::array<std::uint64_t, 512> target{};
  void look_after_both() {
    attendant.look_after(first.row());
    attendant.look_after(second.row());
  }
  std::vector<std::string> taken() { return std::exchange(calls, {}); }
  Poller poller() { return a.host.view.service().poller.load(); }
};

using Calls = std::vector<std::string>;

TEST_F(Attended, UnitsAreCalledInTheOrderOfTheirRows) {
  look_after_both();
  EXPECT_FALSE(attendant.move_along());
  EXPECT_EQ(taken(), (Calls{"first polled", "second polled"}));
  EXPECT_TRUE(attendant.serve());
  EXPECT_EQ(taken(), (Calls{"first served", "second served"}));
  attendant.move_in_turn();
  EXPECT_EQ(taken(), (Calls{"first polled", "second polled", "first in turn", "second in turn"}));
  EXPECT_FALSE(attendant.serve_wire());
  EXPECT_EQ(taken(), (Calls{"first looked at", "second looked at"}));
}

TEST_F(Attended, AUnitThatHadWorkDoesNotKeepOthersFromTheirs) {
  look_after_both();
  first.has_work = true;
  EXPECT_TRUE(attendant.move_along());
  EXPECT_EQ(taken(), (Calls{"first polled", "second polled"}));
  EXPECT_TRUE(attendant.serve_wire());
}

TEST_F(Attended, ARowMayLeaveOutWhatItsUnitHasNot) {
  attendant.look_after({.poll = [this] { return first.note(" polled"), true; }});
  EXPECT_TRUE(attendant.move_along());
  (void)attendant.serve();
  attendant.move_in_turn();
  attendant.peer_died(b.host.self());
  EXPECT_EQ(taken(), (Calls{"first polled", "first polled"}));
}

TEST_F(Attended, FramesOfPeersAreTakenInByThePoll) {
  const MemKey key = a.expose(target.data(), sizeof target);
  (void)b.router.route(pair.put(b, a, &source, target.data(), 8, key, &told), kSharedHazardSlot);
  EXPECT_TRUE(attendant.move_along());
  EXPECT_EQ(target[0], 7u);
  b.move_along();
  EXPECT_EQ(told.all, std::vector{Errc::ok});
}

TEST_F(Attended, AnswersToOursAreTakenInByThePoll) {
  const MemKey key = b.expose(target.data(), sizeof target);
  (void)a.router.route(pair.put(a, b, &source, target.data(), 8, key, &told), kSharedHazardSlot);
  b.move_along();
  EXPECT_TRUE(attendant.move_along());
  EXPECT_EQ(told.all, std::vector{Errc::ok});
  EXPECT_FALSE(attendant.move_along()) << "nothing is under way any more";
}

TEST_F(Attended, TheServiceThreadSleepsAfterAFewIdleLooksAndSaysSo) {
  look_after_both();
  int looks = 0;
  while (attendant.serve() && looks < 100) ++looks;
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(poller(), Poller::none);
  EXPECT_EQ(calls.back(), "second looked at") << "once more after it said that it sleeps";
  // Not asleep: a unit owes something.
  second.share = Share::owed;
  EXPECT_TRUE(attendant.serve());
  EXPECT_EQ(poller(), Poller::some);
}

TEST_F(Attended, WhatIsFoundByTheLastLookKeepsTheServiceThreadAwake) {
  look_after_both();
  second.has_work = true;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(attendant.serve());
  EXPECT_EQ(poller(), Poller::some);
}

TEST_F(Attended, AProgramThatPollsKeepsTheServiceThreadOnItsPeriod) {
  for (int i = 0; i < 20; ++i) {
    (void)attendant.move_along();
    EXPECT_TRUE(attendant.program_polls());
    EXPECT_TRUE(attendant.serve());
    EXPECT_FALSE(attendant.program_polls());
  }
}

TEST_F(Attended, UnitsAreToldOfADeathAfterWhatTheDeadHadSent) {
  const MemKey here = a.expose(target.data(), sizeof target);
  const MemKey there = b.expose(target.data() + 256, 8);
  (void)a.router.route(pair.put(a, b, &source, target.data() + 256, 8, there, &told), kSharedHazardSlot);
  (void)b.router.route(pair.put(b, a, &source, target.data(), 8, here, nullptr), kSharedHazardSlot);
  std::uint64_t seen = 0;
  attendant.look_after({.peer_died = [&](ProcessName process) {
    EXPECT_EQ(process, b.host.self());
    seen = target[0];
    EXPECT_EQ(told.all, std::vector{Errc::unreachable}) << "ours ended first";
  }});
  b.host.lives = false;
  attendant.peer_died(b.host.self());
  EXPECT_EQ(seen, 7u);
  EXPECT_TRUE(a.peers.find(1)->dead.load());
}

TEST_F(Attended, ADeathInASlotBeyondTheTableIsNotHeard) {
  look_after_both();
  attendant.peer_died({kMaxProcesses, 0});
  EXPECT_TRUE(taken().empty());
}

TEST_F(Attended, APollInVainLetsTheClocksTimePass) {
  box::FakeClock clock;
  a.host.time = &clock;
  Attendant timed(a.host, a.pending, a.peers, a.transport);
  timed.look_after(first.row());
  EXPECT_TRUE(timed.progress(nullptr));
  EXPECT_EQ(clock.idled, 1);
  EXPECT_EQ(taken(), (Calls{"first polled", "first in turn"}));
}

TEST_F(Attended, AnEventThatThePollBringsIsTaken) {
  CompletionQueue* const queue = a.queues.create(8, 0).value();
  Event event;
  EXPECT_EQ(attendant.progress_and_take(*queue, &event), Errc::not_done);
  attendant.look_after({.poll = [queue] {
    (void)push_event(queue->view(), {EventKind::remote, Errc::ok, 5});
    return true;
  }});
  ASSERT_EQ(attendant.progress_and_take(*queue, &event), Errc::ok);
  EXPECT_EQ(event.data, 5u);
}

TEST_F(Attended, AThreadThatGoesToSleepHandsTheWireBack) {
  attendant.hand_frames_back();
  EXPECT_EQ(a.host.wires_handed_back, 1);
}

}  // namespace
}  // namespace orrery::nic
