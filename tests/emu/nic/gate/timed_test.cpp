// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/collective/tree.hpp"
#include "tests/emu/nic/gate/fake_clock.hpp"

#include <gtest/gtest.h>

#include <thread>

// Operations under a clock, with a clock that a test moves by hand.
namespace orrery::nic {
namespace {

using box::FakeClock;
using box::Path;
using box::Tree;
using box::World;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

// Node 0 posts to node 1, whose service thread runs all the time where packets need one.
struct Pair {
  explicit Pair(Path path)
      : world(2, path, {}, MAP_PRIVATE, World::kLaneBytes, &clock), target(64), source(64) {
    local = world[0].nic().create_queue(64, 0).value();
    remote = world[1].nic().create_queue(64, 0).value();
    key = world[1].nic().register_region(world[1].port(), address_of(target.data()), 512, 0, remote).value();
    endpoint = world.endpoint(0, 1, local);
    if (path == Path::frame) {
      service = std::jthread([this](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          world[1].nic().serve();
          yield_cpu();
        }
      });
    }
  }
  Request request(Op op, std::uint32_t flags = kGlobalEvent) {
    Request request;
    request.op = op;
    request.flags = flags;
    request.local_address = address_of(source.data());
    request.remote_address = address_of(target.data());
    request.length = 8;
    request.remote = key;
    return request;
  }
  Errc post(const Request& request) { return world[0].nic().post(*endpoint, request); }
  bool event_here() { return take(0, *local); }
  bool event_there() { return take(1, *remote); }
  bool take(int node, CompletionQueue& queue) {
    Event event;
    if (queue.take(&event) != Errc::ok) return false;
    if (node == 0) (void)queue.completed(event.transaction(), event.status);
    last = event.status;
    return true;
  }
  FakeClock clock;
  World world;
  std::vector<std::uint64_t> target, source;
  CompletionQueue *local = nullptr, *remote = nullptr;
  MemKey key;
  std::unique_ptr<Endpoint> endpoint;
  Errc last = Errc::ok;
  std::jthread service;
};

class Timed : public ::testing::TestWithParam<Path> {};
INSTANTIATE_TEST_SUITE_P(Paths, Timed, ::testing::Values(Path::direct, Path::frame),
                         [](const auto& info) { return info.param == Path::direct ? "Direct" : "Frame"; });

TEST_P(Timed, EachPartOfAPutComesAtItsTime) {
  Pair pair(GetParam());
  pair.source[0] = 7;
  ASSERT_EQ(pair.post(pair.request(Op::put, kGlobalEvent | kRemoteEvent)), Errc::ok);
  pair.source[0] = 8;  // its source was copied
  pair.clock.pass_to(199);
  EXPECT_EQ(pair.target[0], 0u);
  pair.clock.pass_to(200);
  EXPECT_EQ(pair.target[0], 7u);
  EXPECT_FALSE(pair.event_there());
  pair.clock.pass_to(300);
  EXPECT_TRUE(pair.event_there());
  EXPECT_FALSE(pair.event_here());
  EXPECT_FALSE(pair.endpoint->is_idle());
  pair.clock.pass_to(400);
  EXPECT_TRUE(pair.event_here());
  EXPECT_EQ(pair.last, Errc::ok);
  EXPECT_TRUE(pair.endpoint->is_idle());
  EXPECT_EQ(pair.clock.touched, (std::vector<std::uint32_t>{1, 1, 0}));
  EXPECT_TRUE(pair.clock.quiet());
}

TEST_P(Timed, AQueueStaysUntilItsEventHasCome) {
  Pair pair(GetParam());
  Nic& nic = pair.world[0].nic();
  CompletionQueue* const other = nic.create_queue(8, 0).value();
  other->become_source();
  pair.endpoint->queue = other;
  ASSERT_EQ(pair.post(pair.request(Op::put)), Errc::ok);
  pair.endpoint->queue = pair.local;
  pair.clock.pass_to(200);
  EXPECT_EQ(nic.destroy_queue(other).code(), Errc::no_resource);
  pair.clock.pass_to(400);
  Event event;
  EXPECT_EQ(other->take(&event), Errc::ok);
  EXPECT_TRUE(nic.destroy_queue(other).ok());
}

TEST_P(Timed, AGetReadsAtOneTimeAndStoresAtAnother) {
  Pair pair(GetParam());
  ASSERT_EQ(pair.post(pair.request(Op::get)), Errc::ok);
  pair.target[0] = 1;
  pair.clock.pass_to(99);
  pair.target[0] = 2;
  pair.clock.pass_to(100);
  pair.target[0] = 3;
  EXPECT_EQ(pair.source[0], 0u);
  pair.clock.pass_to(200);
  EXPECT_EQ(pair.source[0], 2u);
  EXPECT_FALSE(pair.event_here());
  pair.clock.pass_to(400);
  EXPECT_TRUE(pair.event_here());
}

TEST_P(Timed, PartsOfOneTimeComeOneAfterAnother) {
  Pair pair(GetParam());
  pair.clock.times = {Picos{50}, Picos{50}, Picos{50}, Picos{50}};
  pair.source[0] = 5;
  for (const Op op : {Op::put, Op::get}) {
    ASSERT_EQ(pair.post(pair.request(op, kGlobalEvent | kRemoteEvent)), Errc::ok);
    pair.clock.pass_to(pair.clock.now().count() + 50);
    EXPECT_TRUE(pair.event_there()) << static_cast<int>(op);
    EXPECT_TRUE(pair.event_here()) << static_cast<int>(op);
    EXPECT_TRUE(pair.clock.quiet());
  }
}

TEST_P(Timed, TheEventHereWaitsForTheEventThere) {
  Pair pair(GetParam());
  pair.clock.times.remote_event_at = Picos{900};
  ASSERT_EQ(pair.post(pair.request(Op::put, kGlobalEvent | kRemoteEvent)), Errc::ok);
  pair.clock.pass_to(899);
  EXPECT_FALSE(pair.event_here());
  pair.clock.pass_to(900);
  EXPECT_TRUE(pair.event_there());
  EXPECT_TRUE(pair.event_here());
}

TEST_P(Timed, WhatIsRefusedAtTheTargetSaysSoAtItsTime) {
  Pair pair(GetParam());
  ASSERT_EQ(pair.post(pair.request(Op::put, kGlobalEvent | kRemoteEvent)), Errc::ok);
  ASSERT_TRUE(pair.world[1].nic().deregister(pair.key).ok());
  pair.clock.pass_to(399);
  EXPECT_FALSE(pair.event_here());
  pair.clock.pass_to(400);
  ASSERT_TRUE(pair.event_here());
  EXPECT_NE(pair.last, Errc::ok);
  EXPECT_FALSE(pair.event_there());
  EXPECT_EQ(pair.target[0], 0u);
}

// The sequence by which an operation's packets are waited for is its own: the table's places may all be taken
// by the program's, which end only when this returns.
TEST(TimedFrames, GoOutWhenEveryPlaceForASequenceIsTheProgramsOwn) {
  Pair pair(Path::frame);
  int taken = 0;
  while (pair.world[0].nic().initiator().open_sequence() != nullptr) ++taken;
  ASSERT_EQ(taken, static_cast<int>(SequenceTable::kCapacity));
  pair.source[0] = 9;
  ASSERT_EQ(pair.post(pair.request(Op::put)), Errc::ok);
  pair.clock.pass_to(400);
  EXPECT_EQ(pair.target[0], 9u);
  EXPECT_TRUE(pair.event_here());
}

// ---- contributions to reductions ----

constexpr std::uint8_t kAdd = 0x15;  // IADD

// A root with two leaves of one process, which contribute through one endpoint.
struct Reduction {
  Reduction() : world(1, Path::direct, {}, MAP_PRIVATE, World::kLaneBytes, &clock), tree(world) {
    tree.results_per_leaf = 40;
    root = tree.vce(0, -1);
    tree.leaf(0, root);
    tree.leaf(0, root);
    queue = world[0].nic().create_queue(256, 0).value();
    endpoint = world.endpoint(0, 0, queue);
  }
  Errc join(int leaf, std::uint64_t reduction, std::uint64_t value, int which = 0) {
    Request request;
    request.flags = kGlobalEvent;
    const CeValue given{.operand = {value, 0}, .reduction = reduction, .command = kAdd, .two_operands = true};
    return world[0].nic().collective().post(*endpoint, tree.edge(leaf), request,
                                            tree.contribution(leaf, given, which));
  }
  int events() {
    int count = 0;
    Event event;
    for (; queue->take(&event) == Errc::ok; ++count) {
      last = event.status;
      (void)queue->completed(event.transaction(), event.status);
    }
    return count;
  }
  FakeClock clock;
  World world;
  Tree tree;
  int root = 0;
  CompletionQueue* queue = nullptr;
  std::unique_ptr<Endpoint> endpoint;
  Errc last = Errc::ok;
};

TEST(TimedJoin, TheResultIsThereWhenTheLastContributionsIs) {
  Reduction r;
  ASSERT_TRUE(r.tree.configure());
  ASSERT_EQ(r.join(0, 1, 10), Errc::ok);
  r.clock.pass_to(500);
  ASSERT_EQ(r.join(1, 1, 32), Errc::ok);
  r.clock.pass_to(1000);
  r.tree.look();
  EXPECT_EQ(r.events(), 1) << "the first has arrived";
  EXPECT_FALSE(r.tree.done(0));
  r.clock.pass_to(1499);
  r.tree.look();
  EXPECT_FALSE(r.tree.done(0));
  EXPECT_EQ(r.clock.touched_all, 1);
  r.clock.pass_to(1500);
  r.tree.look();
  ASSERT_TRUE(r.tree.done(0));
  EXPECT_EQ(r.tree.result(0, 1), 42u);
  EXPECT_EQ(r.tree.result(1, 1), 42u);
  EXPECT_EQ(r.clock.touched_all, 2) << "waiters in the tree look again";
  EXPECT_EQ(r.events(), 1);
  EXPECT_TRUE(r.endpoint->is_idle());
}

TEST(TimedJoin, ALaneIsTakenWhileItsContributionIsOnItsWay) {
  Reduction r;
  ASSERT_TRUE(r.tree.configure());
  ASSERT_EQ(r.join(0, 5, 1), Errc::ok);
  EXPECT_EQ(r.join(0, 5 + kCeLanes, 1, 1), Errc::no_resource) << "the same lane";
  EXPECT_EQ(r.clock.idled, 1) << "a program that tries again lets time pass";
  EXPECT_EQ(r.join(0, 6, 1, 2), Errc::ok) << "another lane";
  EXPECT_EQ(r.join(1, 5, 1), Errc::ok) << "another child";
  EXPECT_EQ(r.join(1, 6, 1, 2), Errc::ok);
  r.clock.pass_to(1000);
  r.tree.look();
  EXPECT_TRUE(r.tree.done(0));
  EXPECT_EQ(r.join(0, 5 + kCeLanes, 1, 1), Errc::ok) << "it has arrived";
  EXPECT_EQ(r.join(1, 5 + kCeLanes, 1, 1), Errc::ok);
  r.clock.pass_to(2000);
  r.tree.look();
  EXPECT_TRUE(r.tree.done(0, 1));
}

TEST(TimedJoin, ARefusedContributionIsToldAtItsTimeAndLeavesTheClockQuiet) {
  Reduction r;  // its tree is never configured
  const Errc joined = r.join(0, 1, 1);
  if (joined == Errc::ok) {
    r.clock.pass_to(1000);
    r.tree.look();
    EXPECT_EQ(r.events(), 1);
  }
  EXPECT_TRUE(r.clock.quiet()) << "a task that comes again and again would hide a deadlock";
  EXPECT_TRUE(r.endpoint->is_idle());
}

TEST(TimedJoin, GivesItsRoomBackWhenNoEventCanBeOpened) {
  Reduction r;
  ASSERT_TRUE(r.tree.configure());
  std::vector<std::uint32_t> open;
  for (std::uint32_t t = 0; (t = r.queue->open_post(nullptr)) != CompletionQueue::kNone;) open.push_back(t);
  EXPECT_NE(r.join(0, 1, 1), Errc::ok);
  EXPECT_TRUE(r.clock.quiet());
  for (const std::uint32_t t : open) r.queue->abandon_transaction(t);
  EXPECT_EQ(r.join(0, 1, 1), Errc::ok) << "the lane is free";
  EXPECT_EQ(r.join(1, 1, 1), Errc::ok);
  r.clock.pass_to(1000);
  r.tree.look();
  EXPECT_TRUE(r.tree.done(1));
}

}  // namespace
}  // namespace orrery::nic
