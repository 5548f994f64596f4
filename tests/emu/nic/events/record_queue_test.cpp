// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/record_queue.hpp"

#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/seeds.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

EventRecord numbered(std::uint64_t n) {
  return {.kind = static_cast<std::uint8_t>(n),
          .status = Errc::bounds,
          .list = 1,
          .operation = 2,
          .type = 3,
          .fail_type = 4,
          .source = 5,
          .index = static_cast<std::uint32_t>(n * 3),
          .uid = 7,
          .initiator = n * 5,
          .start = n * 7,
          .user = n * 11,
          .header_data = n * 13,
          .match_bits = n * 17,
          .requested = n * 19,
          .delivered = n * 23,
          .offset = n * 29,
          .extra = {n, n + 1, n + 2}};
}
constexpr std::uint64_t kSelf = claimer_word(1, 0);

class Records : public ::testing::Test {
 protected:
  Nic& nic() { return world_[0].nic(); }
  RecordQueue& make(std::uint32_t depth) { return *nic().record_queues().create(depth).value(); }
  // As a producer that got as far as its claim.
  static void claim_and_die(const RecordQueueView& view, std::size_t place, std::uint64_t claimer) {
    view.places[place].claimer.store(claimer);
    view.places[place].control.fetch_or(1);
  }
  box::World world_{3, box::Path::direct};
  EventRecord record_;
  bool gap_ = false;
};

TEST_F(Records, ComeOutWholeAndInTheOrderTheyWentInOverManyLaps) {
  RecordQueue& queue = make(4);
  const auto view = open_record_queue(nic().view(), queue.ring().index()).value();
  std::uint64_t in = 0, out = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < round % 5; ++i) ASSERT_EQ(push_record(view, numbered(in++), kSelf), Errc::ok);
    while (queue.take(&record_, &gap_) == Errc::ok) {
      ASSERT_EQ(record_, numbered(out++));
      ASSERT_FALSE(gap_);
    }
    ASSERT_EQ(in, out);
  }
}

TEST_F(Records, FullQueueKeepsWhatItHasAndTellsOfTheGapWithTheNextEvent) {
  RecordQueue& queue = make(3);
  for (std::uint64_t i = 1; i <= 3; ++i) ASSERT_EQ(push_record(queue.view(), numbered(i), kSelf), Errc::ok);
  EXPECT_EQ(push_record(queue.view(), numbered(4), kSelf), Errc::overrun) << "3 were asked for, not 4";
  EXPECT_EQ(push_record(queue.view(), numbered(5), kSelf), Errc::overrun);
  EXPECT_EQ(queue.lost(), 2u);
  ASSERT_EQ(queue.take(&record_, &gap_), Errc::ok);
  EXPECT_FALSE(gap_);
  ASSERT_EQ(push_record(queue.view(), numbered(6), kSelf), Errc::ok);
  for (const std::uint64_t expected : {2, 3, 6}) {
    ASSERT_EQ(queue.take(&record_, &gap_), Errc::ok);
    EXPECT_EQ(record_, numbered(expected));
    EXPECT_EQ(gap_, expected == 6) << "4 and 5 are missing before 6";
  }
  EXPECT_EQ(queue.lost(), 0u);
  EXPECT_EQ(queue.take(&record_, &gap_), Errc::not_done);
  ASSERT_EQ(push_record(queue.view(), numbered(7), kSelf), Errc::ok);
  ASSERT_EQ(queue.take(&record_, &gap_), Errc::ok);
  EXPECT_FALSE(gap_) << "told once";
}

TEST_F(Records, RoomThatIsKeptIsForThoseWhoMayUseIt) {
  RecordQueue& queue = make(4);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(push_record(queue.view(), numbered(i), kSelf, 1), Errc::ok);
  EXPECT_EQ(push_record(queue.view(), numbered(3), kSelf, 1), Errc::overrun);
  EXPECT_EQ(push_record(queue.view(), numbered(4), kSelf, 0), Errc::ok);
}

TEST_F(Records, PlacesOfTheDeadAreRepairedAndThoseOfTheLivingAreNot) {
  RecordQueue& queue = make(4);
  ASSERT_EQ(push_record(queue.view(), numbered(1), claimer_word(1, 0)), Errc::ok);  // published, then dies
  claim_and_die(queue.view(), 1, claimer_word(1, 0));
  claim_and_die(queue.view(), 2, claimer_word(1, 9));  // of another process in that slot, long dead
  claim_and_die(queue.view(), 3, claimer_word(2, 0));  // lives
  world_.kill(1);
  EXPECT_EQ(queue.take(&record_, &gap_), Errc::ok) << "what was published counts";
  EXPECT_EQ(record_, numbered(1));
  const auto claimed = [&](std::size_t place) { return queue.view().places[place].control.load() & 1; };
  EXPECT_EQ(claimed(1), 0u);
  EXPECT_EQ(claimed(2), 0u);
  EXPECT_EQ(claimed(3), 1u);
  EXPECT_TRUE(queue.has_claims());
  // The others go on, past the claimed place, for many laps.
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(push_record(queue.view(), numbered(i), kSelf), Errc::ok);
    ASSERT_EQ(queue.take(&record_, &gap_), Errc::ok);
    ASSERT_EQ(record_, numbered(i));
  }
}

TEST_F(Records, QueuesAreMadeAndDestroyedAndStaleProducersFindNothing) {
  EXPECT_EQ(nic().record_queues().create(0).code(), Errc::invalid_param);
  EXPECT_EQ(nic().record_queues().create(RecordQueues::kMaxRecordDepth + 1).code(), Errc::invalid_param);
  RecordQueue* queue = &make(8);
  const std::uint32_t index = queue->ring().index();
  const RecordQueueView stale = queue->view();
  const std::uint64_t serial = stale.places[0].control.load();
  ASSERT_EQ(push_record(stale, numbered(1), kSelf), Errc::ok);
  ASSERT_TRUE(nic().record_queues().destroy(queue).ok());
  EXPECT_FALSE(open_record_queue(nic().view(), index).has_value());
  queue = &make(8);
  EXPECT_EQ(queue->view().places, stale.places) << "its room is used again";
  EXPECT_GT(queue->view().places[0].control.load(), serial);
  EXPECT_EQ(queue->take(&record_, &gap_), Errc::not_done);
  EXPECT_FALSE(open_record_queue(nic().view(), kMaxQueues).has_value());
  CompletionQueue* plain = nic().create_queue(4, 0).value();
  EXPECT_FALSE(open_record_queue(nic().view(), plain->index()).has_value());
}

TEST_F(Records, SlotsThatMakeNoSenseArePassedOver) {
  RecordQueue& queue = make(4);
  (void)push_event(queue.view().queue, {EventKind::record, Errc::ok, 99});
  (void)push_event(queue.view().queue, {EventKind::remote, Errc::ok, 0});
  ASSERT_EQ(push_record(queue.view(), numbered(1), kSelf), Errc::ok);
  ASSERT_EQ(queue.take(&record_, &gap_), Errc::ok);
  EXPECT_EQ(record_, numbered(1));
}

TEST_F(Records, SleeperOnSeveralQueuesIsWoken) {
  RecordQueue& a = make(4);
  RecordQueue& b = make(4);
  std::thread waiter([&] {
    CompletionQueue* const rings[] = {&a.ring(), &b.ring()};
    EXPECT_EQ(nic().waits().wait_any(rings, std::nullopt, [] { return false; }).value(), 1u);
  });
  while (b.view().queue.state->waiters.load() == 0) std::this_thread::yield();
  ASSERT_EQ(push_record(b.view(), numbered(1), kSelf), Errc::ok);
  waiter.join();
}

// Producers of other processes and of the owner, consumers in several threads: every record is taken once and
// whole, and each consumer sees those of one producer in its order.
TEST_F(Records, ManyProducersAndConsumers) {
  RecordQueue& queue = make(64);
  constexpr std::uint64_t kEach = 4000;
  constexpr std::uint64_t kProducers = 3;
  std::atomic<std::uint64_t> taken{0};
  std::vector<std::atomic<std::uint32_t>> seen(kProducers * kEach);
  std::vector<std::thread> threads;
  for (std::uint64_t p = 0; p < kProducers; ++p) {
    threads.emplace_back([&, p] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        while (push_record(queue.view(), numbered(p * kEach + i),
                           claimer_word(static_cast<std::uint16_t>(p), 0)) != Errc::ok)
          std::this_thread::yield();
      }
    });
  }
  for (int c = 0; c < 2; ++c) {
    threads.emplace_back([&] {
      std::vector<std::uint64_t> last(kProducers, 0);
      EventRecord record;
      bool gap = false;
      while (taken.load() < kProducers * kEach) {
        if (queue.take(&record, &gap) != Errc::ok) {
          std::this_thread::yield();
          continue;
        }
        taken.fetch_add(1);
        const std::uint64_t n = record.extra[0];
        ASSERT_LT(n, kProducers * kEach);
        ASSERT_EQ(record, numbered(n));
        ASSERT_GE(n + 1, last[n / kEach]) << "out of its producer's order";
        last[n / kEach] = n + 1;
        seen[n].fetch_add(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (auto& count : seen) ASSERT_EQ(count.load(), 1u);
  EXPECT_FALSE(queue.has_claims());
}

// A seeded world against a plain deque: pushes, takes, losses, producers that die with a claim.
std::string records_as_the_model_says(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  box::World world(4, box::Path::direct);
  const auto depth = static_cast<std::uint32_t>(1 + random() % 9);
  RecordQueue& queue = *world[0].nic().record_queues().create(depth).value();
  std::deque<std::pair<std::uint64_t, std::uint64_t>> model;  // number, lost before it
  std::uint64_t next = 0, lost = 0, seen = 0;
  int left = 3;
  for (int step = 0; step < 400; ++step) {
    const std::uint64_t choice = random() % 100;
    if (choice < 50) {
      const auto from = static_cast<std::uint16_t>(random() % static_cast<std::uint64_t>(left + 1));
      const Errc pushed = push_record(queue.view(), numbered(next), claimer_word(from, 0));
      const Errc expected = model.size() < depth ? Errc::ok : Errc::overrun;
      if (pushed != expected) return fmt::format("a push ended in {}", errc_name(pushed));
      if (pushed == Errc::ok)
        model.emplace_back(next, lost);
      else
        ++lost;
      ++next;
    } else if (choice < 98) {
      EventRecord record;
      bool gap = false;
      const Errc found = queue.take(&record, &gap);
      if ((found == Errc::ok) != !model.empty()) return "another number of events";
      if (model.empty()) continue;
      if (record != numbered(model.front().first)) return "another event";
      if (gap != (model.front().second != seen)) return "a gap where there is none, or none where there is";
      seen = model.front().second;
      model.pop_front();
    } else if (left > 0) {
      // Dies with a claim that it did not publish.
      for (std::uint64_t i = 0; i < queue.view().capacity; ++i) {
        RecordPlace& place = queue.view().places[i];
        if ((place.control.load() & 1) != 0) continue;
        place.claimer.store(claimer_word(static_cast<std::uint16_t>(left), 0));
        place.control.fetch_or(1);
        break;
      }
      world.kill(left--);
    }
  }
  EventRecord record;
  bool gap = false;
  while (queue.take(&record, &gap) == Errc::ok) model.pop_front();
  if (!model.empty()) return "events are missing";
  return queue.has_claims() ? "a place stays claimed" : "";
}

TEST(RecordsInABox, AreAsTheModelSays) { box::for_every_seed(300, 100'000, records_as_the_model_says); }

}  // namespace
}  // namespace orrery::nic
