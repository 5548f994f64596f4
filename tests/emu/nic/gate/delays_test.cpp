// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/delays.hpp"

#include "emu/base/wait.hpp"
#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace orrery::nic {
namespace {

constexpr std::int64_t kDelayNs = 20'000'000;

struct Held : ::testing::Test {
  parts::Pair pair;
  parts::Node& a = pair.a;
  parts::Told told;
  Delays delays{a.host, a.host.view, a.transport, a.router};
  std::array<std::uint64_t, 2> source{11, 12};
  alignas(4096) std::array<std::uint64_t, 512> target{};
  MemKey key = pair.b.expose(target.data(), sizeof target);
  Request put(std::uint32_t flags) {
    Request request = pair.put(a, pair.b, source.data(), target.data(), 8, key, &told);
    request.flags = flags;
    return request;
  }
  void run_all() {
    while (delays.run()) yield_cpu();
    pair.settle();
  }
};

TEST_F(Held, NothingIsInTheWayOfAnOperationThatIsNotDelayed) {
  EXPECT_EQ(delays.hold_back(put(kInOrder), 0), Errc::not_done);
  EXPECT_FALSE(delays.any());
  EXPECT_FALSE(delays.run());
}

TEST_F(Held, ADelayedOperationHasItsSourceAsItWasAndEndsLater) {
  const std::int64_t begin = monotonic_ns();
  ASSERT_EQ(delays.hold_back(put(0), kDelayNs), Errc::ok);
  EXPECT_TRUE(delays.any());
  source[0] = 99;
  run_all();
  EXPECT_GE(monotonic_ns() - begin, kDelayNs);
  EXPECT_EQ(target[0], 11u);
  EXPECT_EQ(told.all, std::vector{Errc::ok});
  EXPECT_FALSE(delays.any());
}

TEST_F(Held, WhatIsInOrderStaysBehindADelayedOneToTheSamePeer) {
  ASSERT_EQ(delays.hold_back(put(kInOrder), kDelayNs), Errc::ok);
  EXPECT_EQ(delays.hold_back(put(0), 0), Errc::not_done);
  source[0] = 99;
  EXPECT_EQ(delays.hold_back(put(kInOrder), 0), Errc::ok);
  run_all();
  EXPECT_EQ(target[0], 99u);
  EXPECT_EQ(told.all.size(), 2u);
}

TEST_F(Held, AMessageWithoutRoomCountsAsInFlightUntilItWent) {
  Request message = put(0);
  ASSERT_EQ(delays.hold(message), Errc::ok);
  EXPECT_EQ(message.peer->in_flight.load(), 1u);
  run_all();
  EXPECT_EQ(target[0], 11u);
  EXPECT_EQ(message.peer->in_flight.load(), 0u);
}

TEST_F(Held, OfOneMailboxesCreditsTheLastSaysItAll) {
  Request credit = put(0);
  credit.op = Op::credit;
  ASSERT_EQ(delays.hold(credit), Errc::ok);
  source[0] = 99;
  ASSERT_EQ(delays.hold(credit), Errc::ok);
  EXPECT_EQ(credit.peer->in_flight.load(), 1u);
  run_all();
  EXPECT_EQ(target[0], 99u);
  EXPECT_EQ(told.all.size(), 1u);
}

TEST_F(Held, ASleepingServiceThreadIsRung) {
  a.host.view.service().poller = Poller::none;
  ASSERT_EQ(delays.hold_back(put(0), 1), Errc::ok);
  EXPECT_EQ(a.host.self_rings, 1);
  run_all();
}

}  // namespace
}  // namespace orrery::nic
