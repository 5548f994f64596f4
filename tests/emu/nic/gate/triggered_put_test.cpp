// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/triggered_put.hpp"

#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace orrery::nic {
namespace {

// Node a has a put to b that waits for a counter of a.
struct TriggeredPut : ::testing::Test {
  parts::Pair pair;
  parts::Node& a = pair.a;
  parts::Node& b = pair.b;
  parts::Poster poster{a};
  CounterPool counters{a.host.view};
  Triggered ours{a.host, a.pending, 0, a.peers, a.router, poster.initiator, true};
  parts::Poster poster_b{b};
  Triggered theirs{b.host, b.pending, 1, b.peers, b.router, poster_b.initiator, true};
  CounterName trigger = counters.create().value();
  CounterName ended = counters.create().value();
  alignas(4096) std::array<std::uint64_t, 512> source{};
  alignas(4096) std::array<std::uint64_t, 512> target{};
  MemKey from = a.expose(source.data(), sizeof source);
  MemKey to = b.expose(target.data(), sizeof target);

  Request put() {
    source[0] = 11;
    Request request;
    request.op = Op::put;
    request.local_address = reinterpret_cast<std::uint64_t>(source.data());
    request.remote_address = reinterpret_cast<std::uint64_t>(target.data());
    request.length = 8;
    request.local = from;
    request.remote = to;
    return request;
  }
  Status post() { return ours.post_put(trigger, 2, poster.endpoint, put(), ended, {.success = 1}); }
  CounterValue value(CounterName name) { return counters.get(name).value(); }
};

TEST_F(TriggeredPut, PollsLookFurtherFromTheFirstOneOn) {
  EXPECT_TRUE(a.pending.is_quiet());
  ASSERT_TRUE(post().ok());
  EXPECT_FALSE(a.pending.is_quiet());
}

TEST_F(TriggeredPut, IsPostedByItsOwnerWhenTheCounterIsThere) {
  ASSERT_TRUE(post().ok());
  ASSERT_EQ(ours.add(trigger, {.success = 1}, false), Errc::ok);
  pair.settle();
  EXPECT_EQ(target[0], 0u);
  ASSERT_EQ(ours.add(trigger, {.failure = 1}, false), Errc::ok) << "failures count, too";
  pair.settle();
  EXPECT_EQ(target[0], 11u);
  EXPECT_EQ(value(ended).success, 1u);
}

TEST_F(TriggeredPut, WithinACallOfTheNicItWaitsForTheNextLook) {
  ASSERT_TRUE(post().ok());
  a.host.view.service().poller = Poller::none;
  ASSERT_EQ(ours.add(trigger, {.success = 2}, true), Errc::ok);
  EXPECT_EQ(ours.unit().pending(), 1u);
  EXPECT_EQ(a.host.self_rings, 1) << "the service thread sleeps";
  EXPECT_TRUE(ours.unit().run(TriggerUnit::Look::at_signals));
  pair.settle();
  EXPECT_EQ(target[0], 11u);
}

TEST_F(TriggeredPut, APeerThatReachesBothEndsCarriesItOut) {
  a.host.same_space = b.host.same_space = true;
  (void)b.peers.connect(b.host.self());
  ASSERT_TRUE(post().ok());
  ASSERT_EQ(theirs.add(a.host.self(), trigger, {.success = 2}), Errc::ok);
  EXPECT_EQ(target[0], 11u) << "its owner has not moved";
  EXPECT_EQ(value(ended).success, 1u);
  EXPECT_EQ(ours.unit().pending(), 0u);
}

// Source and target are the owner's own: the same registration, or two of one segment.
struct TriggeredPutToItself : TriggeredPut {
  TriggeredPutToItself() {
    a.host.same_space = true;
    poster.endpoint.remote_nic_address = 0;
    for (parts::Node* node : {&a, &b}) (void)node->peers.connect(a.host.self());
  }
  void post_within(const MemKey& remote, std::uint64_t* to_word, std::uint64_t length = 8) {
    Request request = put();
    request.remote = remote;
    request.remote_address = reinterpret_cast<std::uint64_t>(to_word);
    request.length = length;
    ASSERT_TRUE(ours.post_put(trigger, 2, poster.endpoint, request, ended, {.success = 1}).ok());
    ASSERT_EQ(ours.unit().pending(), 1u);
  }
  void add_as_peer() {
    ASSERT_EQ(theirs.add(a.host.self(), trigger, {.success = 2}), Errc::ok);
    EXPECT_EQ(ours.unit().pending(), 0u) << "a peer carries it out";
    for (auto& word : a.host.view.hazards(1).slot) EXPECT_EQ(word.load(), 0u);
  }
};

TEST_F(TriggeredPutToItself, WithinOneRegistration) {
  post_within(from, &source[64]);
  add_as_peer();
  EXPECT_EQ(source[64], 11u);
  EXPECT_EQ(value(ended), (CounterValue{1, 0}));
}

TEST_F(TriggeredPutToItself, BetweenTwoRegistrations) {
  const MemKey second = a.expose(target.data(), sizeof target);
  post_within(second, &target[64]);
  add_as_peer();
  EXPECT_EQ(target[64], 11u);
  EXPECT_EQ(value(ended), (CounterValue{1, 0}));
}

TEST_F(TriggeredPutToItself, BeyondTheRegistrationIsAFailure) {
  post_within(from, &source[511], 16);
  add_as_peer();
  EXPECT_EQ(source[511], 0u);
  EXPECT_EQ(value(ended), (CounterValue{0, 1}));
}

TEST_F(TriggeredPutToItself, AnOldKeyOfTheSameEntryIsAFailure) {
  MemKey old = from;
  old.generation = static_cast<std::uint16_t>(old.generation + 1);
  post_within(old, &source[64]);
  add_as_peer();
  EXPECT_EQ(source[64], 0u);
  EXPECT_EQ(value(ended), (CounterValue{0, 1}));
}

TEST_F(TriggeredPutToItself, OutOfARegistrationThatMayNotBeWrittenIsAFailure) {
  from = a.expose(source.data(), sizeof source, kReadOnly);
  post_within(from, &source[64]);
  add_as_peer();
  EXPECT_EQ(source[64], 0u);
  EXPECT_EQ(value(ended), (CounterValue{0, 1}));
}

TEST_F(TriggeredPut, APeerThatDoesNotLeavesItToTheOwnerAndRings) {
  ASSERT_TRUE(post().ok());
  a.host.view.service().poller = Poller::none;
  ASSERT_EQ(theirs.add(a.host.self(), trigger, {.success = 2}), Errc::ok);
  EXPECT_EQ(target[0], 0u);
  EXPECT_EQ(a.host.rings, 1);
  EXPECT_TRUE(ours.unit().run(TriggerUnit::Look::at_signals));
  pair.settle();
  EXPECT_EQ(target[0], 11u);
  EXPECT_EQ(value(ended).success, 1u);
}

TEST_F(TriggeredPut, ThatIsRefusedAtItsTargetCountsAsAFailure) {
  ASSERT_TRUE(post().ok());
  ASSERT_TRUE(b.regions.deregister(to).ok());
  ASSERT_EQ(ours.add(trigger, {.success = 2}, false), Errc::ok);
  pair.settle();
  EXPECT_EQ(value(ended).success, 0u);
  EXPECT_EQ(value(ended).failure, 1u);
}

TEST_F(TriggeredPut, AsksForNoEventsHereAndNamesACounterThatIs) {
  Request request = put();
  request.flags = kGlobalEvent;
  EXPECT_EQ(ours.post_put(trigger, 1, poster.endpoint, request, ended, {1, 0}).code(), Errc::invalid_param);
  const CounterName gone = counters.create().value();
  ASSERT_TRUE(counters.destroy(gone).ok());
  EXPECT_EQ(ours.post_put(trigger, 1, poster.endpoint, put(), gone, {1, 0}).code(), Errc::invalid_handle);
  poster.endpoint.bound = false;
  EXPECT_EQ(ours.post_put(trigger, 1, poster.endpoint, put(), ended, {1, 0}).code(), Errc::invalid_state);
}

TEST_F(TriggeredPut, OfACounterThatIsGoneIsAnError) {
  ASSERT_TRUE(counters.destroy(trigger).ok());
  EXPECT_EQ(ours.add(trigger, {1, 0}, false), Errc::invalid_handle);
  EXPECT_EQ(theirs.add(a.host.self(), trigger, {1, 0}), Errc::invalid_handle);
  EXPECT_EQ(theirs.add({3, 0}, trigger, {1, 0}), Errc::unreachable);
}

}  // namespace
}  // namespace orrery::nic
