// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/counter.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

class CounterTest_ : public ::testing::Test {
 protected:
  Nic& nic() { return world_[0].nic(); }
  CounterPool& pool() { return nic().counters(); }
  Counted add(CounterName name, CounterValue by) { return counter::add(nic().view(), name, by); }
  static bool never() { return false; }
  box::World world_{2, box::Path::direct};
};
using Counters = CounterTest_;

TEST_F(Counters, CountSuccessesAndFailuresApart) {
  const CounterName name = pool().create().value();
  EXPECT_EQ(pool().get(name).value(), (CounterValue{0, 0}));
  EXPECT_EQ(add(name, {.success = 3}).status, Errc::ok);
  EXPECT_EQ(add(name, {.failure = 1}).status, Errc::ok);
  EXPECT_EQ(add(name, {.success = 2, .failure = 5}).status, Errc::ok);
  EXPECT_EQ(pool().get(name).value(), (CounterValue{5, 6}));
  EXPECT_EQ(counter::set(nic().view(), name, {100, 0}).status, Errc::ok);
  EXPECT_EQ(pool().get(name).value(), (CounterValue{100, 0}));
}

TEST_F(Counters, NamesOfDestroyedOnesAndOfNoneAreRefused) {
  const CounterName name = pool().create().value();
  ASSERT_TRUE(pool().destroy(name).ok());
  EXPECT_EQ(pool().destroy(name).code(), Errc::invalid_handle);
  EXPECT_EQ(add(name, {.success = 1}).status, Errc::invalid_handle);
  EXPECT_EQ(counter::set(nic().view(), name, {}).status, Errc::invalid_handle);
  EXPECT_EQ(pool().get(name).code(), Errc::invalid_handle);
  for (const CounterName none : {CounterName{}, CounterName{kMaxCounters, 1}, CounterName{UINT32_MAX, 1},
                                 CounterName{name.index, name.generation + 1}, CounterName{5, 1}}) {
    EXPECT_EQ(add(none, {.success = 1}).status, Errc::invalid_handle) << none.index << " " << none.generation;
  }
}

TEST_F(Counters, AreReusedAsLateAsPossibleUnderAnotherName) {
  const CounterName first = pool().create().value();
  std::vector<CounterName> all;
  for (std::uint32_t i = 1; i < kMaxCounters; ++i) all.push_back(pool().create().value());
  EXPECT_EQ(pool().create().code(), Errc::no_resource);
  EXPECT_EQ(pool().in_use(), kMaxCounters);
  ASSERT_TRUE(pool().destroy(all[7]).ok());
  ASSERT_TRUE(pool().destroy(first).ok());
  EXPECT_EQ(pool().create().value().index, all[7].index);
  const CounterName again = pool().create().value();
  EXPECT_EQ(again.index, first.index);
  EXPECT_NE(again, first);
  EXPECT_EQ(add(first, {.success = 1}).status, Errc::invalid_handle);
  EXPECT_EQ(pool().get(again).value(), (CounterValue{0, 0}));
}

// ThreadSanitizer makes the 16-byte swap that adds to both counts a call under a lock of its own. That is not
// atomic against additions to one of them.
#ifdef __SANITIZE_THREAD__
constexpr bool kOneInstruction = false;
#else
constexpr bool kOneInstruction = true;
#endif

TEST_F(Counters, AreAddedToByManyThreadsWithoutLoss) {
  const CounterName name = pool().create().value();
  constexpr std::uint64_t kEach = 20'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        if (t == 0 || (t == 1 && !kOneInstruction)) add(name, {.failure = 1});
        if (t == 1 && kOneInstruction) add(name, {1, 1});
        if (t > 1 || (t == 1 && !kOneInstruction)) add(name, {.success = 1});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool().get(name).value(), (CounterValue{3 * kEach, 2 * kEach}));
}

// Both counts of a set are seen together by a reader: each value that is set has equal halves.
TEST_F(Counters, ReadersSeeBothCountsOfASetTogether) {
  const CounterName name = pool().create().value();
  std::atomic<bool> stop{false};
  std::thread setter([&] {
    for (std::uint64_t i = 1; !stop.load(); ++i) counter::set(nic().view(), name, {i, i});
  });
  for (int i = 0; i < 50'000; ++i) {
    const CounterValue value = pool().get(name).value();
    ASSERT_EQ(value.success, value.failure);
  }
  stop.store(true);
  setter.join();
}

TEST_F(Counters, WaitEndsAtTheTestAtAFailureAtTheDeadlineAndWhenToldTo) {
  const CounterName a = pool().create().value();
  const CounterName b = pool().create().value();
  CounterValue value;
  const CounterTest both[] = {{a, 2}, {b, 1}};
  EXPECT_EQ(nic().waits().wait_counters(both, 0, never, &value).code(), Errc::timeout);
  EXPECT_EQ(nic()
                .waits()
                .wait_counters(
                    both, std::nullopt, [] { return true; }, &value)
                .code(),
            Errc::terminated);
  add(b, {.success = 1});
  EXPECT_EQ(nic().waits().wait_counters(both, std::nullopt, never, &value).value(), 1u);
  add(a, {.failure = 1});
  EXPECT_EQ(nic().waits().wait_counters(both, std::nullopt, never, &value).value(), 0u);
  EXPECT_EQ(value, (CounterValue{0, 1}));
  ASSERT_TRUE(pool().destroy(a).ok());
  EXPECT_EQ(nic().waits().wait_counters(both, std::nullopt, never, &value).code(), Errc::invalid_handle);
}

// A sleeper for a count that is far away is not woken by each addition on the way there.
TEST_F(Counters, SleeperIsWokenOnceWhenItsTestIsMet) {
  const CounterName name = pool().create().value();
  std::thread waiter([&] {
    CounterValue value;
    const CounterTest test[] = {{name, 1000}};
    EXPECT_TRUE(nic().waits().wait_counters(test, std::nullopt, never, &value).ok());
    EXPECT_GE(value.success, 1000u);
  });
  const CounterState& state = counters_of(nic().view()).counters[name.index];
  while (state.sleepers.load() == 0 || state.wake_at.load() == kNever) std::this_thread::yield();
  const std::uint32_t bell = nic().view().service().bell.load();
  for (int i = 0; i < 999; ++i) add(name, {.success = 1});
  EXPECT_EQ(nic().view().service().bell.load(), bell);
  add(name, {.success = 1});
  EXPECT_EQ(nic().view().service().bell.load(), bell + 1);
  waiter.join();
  EXPECT_EQ(state.sleepers.load(), 0u);
}

}  // namespace
}  // namespace orrery::nic
