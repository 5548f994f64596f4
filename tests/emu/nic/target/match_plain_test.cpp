// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/match_plain.hpp"

#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/nic/target/match_bench.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace orrery::nic::match {
namespace {

// What the initiator of a message learns.
struct Learnt {
  Fail fail = kDelivered;
  std::uint64_t start = 0, moved = 0;
  friend bool operator==(const Learnt&, const Learnt&) = default;
};

Learnt by_rules(Session& session, const Arrival& arrival) {
  const Verdict verdict = decide(session, arrival);
  if (verdict.fail != kDelivered) return {verdict.fail};
  finish(session, arrival, verdict, kDelivered);
  return {kDelivered, verdict.start + verdict.offset, verdict.moved};
}

// A message that deliver_plain() takes leaves what decide() and finish() leave; one that it does not take
// has changed nothing.
std::string both_ways_agree(std::uint64_t seed, int* taken) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const std::uint32_t options = below(4) == 0 ? std::uint32_t{kFlowControl} : 0;
  Bench plain(options), ruled(options);
  const std::uint32_t counter = plain.new_counter();
  if (ruled.new_counter() != counter) return "the benches differ";
  for (int i = 0; i < 60; ++i) {
    if (below(3) == 0) {
      NewEntry what = plain.entry(below(4), static_cast<std::uint64_t>(i), 0);
      if (below(8) != 0) what.options |= kOpPut;
      for (const std::uint32_t option :
           {kOpGet, kUseOnce, kNoCommEvent, kNoSuccessEvent, kCountComm, kCountBytes, kManageLocal,
            kNoTruncate, kAckDisable, kNoUnexpectedHeader})
        if (below(3) == 0) what.options |= option;
      if (below(4) == 0) what.ignore_bits = below(4);
      if (below(4) == 0) what.source.nid = static_cast<std::uint32_t>(below(3));
      if (below(6) == 0) what.uid = static_cast<std::uint32_t>(below(2));
      if (below(6) == 0) what.pieces = 2;
      if (below(6) == 0) what.list = kOverflow;
      what.counter = below(2) == 0 ? counter : 0;
      what.length = below(64);
      if (plain.put_in(what).code() != ruled.put_in(what).code()) return "append differs";
    }
    Arrival arrival = plain.message(below(4), below(40));
    arrival.move = below(3) == 0 ? Move::get : Move::put;
    arrival.initiator = {static_cast<std::uint32_t>(below(3)), 1};
    arrival.remote_offset = below(3) == 0 ? below(80) : 0;
    arrival.header_data = random();
    arrival.portal = below(20) == 0 ? 15 : plain.portal;
    arrival.interface = static_cast<std::uint8_t>(below(20) == 0 ? below(8) : 0);
    const bool can_move = below(5) != 0;
    Learnt first;
    {
      Session session(plain.view);
      Place place;
      std::uint64_t address = 0;
      std::uint64_t bytes = 0;
      const bool done = deliver_plain(session, arrival, &place, [&](std::uint64_t there, std::uint64_t n) {
        address = there;
        bytes = n;
        return can_move;
      });
      if (done && place.moved != 0 && (bytes != place.moved || !can_move)) return "other bytes are moved";
      if (done) {
        ++*taken;
        first = {kDelivered, place.moved != 0 ? address : plain.entry(0, 0).start + place.offset,
                 place.moved};
      } else {
        first = by_rules(session, arrival);
      }
    }
    Learnt second;
    {
      Session session(ruled.view);
      second = by_rules(session, arrival);
    }
    const std::string where = " in message " + std::to_string(i);
    if (!(first == second)) return "the outcome differs" + where;
    const Counter& a = plain.view.counter(counter);
    const Counter& b = ruled.view.counter(counter);
    if (a.success != b.success || a.failure != b.failure) return "the counter differs" + where;
    if (a.shown_success != a.success || b.shown_success != b.success || a.shown_failure != a.failure)
      return "the counter shows another value" + where;
    for (EventRecord event{}, other{};;) {
      const bool some = plain.next(&event);
      if (some != ruled.next(&other)) return "one way tells more" + where;
      if (!some) break;
      if (!(event == other)) return "the events differ" + where;
    }
    const PortalEntry& here = plain.view.portal(0, plain.portal);
    const PortalEntry& there = ruled.view.portal(0, ruled.portal);
    if (here.count[0] != there.count[0] || here.header_count != there.header_count ||
        here.enabled != there.enabled || here.in_flight != there.in_flight)
      return "the portal differs" + where;
  }
  return "";
}

TEST(MatchPlain, LeavesWhatTheRulesLeave) {
  int taken = 0;
  box::for_every_seed(200, 20'000, [&](std::uint64_t seed) { return both_ways_agree(seed, &taken); });
  EXPECT_GT(taken, 0) << "no message goes the plain way";
}

TEST(MatchPlain, LeavesTriggersAndSleepersToTheRules) {
  Bench bench;
  const std::uint32_t counter = bench.new_counter();
  NewEntry what = bench.entry(7, 1, kOpPut | kNoLinkEvent | kCountComm);
  what.counter = counter;
  ASSERT_TRUE(bench.put_in(what).ok());
  Session session(bench.view);
  Place place;
  const auto deliver = [&] {
    return deliver_plain(session, bench.message(7), &place,
                         [](std::uint64_t, std::uint64_t) { return true; });
  };
  EXPECT_TRUE(deliver());
  ASSERT_TRUE(arm(session, counter, 5, Operation{}).ok());
  EXPECT_FALSE(deliver());
  cancel(session, counter);
  EXPECT_TRUE(deliver());
  ASSERT_TRUE(watch(session, counter, 9));
  EXPECT_FALSE(deliver());
  unwatch(session, counter);
  EXPECT_TRUE(deliver());
  EXPECT_EQ(bench.view.counter(counter).success, 3u);
}

}  // namespace
}  // namespace orrery::nic::match
