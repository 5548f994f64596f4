// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/waits.hpp"

#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace orrery::nic {
namespace {

constexpr std::int64_t kShortNs = 1'000'000;

struct Waiting : ::testing::Test {
  parts::Host host{0};
  parts::Moves moves;
  Arena arena{host.view};
  EventQueues queues{host.view, arena};
  CounterPool counters{host.view};
  Waits waits{host, host.view, counters, moves};
  CompletionQueue& queue = *queues.create(8, 0).value();
  static bool never() { return false; }
  void raise() { (void)push_event(queue.view(), {EventKind::remote, Errc::ok, 5}); }
};

TEST_F(Waiting, ForAnEventThatIsThereTakesNothing) {
  raise();
  EXPECT_EQ(waits.wait(queue, waits.now_ns()), Errc::ok);
  Event event;
  EXPECT_EQ(queue.take(&event), Errc::ok);
}

TEST_F(Waiting, MovesTheNicAlongAndHandsItsFramesBack) {
  moves.work = [this] {
    if (moves.calls == 5) raise();
  };
  EXPECT_EQ(waits.wait(queue, std::nullopt), Errc::ok);
  EXPECT_EQ(moves.calls, 5);
  EXPECT_EQ(moves.handed_back, 1);
  EXPECT_EQ(queue.view().state->waiters.load(), 0u);
}

TEST_F(Waiting, EndsAtItsDeadline) {
  EXPECT_EQ(waits.wait(queue, waits.now_ns() + kShortNs), Errc::timeout);
  EXPECT_EQ(queue.view().state->waiters.load(), 0u);
}

TEST_F(Waiting, ForAnyQueueFindsTheOneWithNews) {
  CompletionQueue& other = *queues.create(8, 0).value();
  const std::array<CompletionQueue*, 2> both{&other, &queue};
  raise();
  EXPECT_EQ(waits.wait_any(both, std::nullopt, never).value(), 1u);
  Event event;
  ASSERT_EQ(queue.take(&event), Errc::ok);
  EXPECT_EQ(waits.wait_any(both, waits.now_ns() + kShortNs, never).code(), Errc::timeout);
}

TEST_F(Waiting, EndsWhenItIsTold) {
  CompletionQueue* const one[] = {&queue};
  EXPECT_EQ(waits.wait_any(one, std::nullopt, [] { return true; }).code(), Errc::terminated);
}

TEST_F(Waiting, ForACounterEndsAtItsCount) {
  const CounterName name = counters.create().value();
  const CounterTest test[] = {{.name = name, .success = 3}};
  moves.work = [&] { (void)counter::add(host.view, name, {1, 0}); };
  CounterValue value;
  EXPECT_EQ(waits.wait_counters(test, std::nullopt, never, &value).value(), 0u);
  EXPECT_EQ(value.success, 3u);
}

}  // namespace
}  // namespace orrery::nic
