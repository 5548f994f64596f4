// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A process that dies after any instruction of a change of a match unit leaves it as it was before the
// change, or as it is after it; and the next one goes on.
#include "emu/nic/target/match_plain.hpp"
#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/nic/target/match_bench.hpp"
#include "tests/emu/stepper.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

namespace orrery::nic::match {
namespace {

// All lists lead where they should, each item is in one list or free, and the counts are theirs.
void check(const View& view) {
  const Header& header = view.header();
  std::set<std::uint32_t> free;
  for (std::uint32_t i = header.entry_pool.free_first; i != 0; i = view.entry(i).free_next) {
    ASSERT_LT(i, header.entry_pool.fresh);
    ASSERT_TRUE(free.insert(i).second) << "a free entry is there twice";
  }
  ASSERT_EQ(header.entry_pool.in_use + free.size() + 1, header.entry_pool.fresh);
  const PortalEntry& portal = view.portal(0, 0);
  std::set<std::uint32_t> linked;
  const auto walk = [&](std::uint32_t first, std::uint32_t last) {
    std::uint32_t previous = 0;
    for (std::uint32_t i = first; i != 0; i = view.entry(i).next) {
      ASSERT_EQ(view.entry(i).previous, previous);
      ASSERT_EQ(free.count(i), 0u);
      ASSERT_TRUE(linked.insert(i).second);
      previous = i;
    }
    ASSERT_EQ(last, previous);
  };
  for (std::uint32_t i = 0; i < kBuckets; ++i) walk(view.bucket(i).first[0], view.bucket(i).last[0]);
  for (int list = 0; list < 2; ++list) walk(portal.wild_first[list], portal.wild_last[list]);
  ASSERT_EQ(linked.size(), portal.count[0] + portal.count[1]);
  std::uint32_t headers = 0;
  for (std::uint32_t i = portal.header_first; i != 0; i = view.unexpected(i).next) ++headers;
  ASSERT_EQ(headers, portal.header_count);
}

// One entry is linked that serves one message: a new one where a message took the last.
void link_for_one(Bench& bench, std::uint32_t options = 0) {
  while (bench.view.portal(0, 0).count[0] == 0)
    ASSERT_TRUE(bench.put_in(bench.entry(7, 1, kOpPut | kUseOnce | kNoLinkEvent | options)).ok());
}

class KillMatchAnywhere : public ::testing::Test {
 protected:
  // Kills a child after each instruction of `change` until one gets to its end. `settle` undoes what is
  // there.
  void run(Bench& bench, const std::function<void()>& prepare, const std::function<void()>& change,
           const std::function<void(bool whole)>& verify) {
    test::Stepper stepper;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr std::uint64_t kSanitizer = 40;  // times as many instructions, at the most
#else
    constexpr std::uint64_t kSanitizer = 1;
#endif
    const std::uint64_t most = kSanitizer * (box::long_tests() ? 20'000 : 3'000);
    const std::uint64_t stride = box::long_tests() ? 1 : kSanitizer == 1 ? 23 : 919;  // primes: no loop hides
    for (std::uint64_t limit = 1; limit < most; limit += stride) {
      prepare();
      const auto end = stepper.start(change, limit);
      if (end == test::Stepper::End::refused) ORRERY_SKIP("ptrace") << "ptrace is refused here";
      stepper.kill();
      ASSERT_NE(end, test::Stepper::End::crashed);
      { const Session session(bench.view); }  // the survivor takes the lock
      ASSERT_NO_FATAL_FAILURE(check(bench.view)) << "killed after " << limit << " instructions";
      ASSERT_NO_FATAL_FAILURE(verify(end == test::Stepper::End::finished)) << "killed after " << limit;
      if (end == test::Stepper::End::finished) return;
    }
    FAIL() << "the change is longer than " << most << " instructions";
  }
};

TEST_F(KillMatchAnywhere, AppendIsWholeOrDidNotHappen) {
  Bench bench;
  std::uint32_t before = 0;
  run(
      bench, [&] { before = bench.view.portal(0, 0).count[0]; },
      [&] { (void)bench.put_in(bench.entry(7, 1)); },
      [&](bool whole) {
        const std::uint32_t now = bench.view.portal(0, 0).count[0];
        ASSERT_TRUE(now == before + 1 || (!whole && now == before));
        ASSERT_EQ(bench.next_type(), now == before ? -1 : static_cast<int>(kEventLink));
        ASSERT_EQ(bench.view.header().entry_pool.in_use, now);
      });
}

TEST_F(KillMatchAnywhere, AppendOverAnUnexpectedMessageIsWholeOrDidNotHappen) {
  Bench bench;
  NewEntry overflow = bench.entry(0, 1, kOpPut | kNoLinkEvent | kNoCommEvent);
  overflow.list = kOverflow;
  overflow.ignore_bits = UINT64_MAX;
  ASSERT_TRUE(bench.put_in(overflow).ok());
  run(
      bench,
      [&] {
        while (bench.view.portal(0, 0).header_count == 0) (void)bench.send(bench.message(7));
      },
      [&] { (void)bench.put_in(bench.entry(7, 2, kOpPut | kUseOnce)); },
      [&](bool whole) {
        const bool taken = bench.view.portal(0, 0).header_count == 0;
        ASSERT_TRUE(taken || !whole);
        ASSERT_EQ(bench.next_type(), taken ? static_cast<int>(kEventPut + 1) : -1);
        ASSERT_EQ(bench.next_type(), taken ? static_cast<int>(kEventAutoUnlink) : -1);
        ASSERT_EQ(bench.view.header().entry_pool.in_use, 1u);
        ASSERT_EQ(bench.view.entry(1).held, bench.view.portal(0, 0).header_count);
      });
}

TEST_F(KillMatchAnywhere, AMatchIsWholeOrDidNotHappen) {
  Bench bench;
  run(
      bench, [&] { link_for_one(bench, kNoUnlinkEvent); },
      [&] {
        Session session(bench.view);
        (void)accept(session, bench.message(7));
      },
      [&](bool whole) {
        const bool taken = bench.view.portal(0, 0).count[0] == 0;
        ASSERT_TRUE(taken || !whole);
        // What it took is still counted in flight: its bytes are not there.
        if (!taken) {
          ASSERT_EQ(bench.view.entry(1).in_flight, 0u);
        }
      });
}

TEST_F(KillMatchAnywhere, AMatchsEndIsWholeOrDidNotHappen) {
  Bench bench;
  ASSERT_TRUE(bench.put_in(bench.entry(7, 1, kOpPut | kNoLinkEvent)).ok());
  Verdict verdict;
  const Arrival arrival = bench.message(7);
  run(
      bench,
      [&] {
        Session session(bench.view);
        if (bench.view.entry(1).in_flight == 0) verdict = accept(session, arrival);
      },
      [&] {
        Session session(bench.view);
        finish(session, arrival, verdict, kDelivered);
      },
      [&](bool whole) {
        const bool done = bench.view.entry(1).in_flight == 0;
        ASSERT_TRUE(done || !whole);
        ASSERT_EQ(bench.next_type(), done ? static_cast<int>(kEventPut) : -1);
      });
}

// Killed at any instruction of a match or behind it, a process leaves no message in flight once the survivor
// has ended those of the dead.
TEST_F(KillMatchAnywhere, WhatADeadProcessWasMovingIsEndedOnce) {
  Bench bench;
  run(
      bench, [&] { link_for_one(bench, kNoUnlinkEvent); },
      [&] {
        Session session(bench.view);
        (void)accept(session, bench.message(7), mover_of(1, 1));
      },
      [&](bool whole) {
        const bool taken = bench.view.portal(0, 0).count[0] == 0;
        ASSERT_TRUE(taken || !whole);
        ASSERT_EQ(bench.view.portal(0, 0).in_flight, taken ? 1u : 0u);
        for (int twice = 0; twice < 2; ++twice) {
          Session session(bench.view);
          end_flights(session, [](std::uint64_t) { return true; });
        }
        EventRecord event{};
        ASSERT_EQ(bench.next(&event), taken);
        if (taken) {
          ASSERT_EQ(event.type, kEventPut);
          ASSERT_EQ(event.fail, kUndeliverable);
          ASSERT_EQ(event.moved, 0u);
        }
        ASSERT_EQ(bench.next_type(), -1);
        ASSERT_EQ(bench.view.portal(0, 0).in_flight, 0u);
        ASSERT_EQ(bench.view.header().flight_pool.in_use, 0u);
        ASSERT_EQ(bench.view.header().entry_pool.in_use, taken ? 0u : 1u);
      });
}

TEST_F(KillMatchAnywhere, EndingTheMessagesOfTheDeadIsWholeOrDidNotHappen) {
  Bench bench;
  NewEntry overflow = bench.entry(0, 1, kOpPut | kNoLinkEvent);
  overflow.list = kOverflow;
  overflow.ignore_bits = UINT64_MAX;
  ASSERT_TRUE(bench.put_in(overflow).ok());
  const auto end = [&] {
    Session session(bench.view);
    end_flights(session, [](std::uint64_t mover) { return mover == mover_of(1, 1); });
  };
  run(
      bench,
      [&] {
        Session session(bench.view);
        if (bench.view.portal(0, 0).in_flight == 0) (void)accept(session, bench.message(7), mover_of(1, 1));
      },
      end,
      [&](bool whole) {
        const bool done = bench.view.portal(0, 0).in_flight == 0;
        ASSERT_TRUE(done || !whole);
        ASSERT_EQ(bench.view.header().flight_pool.in_use, done ? 0u : 1u);
        ASSERT_EQ(bench.view.portal(0, 0).header_count, done ? 0u : 1u);
        ASSERT_EQ(bench.view.entry(1).held, done ? 0u : 1u);
        ASSERT_EQ(bench.next_type(), done ? static_cast<int>(kEventPut) : -1);
      });
}

// A short message: matched, and its event raised, in one change.
TEST_F(KillMatchAnywhere, AShortMessageIsWholeOrDidNotHappen) {
  Bench bench;
  run(
      bench, [&] { link_for_one(bench); },
      [&] {
        Session session(bench.view);
        const Arrival arrival = bench.message(7);
        const Verdict verdict = decide(session, arrival);
        finish(session, arrival, verdict, kDelivered);
      },
      [&](bool whole) {
        const bool taken = bench.view.portal(0, 0).count[0] == 0;
        ASSERT_TRUE(taken || !whole);
        ASSERT_EQ(bench.next_type(), taken ? static_cast<int>(kEventPut) : -1);
        ASSERT_EQ(bench.next_type(), taken ? static_cast<int>(kEventAutoUnlink) : -1);
        ASSERT_EQ(bench.view.header().entry_pool.in_use, taken ? 0u : 1u);
        ASSERT_EQ(bench.view.portal(0, 0).in_flight, 0u);
      });
}

// The plain way: counted, shown and told in one change.
TEST_F(KillMatchAnywhere, APlainMessageIsWholeOrDidNotHappen) {
  Bench bench;
  const std::uint32_t counter = bench.new_counter();
  NewEntry what = bench.entry(7, 1, kOpPut | kNoLinkEvent | kCountComm);
  what.counter = counter;
  ASSERT_TRUE(bench.put_in(what).ok());
  std::uint64_t before = 0;
  run(
      bench, [&] { before = bench.view.counter(counter).success; },
      [&] {
        Session session(bench.view);
        Place place;
        (void)deliver_plain(session, bench.message(7), &place,
                            [](std::uint64_t, std::uint64_t) { return true; });
      },
      [&](bool whole) {
        const Counter& now = bench.view.counter(counter);
        ASSERT_TRUE(now.success == before + 1 || (!whole && now.success == before));
        ASSERT_EQ(now.shown_success, now.success);
        ASSERT_EQ(bench.next_type(), now.success == before ? -1 : static_cast<int>(kEventPut));
      });
}

TEST_F(KillMatchAnywhere, UnlinkIsWholeOrDidNotHappen) {
  Bench bench;
  Appended entry;
  run(
      bench,
      [&] {
        if (bench.view.portal(0, 0).count[0] == 0)
          entry = bench.put_in(bench.entry(7, 1, kOpPut | kNoLinkEvent)).value();
      },
      [&] {
        Session session(bench.view);
        (void)unlink(session, entry.entry, entry.generation);
      },
      [&](bool whole) {
        const bool gone = bench.view.portal(0, 0).count[0] == 0;
        ASSERT_TRUE(gone || !whole);
        ASSERT_EQ(bench.view.header().entry_pool.in_use, gone ? 0u : 1u);
      });
}

TEST_F(KillMatchAnywhere, ACountAndWhatItFiresAreWholeOrDidNotHappen) {
  Bench bench;
  const std::uint32_t counter = bench.new_counter();
  std::uint64_t before = 0;
  run(
      bench,
      [&] {
        before = bench.view.counter(counter).success;
        Session session(bench.view);
        ASSERT_TRUE(arm(session, counter, before + 1, Operation{}).ok());
      },
      [&] {
        Session session(bench.view);
        count(session, counter, 1, 0);
      },
      [&](bool whole) {
        const bool counted = bench.view.counter(counter).success == before + 1;
        ASSERT_TRUE(counted || !whole);
        Operation operation{};
        Session session(bench.view);
        ASSERT_EQ(take_due(session, &operation), counted);
        cancel(session, counter);
        ASSERT_FALSE(take_due(session, &operation));
      });
}

}  // namespace
}  // namespace orrery::nic::match
