// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Single rules of Portals 3.3 in the match unit.
#include "tests/emu/nic/target/match_classic_bench.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace orrery::nic::match::classic {
namespace {

// Neither a message whose bytes cannot be moved now, nor one that accept() drops, leaves anything.
TEST(MatchClassic, TheShortWayLeavesOtherMessagesAlone) {
  Bench3 bench;
  const Mover cannot{[](void*, std::uint64_t, std::uint64_t) { return false; }, nullptr};
  const Mover can{[](void*, std::uint64_t, std::uint64_t) { return true; }, nullptr};
  Memory memory{.start = 0x10000,
                .length = 100,
                .given_length = 100,
                .threshold = -1,
                .options = kAllowPut,
                .queue = bench.queue};
  Session session(bench.view);
  const std::uint32_t index = insert(session, {.portal = 0, .source = {kAny, kAny}, .match_bits = 7}).value();
  ASSERT_TRUE(attach(session, index, memory, false).ok());
  const auto delivers = [&](const Arrival& arrival, const Mover& mover) {
    int behind = 0;
    return deliver_shortly(session, arrival, mover, &behind);
  };
  const auto changes = [&](const auto& change) {
    change(memory);
    EXPECT_TRUE(update(session, index, memory).ok());
  };
  Arrival arrival{.move = Move::put, .match_bits = 7, .length = 8};
  EXPECT_FALSE(delivers(arrival, cannot));
  EXPECT_EQ(bench.view.queue(bench.queue).tail, 0u);
  arrival.match_bits = 8;
  EXPECT_FALSE(delivers(arrival, can));
  arrival.match_bits = 7;
  EXPECT_TRUE(delivers(arrival, can));
  EXPECT_EQ(bench.view.queue(bench.queue).tail, 2u);
  EXPECT_EQ(bench.view.entry(index).local_offset, 8u);
  changes([](Memory& it) { it.threshold = 3; });
  EXPECT_FALSE(delivers(arrival, can));
  changes([](Memory& it) { it.threshold = -1, it.options |= kAllowGet; });
  EXPECT_FALSE(delivers(arrival, can)) << "a swap may be under way there";
  changes([](Memory& it) { it.options = kAllowPut | kMaxSize; });
  EXPECT_FALSE(delivers(arrival, can));
  EXPECT_EQ(bench.view.queue(bench.queue).tail, 2u);
}

TEST(MatchClassic, ADescriptorDecidesWhetherItsMessagesAreAcknowledged) {
  for (const bool quiet : {false, true}) {
    const Bench3 bench;
    Session session(bench.view);
    const auto index = insert(session, {.portal = 1, .source = {kAny, kAny}, .match_bits = 7});
    ASSERT_TRUE(index.ok());
    const Memory memory{.length = 64, .threshold = -1, .options = kAllowPut | (quiet ? kNoAck : 0u)};
    ASSERT_TRUE(attach(session, index.value(), memory, false).ok());
    Arrival arrival = bench.message(7);
    arrival.portal = 1;
    const Verdict verdict = match::accept(session, arrival);
    ASSERT_EQ(verdict.fail, kDelivered);
    EXPECT_EQ(verdict.no_ack, quiet);
    match::finish(session, arrival, verdict, kDelivered);
  }
}

TEST(MatchClassic, TellsHowFarAReaderIsBehindUntilEventsAreLost) {
  const Bench3 bench;
  Session session(bench.view);
  const auto index = insert(session, {.portal = 1, .source = {kAny, kAny}, .match_bits = 7});
  ASSERT_TRUE(index.ok());
  const Memory memory{.length = 64, .threshold = -1, .options = kAllowPut | kNoStart, .queue = bench.queue};
  ASSERT_TRUE(attach(session, index.value(), memory, false).ok());
  Arrival arrival = bench.message(7, 0);
  arrival.portal = 1;
  const std::uint64_t capacity = bench.view.queue(bench.queue).capacity;
  std::vector<std::uint64_t> reached(4);  // the first event with which the reader is that far behind
  std::uint64_t last = 0;
  for (std::uint64_t n = 1; n <= 2 * capacity; ++n) {
    const Verdict verdict = match::accept(session, arrival);
    ASSERT_EQ(verdict.fail, kDelivered);
    match::finish(session, arrival, verdict, kDelivered);
    session.commit();
    const int behind = quarters_behind(session, index.value());
    if (reached[behind] == 0) reached[behind] = n;
    if (behind != 0) last = n;
  }
  const std::uint64_t half = capacity / 2;
  EXPECT_EQ(reached, (std::vector<std::uint64_t>{1, 0, half, half + half / 2}));
  EXPECT_EQ(last, capacity - kSpareSlots - 1);
}

// A message that was taken without an event of its beginning is one that the queue will tell of.
TEST(MatchClassic, AMessageUnderWayThatHasToldNothingIsNotOverlooked) {
  for (const bool silent : {false, true}) {
    const Bench3 bench;
    const Memory memory{
        .length = 64, .threshold = -1, .options = kAllowPut | (silent ? kNoStart : 0u), .queue = bench.queue};
    {
      Session session(bench.view);
      const auto index = insert(session, {.portal = 1, .source = {kAny, kAny}, .match_bits = 7});
      ASSERT_TRUE(index.ok() && attach(session, index.value(), memory, false).ok());
    }
    Arrival arrival = bench.message(7);
    arrival.portal = 1;
    const auto reads_all = [&] {
      EventRecord event;
      int n = 0;
      while (bench.next(&event)) ++n;
      return n;
    };
    const auto quiet = [&] { return is_quiet(Session(bench.view), bench.queue); };
    EXPECT_TRUE(quiet());
    Verdict verdict;
    {
      Session session(bench.view);
      verdict = match::accept(session, arrival);
    }
    ASSERT_EQ(verdict.fail, kDelivered);
    EXPECT_FALSE(quiet());
    EXPECT_EQ(reads_all(), silent ? 0 : 1);
    EXPECT_EQ(quiet(), !silent);
    {
      Session session(bench.view);
      match::finish(session, arrival, verdict, kDelivered);
    }
    EXPECT_FALSE(quiet());
    EXPECT_EQ(reads_all(), 1);
    EXPECT_TRUE(quiet());
  }
}

// An entry that is to go with its descriptor does so when the descriptor is taken away; neither goes while a
// message is under way into it.
TEST(MatchClassic, AnEntryThatUnlinksGoesWithADescriptorThatIsDetached) {
  const Bench3 bench;
  const Memory memory{.length = 64, .threshold = -1, .options = kAllowPut};
  Arrival arrival = bench.message(7);
  arrival.portal = 1;
  for (const bool entry_unlinks : {false, true}) {
    for (const bool unlinks : {false, true}) {
      Session session(bench.view);
      const auto index =
          insert(session, {.portal = 1, .source = {kAny, kAny}, .match_bits = 7, .unlinks = entry_unlinks});
      ASSERT_TRUE(index.ok() && attach(session, index.value(), memory, unlinks).ok());
      const Verdict verdict = match::accept(session, arrival);
      ASSERT_EQ(verdict.fail, kDelivered);
      EXPECT_EQ(detach(session, index.value()).code(), Errc::not_done);
      EXPECT_EQ(bench.view.portal(0, 1).count[kPriority], 1u);
      match::finish(session, arrival, verdict, kDelivered);
      EXPECT_TRUE(detach(session, index.value()).ok());
      EXPECT_EQ(bench.view.portal(0, 1).count[kPriority], entry_unlinks ? 0u : 1u);
      EXPECT_EQ(bench.view.header().entry_pool.in_use, entry_unlinks ? 0u : 1u);
      if (!entry_unlinks) {
        EXPECT_TRUE(remove(session, index.value()).ok());
      }
      EXPECT_EQ(bench.view.header().entry_pool.in_use, 0u);
    }
  }
}

// An interface is closed while messages are on their way into it: their entries go with the last of them.
TEST(MatchClassic, AnInterfaceThatIsClosedKeepsNoEntryOfAMessageUnderWay) {
  const Bench3 bench;
  Arrival arrival = bench.message(7);
  arrival.portal = 1;
  Session session(bench.view);
  const auto index = insert(session, {.portal = 1, .source = {kAny, kAny}, .match_bits = 7});
  ASSERT_TRUE(index.ok());
  ASSERT_TRUE(attach(session, index.value(),
                     {.length = 64, .threshold = -1, .options = kAllowPut, .queue = bench.queue}, false)
                  .ok());
  const auto bound = bind(session, 0, {.length = 64, .threshold = -1}, false);
  ASSERT_TRUE(bound.ok());
  const Verdict verdict = match::accept(session, arrival);
  ASSERT_EQ(verdict.fail, kDelivered);
  const Side side = hold(session, bound.value());
  forget_descriptors(session);
  forget_interface(session, 0);
  match::finish(session, arrival, verdict, kDelivered);
  let_go(session, side);
  EXPECT_EQ(bench.view.header().entry_pool.in_use, 0u);
  EXPECT_EQ(bench.view.interface(0).entries, 0u);
}

}  // namespace
}  // namespace orrery::nic::match::classic
