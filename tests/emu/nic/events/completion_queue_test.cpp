// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/completion_queue.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

Event numbered(std::uint64_t data) { return {EventKind::remote, Errc::ok, data}; }

class CompletionQueueTest : public ::testing::Test {
 protected:
  CompletionQueue& make(std::uint32_t depth, std::uint32_t mode = 0) {
    return *nic().create_queue(depth, mode).value();
  }
  Nic& nic() { return world_[0].nic(); }
  box::World world_{1, box::Path::direct};
};

TEST_F(CompletionQueueTest, EventsComeOutInTheOrderTheyWentInOverManyLaps) {
  CompletionQueue& queue = make(4);
  std::uint64_t in = 0, out = 0;
  Event event;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < round % 5; ++i) {
      ASSERT_EQ(push_event(queue.view(), {EventKind::cq_write, Errc::bounds, in++}), Errc::ok);
    }
    while (queue.take(&event) == Errc::ok) {
      ASSERT_EQ(event.data, out++);
      ASSERT_EQ(event.kind, EventKind::cq_write);
      ASSERT_EQ(event.status, Errc::bounds);
    }
    ASSERT_EQ(in, out);
  }
}

TEST_F(CompletionQueueTest, FullQueueRefusesKeepsWhatItHasAndReportsEachLostEventAfterIt) {
  CompletionQueue& queue = make(2);
  ASSERT_EQ(push_event(queue.view(), numbered(1)), Errc::ok);
  ASSERT_EQ(push_event(queue.view(), numbered(2)), Errc::ok);
  EXPECT_EQ(push_event(queue.view(), numbered(3)), Errc::overrun);
  EXPECT_EQ(push_event(queue.view(), numbered(4)), Errc::overrun);
  Event event;
  for (const std::uint64_t expected : {1, 2}) {
    ASSERT_EQ(queue.take(&event), Errc::ok);
    EXPECT_EQ(event.data, expected);
  }
  EXPECT_EQ(queue.test(), Errc::overrun) << "it stays until it is taken";
  for (int lost = 0; lost < 2; ++lost) {
    EXPECT_EQ(queue.take(&event), Errc::overrun);
    EXPECT_EQ(event.kind, EventKind::overrun);
  }
  EXPECT_EQ(queue.take(&event), Errc::not_done);
  EXPECT_EQ(push_event(queue.view(), numbered(5)), Errc::ok);
}

TEST_F(CompletionQueueTest, UnmanagedQueueSwallowsWhatDoesNotFit) {
  CompletionQueue& queue = make(1, kUnmanaged);
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(push_event(queue.view(), numbered(i)), Errc::ok);
  Event event;
  EXPECT_EQ(queue.take(&event), Errc::ok);
  EXPECT_EQ(queue.take(&event), Errc::not_done) << "and reports no overrun";
}

TEST_F(CompletionQueueTest, QueueOfOnePlaceWorks) {
  CompletionQueue& queue = make(1);
  Event event;
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(push_event(queue.view(), numbered(i)), Errc::ok);
    ASSERT_EQ(push_event(queue.view(), numbered(99)), Errc::overrun);
    ASSERT_EQ(queue.take(&event), Errc::ok);
    ASSERT_EQ(event.data, i);
    ASSERT_EQ(queue.take(&event), Errc::overrun);
  }
}

TEST_F(CompletionQueueTest, StaleHintOfAProducerThatDiedOrSleptCostsStepsButNothingElse) {
  CompletionQueue& queue = make(8);
  Event event;
  const std::uint64_t start = queue.view().state->tail_hint.load();
  for (std::uint64_t i = 0; i < 100; ++i) {
    // As if the last producer had not come to store its hint, or one of long ago had just done it.
    queue.view().state->tail_hint = i % 3 == 0 ? start : start + i / 2;
    ASSERT_EQ(push_event(queue.view(), numbered(2 * i)), Errc::ok);
    ASSERT_EQ(push_event(queue.view(), numbered(2 * i + 1)), Errc::ok);
    for (const std::uint64_t expected : {2 * i, 2 * i + 1}) {
      ASSERT_EQ(queue.take(&event), Errc::ok);
      ASSERT_EQ(event.data, expected);
    }
  }
}

TEST_F(CompletionQueueTest, ProducerThatWasStalledInADestroyedQueueFindsNothingInTheOneThatHasItsRing) {
  // A producer reads its place, and sleeps; whatever becomes of the ring then, its swap must fail.
  for (const std::uint32_t next_depth : {8u, 5u}) {
    CompletionQueue& before = make(8);
    CompletionQueue& other = make(8);  // so that the place and the ring part ways
    const QueueView view = before.view();
    ASSERT_EQ(push_event(view, numbered(1)), Errc::ok);
    Event event;
    ASSERT_EQ(before.take(&event), Errc::ok);
    std::vector<std::pair<DoubleWord, CqSlot*>> seen;
    for (std::uint64_t i = 0; i < view.capacity; ++i) {
      seen.push_back({{view.slots[i].control.load(), view.slots[i].data.load()}, &view.slots[i]});
    }
    ASSERT_TRUE(nic().destroy_queue(&other).ok());
    ASSERT_TRUE(nic().destroy_queue(&before).ok());
    CompletionQueue& a = make(next_depth);
    CompletionQueue& b = make(next_depth);
    ASSERT_TRUE(a.view().slots == view.slots || b.view().slots == view.slots) << "the ring is used again";
    for (const auto& [expected, slot] : seen) {
      EXPECT_FALSE(double_word_cas(slot, expected,
                                   {slot_word::ready(slot_word::position(expected.low), numbered(9)), 9}));
    }
    EXPECT_EQ(a.take(&event), Errc::not_done);
    EXPECT_EQ(b.take(&event), Errc::not_done);
    ASSERT_TRUE(nic().destroy_queue(&a).ok());
    ASSERT_TRUE(nic().destroy_queue(&b).ok());
  }
}

TEST_F(CompletionQueueTest, RingOfNonsenseIsGivenUp) {
  CompletionQueue& queue = make(4);
  for (std::uint64_t i = 0; i < 4; ++i) queue.view().slots[i].control = slot_word::free(1ull << 40);
  EXPECT_EQ(push_event(queue.view(), numbered(1)), Errc::corrupt);
}

TEST_F(CompletionQueueTest, LookUpChecksWhatStandsInTheSegment) {
  CompletionQueue& queue = make(4);
  CqState& state = *queue.view().state;
  EXPECT_TRUE(open_queue(nic().view(), queue.index()).has_value());
  EXPECT_FALSE(open_queue(nic().view(), kMaxQueues).has_value());
  EXPECT_FALSE(open_queue(nic().view(), queue.index() + 1).has_value());
  const std::uint64_t capacity = state.capacity, offset = state.ring_offset;
  for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1} << 60}) {
    state.capacity = wrong;
    EXPECT_FALSE(open_queue(nic().view(), queue.index()).has_value()) << wrong;
  }
  state.capacity = capacity;
  for (const std::uint64_t wrong : {std::uint64_t{64}, offset + 8, UINT64_MAX & ~std::uint64_t{15}}) {
    state.ring_offset = wrong;
    EXPECT_FALSE(open_queue(nic().view(), queue.index()).has_value()) << wrong;
  }
  state.ring_offset = offset;
}

TEST_F(CompletionQueueTest, EventsOfSeveralProducersAllArriveOnceAndEachProducersInOrder) {
  // Property: every event names its producer and its number; the consumer sees each producer count 0, 1, 2
  // ... Refused events are pushed again. Hints are disturbed all the time.
  constexpr std::uint64_t kProducers = 4, kEvents = 5'000;
  CompletionQueue& queue = make(16);
  std::vector<std::thread> producers;
  for (std::uint64_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&queue, p] {
      for (std::uint64_t i = 0; i < kEvents; ++i) {
        while (push_event(queue.view(), numbered(p << 32 | i)) != Errc::ok) std::this_thread::yield();
      }
    });
  }
  std::vector<std::uint64_t> next(kProducers);
  std::uint64_t taken = 0;
  Event event;
  while (taken < kProducers * kEvents) {
    const Errc found = queue.take(&event);
    if (found != Errc::ok) {
      std::this_thread::yield();
      continue;
    }
    ++taken;
    const std::uint64_t producer = event.data >> 32;
    ASSERT_LT(producer, kProducers);
    ASSERT_EQ(event.data & UINT32_MAX, next[producer]++);
  }
  for (auto& producer : producers) producer.join();
  while (queue.take(&event) == Errc::overrun) {
  }
  EXPECT_EQ(queue.take(&event), Errc::not_done);
}

TEST_F(CompletionQueueTest, SleeperIsWokenByAnEventOfAnotherThread) {
  CompletionQueue& queue = make(16);
  for (int i = 0; i < 50; ++i) {
    std::thread producer([&] { ASSERT_EQ(push_event(queue.view(), numbered(7)), Errc::ok); });
    EXPECT_EQ(nic().waits().wait(queue, std::nullopt), Errc::ok);
    producer.join();
    Event event;
    ASSERT_EQ(queue.take(&event), Errc::ok);
  }
  EXPECT_EQ(queue.view().state->waiters.load(), 0u);
  EXPECT_EQ(nic().waits().wait(queue, monotonic_ns()), Errc::timeout);
}

TEST_F(CompletionQueueTest, TransactionsAreNamedOnceUntilTheirLastEventIsCollected) {
  CompletionQueue& queue = make(3);
  queue.become_source();
  int contexts[3];
  std::uint32_t names[3];
  for (int i = 0; i < 3; ++i) names[i] = queue.open_post(&contexts[i]);
  EXPECT_EQ(queue.open_post(nullptr), CompletionQueue::kNone);
  queue.expect_events(names[1], 2);
  EXPECT_EQ(queue.completed(names[1], Errc::ok).value().context, &contexts[1]);
  EXPECT_EQ(queue.posts_open(), 3u);
  EXPECT_EQ(queue.completed(names[1], Errc::ok).value().context, &contexts[1]);
  EXPECT_EQ(queue.completed(names[1], Errc::ok).code(), Errc::no_match);
  EXPECT_EQ(queue.completed(77, Errc::ok).code(), Errc::no_match);
  EXPECT_EQ(queue.open_post(nullptr), names[1]);
  queue.abandon_transaction(names[0]);
  EXPECT_EQ(queue.completed(names[0], Errc::ok).code(), Errc::no_match);
}

}  // namespace
}  // namespace orrery::nic
