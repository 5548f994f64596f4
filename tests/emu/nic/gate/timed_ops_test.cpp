// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/timed.hpp"

#include "tests/emu/nic/gate/fake_clock.hpp"
#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace orrery::nic {
namespace {

// Data is at the target at 200 ps, what comes back was read there at 100; the event here comes at 400.
struct Timed : ::testing::Test {
  parts::Pair pair;
  parts::Node& a = pair.a;
  parts::Poster poster{a};
  parts::Told told;
  box::FakeClock clock;
  TimedOps timed{clock, 0, a.router, a.regions, a.moves};
  std::array<std::uint64_t, 2> source{11, 12};
  alignas(4096) std::array<std::uint64_t, 512> target{};
  MemKey key = pair.b.expose(target.data(), sizeof target);

  Timed() {
    a.moves.work = [this] { pair.settle(); };
  }
  Request request(Op op, std::uint32_t flags = 0) {
    Request request = pair.put(a, pair.b, source.data(), target.data(), 8, key, &told);
    request.op = op;
    request.flags = flags;
    return request;
  }
};

TEST_F(Timed, APutTakesItsSourceWhenItIsPostedAndStoresItAtItsTime) {
  timed.post(poster.endpoint, request(Op::put));
  source[0] = 99;
  clock.pass_to(199);
  EXPECT_EQ(target[0], 0u);
  clock.pass_to(200);
  EXPECT_EQ(target[0], 11u);
  EXPECT_TRUE(told.all.empty());
  clock.pass_to(400);
  EXPECT_EQ(told.all, std::vector{Errc::ok});
  EXPECT_TRUE(clock.quiet());
}

TEST_F(Timed, AGetReadsAtOneTimeAndStoresAtALaterOne) {
  timed.post(poster.endpoint, request(Op::get));
  target[0] = 5;
  clock.pass_to(100);
  target[0] = 6;
  clock.pass_to(199);
  EXPECT_EQ(source[0], 11u);
  clock.pass_to(200);
  EXPECT_EQ(source[0], 5u);
}

TEST_F(Timed, WhatIsRefusedEndsAtTheTimeOfItsEnd) {
  Request refused = request(Op::put);
  refused.remote_address += sizeof target;
  timed.post(poster.endpoint, refused);
  clock.pass_to(399);
  EXPECT_TRUE(told.all.empty());
  clock.pass_to(400);
  EXPECT_EQ(told.all, std::vector{Errc::bounds});
}

TEST_F(Timed, InOrderIsBehindAllOfTheEndpointsData) {
  clock.times.data_at = Picos{5000};
  timed.post(poster.endpoint, request(Op::put));
  clock.times.data_at = Picos{200};
  source[0] = 99;
  timed.post(poster.endpoint, request(Op::put, kInOrder));
  clock.pass_to(4999);
  EXPECT_EQ(target[0], 0u);
  clock.pass_to(10'000);
  EXPECT_EQ(target[0], 99u);
}

TEST_F(Timed, PlacesOfOperationsThatEndedAreUsedAgain) {
  constexpr std::int64_t kRounds = 1000;
  for (std::int64_t round = 1; round <= kRounds; ++round) {
    source[0] = static_cast<std::uint64_t>(round);
    timed.post(poster.endpoint, request(Op::put));
    clock.pass_to(round * 1000);
  }
  EXPECT_EQ(target[0], static_cast<std::uint64_t>(kRounds));
  EXPECT_EQ(told.all.size(), static_cast<std::size_t>(kRounds));
}

TEST_F(Timed, ALongPutIsKeptWhole) {
  std::array<std::uint64_t, 512> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i + 1;
  Request long_put = request(Op::put);
  long_put.local_address = reinterpret_cast<std::uint64_t>(all.data());
  long_put.length = sizeof all;
  timed.post(poster.endpoint, long_put);
  const std::array<std::uint64_t, 512> before = all;
  all.fill(0);
  clock.pass_to(400);
  EXPECT_EQ(target, before);
}

}  // namespace
}  // namespace orrery::nic
