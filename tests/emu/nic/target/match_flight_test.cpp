// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/nic/target/match_bench.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace orrery::nic::match {
namespace {

class MessagesOfTheDead : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kDead = mover_of(3, 5), kAlive = mover_of(3, 6);
  Verdict begin(const Arrival& arrival, std::uint64_t mover) {
    Session session(bench.view);
    return accept(session, arrival, mover);
  }
  void end_those_of_the_dead() {
    Session session(bench.view);
    end_flights(session, [](std::uint64_t mover) { return mover == kDead; });
  }
  void end(const Arrival& arrival, const Verdict& verdict) {
    Session session(bench.view);
    finish(session, arrival, verdict, kDelivered);
  }
  void append_overflow() {
    NewEntry overflow = bench.entry(0, 1, kOpPut | kNoLinkEvent | kNoSuccessEvent);
    overflow.list = kOverflow;
    overflow.ignore_bits = UINT64_MAX;
    ASSERT_TRUE(bench.put_in(overflow).ok());
  }
  const Bench bench;
};

TEST_F(MessagesOfTheDead, EndAsUndeliverableAndThoseOfTheLivingGoOn) {
  const Appended entry = bench.put_in(bench.entry(7, 1, kOpPut | kNoLinkEvent)).value();
  const Arrival arrival = bench.message(7);
  const Verdict first = begin(arrival, kDead);
  const Verdict second = begin(arrival, kAlive);
  const Verdict third = begin(arrival, kDead);
  EXPECT_EQ(bench.view.portal(0, bench.portal).in_flight, 3u);
  end_those_of_the_dead();
  EXPECT_EQ(bench.view.portal(0, bench.portal).in_flight, 1u);
  EventRecord event{};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(bench.next(&event));
    EXPECT_EQ(event.type, kEventPut);
    EXPECT_EQ(event.fail, kUndeliverable);
    EXPECT_EQ(event.moved, 0u);
  }
  EXPECT_EQ(bench.next_type(), -1);
  // One that has left its job, but lives, comes to its end late: another message may be in its place.
  const Verdict fourth = begin(arrival, kAlive);
  end(arrival, first);
  end(arrival, third);
  EXPECT_EQ(bench.next_type(), -1);
  EXPECT_EQ(bench.view.entry(entry.entry).in_flight, 2u);
  end(arrival, second);
  end(arrival, fourth);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(bench.next(&event));
    EXPECT_EQ(event.fail, kDelivered);
  }
  EXPECT_EQ(bench.view.portal(0, bench.portal).in_flight, 0u);
  EXPECT_EQ(bench.view.header().flight_pool.in_use, 0u);
  Session session(bench.view);
  EXPECT_TRUE(unlink(session, entry.entry, entry.generation).ok());
}

TEST_F(MessagesOfTheDead, LeaveNoHeaderThatAnEntryCouldTake) {
  append_overflow();
  ASSERT_NE(begin(bench.message(7), kDead).unexpected, 0u);
  end_those_of_the_dead();
  EXPECT_EQ(bench.next_type(), static_cast<int>(kEventPut));  // a failure is told whatever options say
  EXPECT_EQ(bench.view.header().header_pool.in_use, 0u);
  ASSERT_TRUE(bench.put_in(bench.entry(7, 2, kOpPut | kUseOnce | kNoLinkEvent)).ok());
  EXPECT_EQ(bench.next_type(), -1);
  EXPECT_EQ(bench.view.portal(0, bench.portal).count[kPriority], 1u);
}

TEST_F(MessagesOfTheDead, FailForTheEntryThatHasTakenTheirHeader) {
  append_overflow();
  ASSERT_NE(begin(bench.message(7), kDead).unexpected, 0u);
  NewEntry what = bench.entry(7, 2, kOpPut | kUseOnce | kNoUnlinkEvent | kCountOverflow);
  what.counter = bench.new_counter();
  ASSERT_TRUE(bench.put_in(what).ok());
  end_those_of_the_dead();
  EventRecord event{};
  do {
    ASSERT_TRUE(bench.next(&event));
  } while (event.user != 2);
  EXPECT_EQ(event.type, kEventPut + 1);
  EXPECT_EQ(event.fail, kUndeliverable);
  EXPECT_EQ(event.moved, 0u);
  EXPECT_EQ(bench.view.counter(what.counter).success, 0u);
  EXPECT_EQ(bench.view.counter(what.counter).failure, 1u);
  EXPECT_EQ(bench.view.header().header_pool.in_use, 0u);
}

// Where there is no room to note them, messages are counted all the same.
TEST_F(MessagesOfTheDead, AreOfAsManyMessagesAsThereIsRoomFor) {
  ASSERT_TRUE(bench.put_in(bench.entry(7, 1, kOpPut | kNoLinkEvent | kNoCommEvent)).ok());
  const Arrival arrival = bench.message(7);
  std::vector<Verdict> verdicts;
  for (std::uint32_t i = 0; i < kSmallShape.flights + 5; ++i) verdicts.push_back(begin(arrival, kAlive));
  EXPECT_EQ(verdicts.back().flight, 0u);
  EXPECT_EQ(bench.view.portal(0, bench.portal).in_flight, kSmallShape.flights + 5);
  for (const Verdict& verdict : verdicts) end(arrival, verdict);
  EXPECT_EQ(bench.view.portal(0, bench.portal).in_flight, 0u);
  EXPECT_EQ(bench.view.header().flight_pool.in_use, 0u);
}

}  // namespace
}  // namespace orrery::nic::match
