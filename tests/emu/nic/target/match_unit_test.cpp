// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/match_unit.hpp"

#include "tests/emu/nic/target/match_bench.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <vector>

namespace orrery::nic::match {
namespace {

TEST(MatchUnit, GivesAMessageToTheFirstEntryOfItsBits) {
  const Bench bench;
  ASSERT_TRUE(bench.put_in(bench.entry(5, 1)).ok());
  ASSERT_TRUE(bench.put_in(bench.entry(5, 2)).ok());
  EXPECT_EQ(bench.send(bench.message(5)).fail, kDelivered);
  EventRecord event{};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(bench.next(&event));  // LINK, LINK, PUT
  EXPECT_EQ(event.type, kEventPut);
  EXPECT_EQ(event.user, 1u);
  EXPECT_EQ(event.moved, 8u);
}

TEST(MatchUnit, DropsAMessageThatNoEntryTakesAndCountsIt) {
  const Bench bench;
  EXPECT_EQ(bench.send(bench.message(5)).fail, kDropped);
  EXPECT_EQ(bench.view.interface(0).status[0], 1);
}

TEST(MatchUnit, RefusesPortalsAndInterfacesThatAreNotThere) {
  const Bench bench;
  Arrival arrival = bench.message(1);
  arrival.portal = 15;
  EXPECT_EQ(bench.send(arrival).fail, kDropped);
  arrival.portal = 0xffff'ffff;
  EXPECT_EQ(bench.send(arrival).fail, kDropped);
  arrival.interface = 3;
  EXPECT_EQ(bench.send(arrival).fail, kUndeliverable);
  arrival.interface = 200;
  EXPECT_EQ(bench.send(arrival).fail, kUndeliverable);
}

TEST(MatchUnit, StopsAFlowControlledPortalOnceAndGoesOnWhenItIsEnabled) {
  const Bench bench(kFlowControl);
  EXPECT_EQ(bench.send(bench.message(5)).fail, kPortalDisabled);
  EXPECT_EQ(bench.send(bench.message(5)).fail, kPortalDisabled);
  EXPECT_EQ(bench.next_type(), kEventPortalDisabled);
  EXPECT_EQ(bench.next_type(), -1);
  ASSERT_TRUE(bench.put_in(bench.entry(5, 1)).ok());
  {
    Session session(bench.view);
    session.set(bench.view.portal(0, bench.portal).enabled, 1u);
  }
  EXPECT_EQ(bench.send(bench.message(5)).fail, kDelivered);
}

TEST(MatchUnit, StopsAFlowControlledPortalBeforeItsQueueLosesAnEvent) {
  const Bench bench(kFlowControl, kSmallShape, 8);
  ASSERT_TRUE(bench.put_in(bench.entry(5, 1)).ok());  // one event
  int delivered = 0;
  while (bench.send(bench.message(5)).fail == kDelivered) ++delivered;
  EXPECT_EQ(delivered, 7);  // behind one event of an entry
  EXPECT_EQ(bench.next_type(), kEventLink);
  for (int i = 0; i < delivered; ++i) EXPECT_EQ(bench.next_type(), kEventPut);
  EXPECT_EQ(bench.next_type(), kEventPortalDisabled);
}

// A queue of one event takes the first message, with the second event that it raises, and that of the stop.
TEST(MatchUnit, TakesAMessageUnderFlowControlUntilTheQueueIsFull) {
  const Bench bench(kFlowControl, kSmallShape, 1);
  const std::uint32_t quiet = kOpPut | kNoLinkEvent;
  ASSERT_TRUE(bench.put_in(bench.entry(4, 1, quiet | kUseOnce)).ok());
  ASSERT_TRUE(bench.put_in(bench.entry(5, 2, quiet)).ok());
  ASSERT_TRUE(bench.put_in(bench.entry(6, 3, quiet | kNoCommEvent)).ok());
  Arrival put = bench.message(4);
  EXPECT_EQ(bench.send(put).fail, kDelivered);
  put.match_bits = 6;  // raises nothing: a full queue is no hindrance
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bench.send(put).fail, kDelivered);
  put.match_bits = 5;
  EXPECT_EQ(bench.send(put).fail, kPortalDisabled);
  EXPECT_EQ(bench.next_type(), kEventPut);
  EXPECT_EQ(bench.next_type(), kEventAutoUnlink);
  EXPECT_EQ(bench.next_type(), kEventPortalDisabled);
  EXPECT_EQ(bench.next_type(), -1);
}

// Messages that are accepted before any of them has ended raise all their events.
TEST(MatchUnit, LosesNoEventOfMessagesUnderWayUnderFlowControl) {
  const Bench bench(kFlowControl, kSmallShape, 4);
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(bench.put_in(bench.entry(5, 1, kOpPut | kNoLinkEvent | kUseOnce)).ok());
  std::vector<Verdict> taken;
  for (;;) {
    Session session(bench.view);
    const Verdict verdict = accept(session, bench.message(5));
    if (verdict.fail != kDelivered) break;
    taken.push_back(verdict);
  }
  EXPECT_GE(taken.size(), 4u);
  EXPECT_LT(taken.size(), 200u);
  for (const Verdict& verdict : taken) {
    Session session(bench.view);
    finish(session, bench.message(5), verdict, kDelivered);
  }
  std::map<int, std::size_t> events;
  EventRecord event{};
  for (Took took = Took::event; took != Took::empty;) {
    took = take(bench.view, bench.queue, &event);
    EXPECT_NE(took, Took::event_after_loss);
    if (took != Took::empty) ++events[event.type];
    if (took == Took::empty && has_untold_stops(bench.view)) {
      Session session(bench.view);
      tell_stops(session, bench.queue);
      took = Took::event;
    }
  }
  EXPECT_EQ(events[kEventPut], taken.size());
  EXPECT_EQ(events[kEventAutoUnlink], taken.size());
  EXPECT_EQ(events[kEventPortalDisabled], 1u);
}

TEST(MatchUnit, TellsOfEveryPortalThatStopsThoughTheirQueueIsShort) {
  const Bench bench(kFlowControl, kSmallShape, 1);
  constexpr std::uint32_t kMany = 300;
  bench.view.interface(0).portals = kMany;
  {
    Session session(bench.view);
    for (std::uint32_t i = 1; i < kMany; ++i) {
      ASSERT_TRUE(open_portal(session, 0, i, kFlowControl, bench.queue).ok());
      session.commit_if_long();
    }
  }
  Arrival put = bench.message(5);
  for (put.portal = 0; put.portal < kMany; ++put.portal) EXPECT_EQ(bench.send(put).fail, kPortalDisabled);
  EXPECT_TRUE(has_untold_stops(bench.view));
  std::set<std::uint32_t> stopped;
  const auto take_all = [&] {
    EventRecord event{};
    for (;;) {
      const Took took = take(bench.view, bench.queue, &event);
      ASSERT_NE(took, Took::event_after_loss);
      if (took == Took::empty) return;
      EXPECT_EQ(event.type, kEventPortalDisabled);
      EXPECT_TRUE(stopped.insert(event.portal).second) << event.portal;
    }
  };
  take_all();
  EXPECT_LT(stopped.size(), kMany);
  {  // one that is closed is told of no more, and keeps none from being told
    Session session(bench.view);
    ASSERT_TRUE(close_portal(session, 0, kMany - 1).ok());
  }
  while (has_untold_stops(bench.view)) {
    const std::size_t before = stopped.size();
    {
      Session session(bench.view);
      tell_stops(session, bench.queue);
    }
    take_all();
    ASSERT_GT(stopped.size(), before);
  }
  EXPECT_EQ(stopped.size(), kMany - 1);
}

TEST(MatchUnit, TellsOfLostEventsWithTheNextOne) {
  const Bench bench(0, kSmallShape, 4);
  ASSERT_TRUE(bench.put_in(bench.entry(5, 1)).ok());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(bench.send(bench.message(5)).fail, kDelivered);
  EventRecord event{};
  EXPECT_EQ(take(bench.view, bench.queue, &event), Took::event_after_loss);
  EXPECT_EQ(take(bench.view, bench.queue, &event), Took::event);
}

// An event whose numbers are small takes one line of its slot, others take two: neither loses anything.
TEST(MatchUnit, GivesAnEventBackAsItWasRaised) {
  const Bench bench;
  EventRecord small{};
  small.start = UINT64_MAX - 1;
  small.user = UINT64_MAX - 2;
  small.header_data = UINT64_MAX - 3;
  small.match_bits = UINT64_MAX - 4;
  small.asked = small.moved = UINT32_MAX;
  small.remote_offset = UINT32_MAX - 1;
  small.initiator = {UINT32_MAX - 5, 0xffff};
  small.uid = UINT32_MAX - 6;
  small.portal = kMaxPortals - 1;
  small.type = kEventSearch;
  small.list = kOverflow;
  small.fail = kSegv;
  small.operation = 19;
  small.datatype = 24;
  std::vector<EventRecord> events{EventRecord{}, small};
  const auto and_with = [&](auto change) {
    events.push_back(small);
    change(events.back());
    events.push_back(EventRecord{});
    change(events.back());
  };
  and_with([](EventRecord& e) { e.asked = e.moved = std::uint64_t{1} << 40; });
  and_with([](EventRecord& e) { e.moved = e.asked + 1; });
  and_with([](EventRecord& e) { e.remote_offset = UINT64_MAX; });
  and_with([](EventRecord& e) { e.initiator.pid = UINT32_MAX; });
  and_with([](EventRecord& e) { e.descriptor = 1; });
  and_with([](EventRecord& e) { e.link = UINT32_MAX; });
  and_with([](EventRecord& e) { e.jid = 1; });
  and_with([](EventRecord& e) { e.options = 1u << 31; });
  and_with([](EventRecord& e) { e.threshold = -1; });
  and_with([](EventRecord& e) { e.length = 1; });
  and_with([](EventRecord& e) { e.max_size = UINT64_MAX; });
  {
    Session session(bench.view);
    for (const EventRecord& event : events) raise(session, bench.queue, event);
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    EventRecord got{};
    ASSERT_TRUE(bench.next(&got));
    EXPECT_EQ(got, events[i]) << "event " << i;
  }
}

TEST(MatchUnit, CountsNoMessageInFlightThatOneSessionFinishes) {
  const Bench bench;
  const Appended appended = bench.put_in(bench.entry(1, 0, kOpPut | kUseOnce)).value();
  const Arrival arrival = bench.message(1);
  {
    Session session(bench.view);
    const Verdict verdict = decide(session, arrival);
    ASSERT_EQ(verdict.fail, kDelivered);
    EXPECT_FALSE(verdict.in_flight);
    EXPECT_EQ(bench.view.entry(appended.entry).in_flight, 0u);
    finish(session, arrival, verdict, kDelivered);
  }
  EXPECT_EQ(bench.view.entry(appended.entry).state, kFree);
  ASSERT_TRUE(bench.put_in(bench.entry(2, 0)).ok());
  const Arrival longer = bench.message(2);
  Verdict held;
  {
    Session session(bench.view);
    held = decide(session, longer);
    hold(session, longer, &held);
    hold(session, longer, &held);  // once
  }
  EXPECT_EQ(bench.view.entry(held.entry).in_flight, 1u);
  EXPECT_EQ(bench.view.portal(0, bench.portal).in_flight, 1u);
  Session session(bench.view);
  finish(session, longer, held, kDelivered);
  EXPECT_EQ(bench.view.entry(held.entry).in_flight, 0u);
  EXPECT_EQ(bench.view.portal(0, bench.portal).in_flight, 0u);
}

TEST(MatchUnit, KeepsAnUnexpectedMessageForTheEntryThatComesLater) {
  const Bench bench;
  NewEntry overflow = bench.entry(0, 1);
  overflow.list = kOverflow;
  overflow.ignore_bits = UINT64_MAX;
  ASSERT_TRUE(bench.put_in(overflow).ok());
  EXPECT_EQ(bench.send(bench.message(7)).list, kOverflow);
  ASSERT_TRUE(bench.put_in(bench.entry(7, 2, kOpPut | kUseOnce)).ok());
  const int expected[] = {kEventLink, kEventPut, kEventPut + 1, kEventAutoUnlink, -1};
  for (const int type : expected) EXPECT_EQ(bench.next_type(), type);
}

// Several messages may raise a counter before the thread that sleeps for it runs again.
TEST(MatchUnit, KeepsTheFirstValueThatASleeperWaitedFor) {
  const Bench bench;
  const std::uint32_t counter = bench.new_counter();
  Session session(bench.view);
  const Counter& word = bench.view.counter(counter);
  ASSERT_TRUE(watch(session, counter, 2));
  EXPECT_FALSE(watch(session, counter, 3)) << "one sleeper a counter";
  count(session, counter, 1, 0);
  EXPECT_EQ(word.seen_success, 0u);
  for (int i = 0; i < 3; ++i) count(session, counter, 1, 0);
  EXPECT_EQ(word.seen_success, 2u);
  EXPECT_EQ(word.success, 4u);
  unwatch(session, counter);
  EXPECT_FALSE(watch(session, counter, 4)) << "it is true already";
  ASSERT_TRUE(watch(session, counter, 9));
  count(session, counter, 0, 1);
  EXPECT_EQ(word.seen_success, 4u);
  EXPECT_EQ(word.seen_failure, 1u);
  unwatch(session, counter);
}

// An entry takes a header whose bytes are still on their way: it hears of it when they are there.
TEST(MatchUnit, TellsOfAnUnexpectedMessageOnlyWhenItsBytesAreThere) {
  const Bench bench;
  NewEntry overflow = bench.entry(0, 1, kOpPut | kNoLinkEvent | kNoCommEvent);
  overflow.list = kOverflow;
  overflow.ignore_bits = UINT64_MAX;
  ASSERT_TRUE(bench.put_in(overflow).ok());
  const Arrival arrival = bench.message(7);
  Verdict verdict;
  {
    Session session(bench.view);
    verdict = accept(session, arrival);
  }
  ASSERT_TRUE(bench.put_in(bench.entry(7, 2, kOpPut | kUseOnce | kNoUnlinkEvent)).ok());
  EXPECT_EQ(bench.next_type(), -1);
  {
    Session session(bench.view);
    finish(session, arrival, verdict, kDelivered);
  }
  EventRecord event{};
  ASSERT_TRUE(bench.next(&event));
  EXPECT_EQ(event.type, kEventPut + 1);
  EXPECT_EQ(event.user, 2u);
}

// An interface is closed, and opened again, while an unexpected message is on its way into it.
TEST(MatchUnit, LetsTheHeaderOfAClosedInterfaceGoWithItsMessage) {
  const Bench bench;
  NewEntry overflow = bench.entry(0, 1, kOpPut);
  overflow.list = kOverflow;
  overflow.ignore_bits = UINT64_MAX;
  ASSERT_TRUE(bench.put_in(overflow).ok());
  const Arrival arrival = bench.message(7);
  Session session(bench.view);
  const Verdict first = accept(session, arrival);
  forget_interface(session, 0);
  EXPECT_EQ(bench.view.header().header_pool.in_use, 1u);
  ASSERT_TRUE(open_portal(session, 0, arrival.portal, 0, 0).ok());
  ASSERT_TRUE(append(session, overflow).ok());
  const Verdict second = accept(session, arrival);
  EXPECT_NE(second.unexpected, first.unexpected);
  EXPECT_NE(second.entry, first.entry);
  finish(session, arrival, first, kDelivered);
  EXPECT_EQ(bench.view.unexpected(second.unexpected).arriving, 1);
  finish(session, arrival, second, kDelivered);
  EXPECT_EQ(bench.view.header().header_pool.in_use, 1u);
  EXPECT_EQ(bench.view.header().entry_pool.in_use, 1u);
}

TEST(MatchUnit, DoesNotUnlinkAnEntryThatAMessageIsOnItsWayInto) {
  const Bench bench;
  const Appended entry = bench.put_in(bench.entry(7, 1)).value();
  const Arrival arrival = bench.message(7);
  Session session(bench.view);
  const Verdict verdict = accept(session, arrival);
  EXPECT_EQ(unlink(session, entry.entry, entry.generation).code(), Errc::not_done);
  EXPECT_EQ(accept(session, arrival).fail, kDropped);  // it takes no more meanwhile
  finish(session, arrival, verdict, kDelivered);
  EXPECT_TRUE(unlink(session, entry.entry, entry.generation).ok());
  EXPECT_EQ(unlink(session, entry.entry, entry.generation).code(), Errc::invalid_handle);
}

TEST(MatchUnit, GivesEveryDocumentedCodeWhenAPoolIsFullAndRecovers) {
  Shape shape = kSmallShape;
  shape.entries = 4;
  shape.headers = 3;
  shape.triggers = 3;
  const Bench bench(0, shape);
  std::vector<Appended> entries;
  for (int i = 0; i < 3; ++i)
    entries.push_back(bench.put_in(bench.entry(1, 1, kOpPut | kNoLinkEvent)).value());
  EXPECT_EQ(bench.put_in(bench.entry(1, 1)).code(), Errc::no_resource);
  {
    Session session(bench.view);
    ASSERT_TRUE(unlink(session, entries[0].entry, entries[0].generation).ok());
  }
  NewEntry overflow = bench.entry(9, 1, kOpPut | kNoLinkEvent | kNoCommEvent);
  overflow.list = kOverflow;
  ASSERT_TRUE(bench.put_in(overflow).ok());
  EXPECT_EQ(bench.send(bench.message(9)).fail, kDelivered);
  EXPECT_EQ(bench.send(bench.message(9)).fail, kDelivered);
  EXPECT_EQ(bench.send(bench.message(9)).fail, kDropped);
  {
    Session session(bench.view);
    ASSERT_TRUE(search(session, bench.entry(9, 2), true).ok());
  }
  EXPECT_EQ(bench.send(bench.message(9)).fail, kDelivered);

  const std::uint32_t counter = bench.new_counter();
  Session session(bench.view);
  const Operation operation{};
  EXPECT_TRUE(arm(session, counter, 1, operation).ok());
  EXPECT_TRUE(arm(session, counter, 1, operation).ok());
  EXPECT_EQ(arm(session, counter, 1, operation).code(), Errc::no_resource);
  cancel(session, counter);
  EXPECT_TRUE(arm(session, counter, 1, operation).ok());
}

TEST(MatchUnit, FiresTriggersByThresholdAndThenByTheOrderOfTheirArming) {
  const Bench bench;
  const std::uint32_t counter = bench.new_counter();
  Session session(bench.view);
  const std::pair<std::uint64_t, std::uint64_t> armed[] = {{5, 1}, {2, 2}, {5, 3}, {2, 4}, {9, 5}};
  for (const auto& [threshold, user] : armed) {
    Operation operation{};
    operation.user = user;
    ASSERT_TRUE(arm(session, counter, threshold, operation).ok());
  }
  count(session, counter, 3, 0);
  count(session, counter, 0, 2);  // failures count as well
  std::vector<std::uint64_t> fired;
  Operation operation{};
  while (take_due(session, &operation)) fired.push_back(operation.user);
  EXPECT_EQ(fired, (std::vector<std::uint64_t>{2, 4, 1, 3}));
  operation.user = 6;
  ASSERT_TRUE(arm(session, counter, 5, operation).ok());  // reached already
  ASSERT_TRUE(take_due(session, &operation));
  EXPECT_EQ(operation.user, 6u);
}

TEST(MatchUnit, RefusesAStateThatDoesNotFitItsSize) {
  const Bench bench;
  ASSERT_TRUE(View::open(bench.base(), bench.bytes()).ok());
  EXPECT_EQ(View::open(bench.base(), 64).code(), Errc::corrupt);
  EXPECT_EQ(View::open(bench.base(), bench.bytes() / 2).code(), Errc::corrupt);
  bench.view.header().entries += std::uint64_t{1} << 40;
  EXPECT_EQ(View::open(bench.base(), bench.bytes()).code(), Errc::corrupt);
}

// A hundred thousand exact entries: matching one must not walk them.
TEST(MatchUnit, HoldsAHundredThousandEntriesAndFindsTheLast) {
  Shape shape;
  shape.ring_bytes = 1u << 20;
  const Bench bench(0, shape);
  constexpr std::uint64_t kEntries = 100'000;
  for (std::uint64_t i = 0; i < kEntries; ++i)
    ASSERT_TRUE(bench.put_in(bench.entry(i, i, kOpPut | kUseOnce | kNoLinkEvent | kNoUnlinkEvent)).ok());
  for (std::uint64_t i = kEntries; i-- != 0;) ASSERT_EQ(bench.send(bench.message(i)).fail, kDelivered) << i;
  EXPECT_EQ(bench.send(bench.message(1)).fail, kDropped);
  EXPECT_EQ(bench.view.header().entry_pool.in_use, 0u);
}

// Property: whatever threads append and send, each message is delivered or dropped once, each entry is used
// once.
TEST(MatchUnit, GivesEachEntryToOneMessageWhenThreadsCompete) {
  const Bench bench(0, kSmallShape, 16'384);
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  std::vector<int> delivered(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        if (!bench.put_in(bench.entry(3, 1, kOpPut | kUseOnce | kNoLinkEvent | kNoUnlinkEvent)).ok()) return;
        if (bench.send(bench.message(3)).fail == kDelivered) ++delivered[static_cast<std::size_t>(t)];
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const int count : delivered) EXPECT_EQ(count, kEach);  // each thread left an entry before each message
  int events = 0;
  while (bench.next_type() == kEventPut) ++events;
  EXPECT_EQ(events, kThreads * kEach);
  EXPECT_EQ(bench.view.header().entry_pool.in_use, 0u);
}

}  // namespace
}  // namespace orrery::nic::match
