// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/deferrals.hpp"

#include "emu/base/wait.hpp"
#include "tests/emu/nic/gate/fake_clock.hpp"
#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace orrery::nic {
namespace {

using Kind = Begun::Kind;

struct Deferred : ::testing::Test {
  parts::Pair pair;
  parts::Node& a = pair.a;
  parts::Poster poster{a};
  parts::Told told;
  Delays delays{a.host, a.host.view, a.transport, a.router};
  FaultCounters counters{};
  std::array<std::uint64_t, 2> source{11, 12};
  alignas(4096) std::array<std::uint64_t, 512> target{};
  MemKey key = pair.b.expose(target.data(), sizeof target);

  Request put() { return pair.put(a, pair.b, source.data(), target.data(), 8, key, &told); }
  FaultUnit faults(const FaultSpec& spec) { return {spec, 0, counters}; }
};

TEST_F(Deferred, NothingIsInTheWayWithoutFaults) {
  FaultUnit none(FaultSpec{}, 0, counters);
  Deferrals deferrals(nullptr, &none, a.errors, delays);
  const Begun begun = deferrals.defer_or_fail(poster.endpoint, put());
  EXPECT_EQ(begun.kind, Kind::ended);
  EXPECT_EQ(begun.status, Errc::ok);
  EXPECT_FALSE(deferrals.holds_any());
}

TEST_F(Deferred, AFaultEndsTheOperationThatItMeets) {
  FaultUnit drops(FaultSpec{.drop = {.operation = 2}}, 0, counters);
  Deferrals deferrals(nullptr, &drops, a.errors, delays);
  EXPECT_EQ(deferrals.defer_or_fail(poster.endpoint, put()).status, Errc::ok);
  const Begun second = deferrals.defer_or_fail(poster.endpoint, put());
  EXPECT_EQ(second.kind, Kind::ended);
  EXPECT_EQ(second.status, Errc::timeout);
  EXPECT_EQ(deferrals.defer_or_fail(poster.endpoint, put()).status, Errc::ok);
}

TEST_F(Deferred, ADelayKeepsTheOperationUntilItsTime) {
  FaultUnit delay(FaultSpec{.delay = {.operation = 1}, .delay_ns = 1'000'000}, 0, counters);
  Deferrals deferrals(nullptr, &delay, a.errors, delays);
  EXPECT_EQ(deferrals.defer_or_fail(poster.endpoint, put()).kind, Kind::accepted);
  EXPECT_TRUE(deferrals.holds_any());
  EXPECT_EQ(target[0], 0u);
  while (delays.run()) yield_cpu();
  pair.settle();
  EXPECT_EQ(target[0], 11u);
  EXPECT_EQ(told.all, std::vector{Errc::ok});
  EXPECT_FALSE(deferrals.holds_any());
}

TEST_F(Deferred, ALinkErrorThatWasRetriedIsOnlyReported) {
  FaultUnit link(FaultSpec{.link = {.operation = 1}}, 0, counters);
  Deferrals deferrals(nullptr, &link, a.errors, delays);
  const std::uint64_t before = a.errors.newest();
  EXPECT_EQ(deferrals.defer_or_fail(poster.endpoint, put()).status, Errc::ok);
  EXPECT_EQ(a.errors.newest(), before + 1);
  EXPECT_EQ(deferrals.defer_or_fail(poster.endpoint, put()).status, Errc::ok);
  EXPECT_EQ(a.errors.newest(), before + 1);
}

TEST_F(Deferred, UnderAClockItIsTheClocksAndMeetsNoFault) {
  box::FakeClock clock;
  TimedOps timed(clock, 0, a.router, a.regions, a.moves);
  a.moves.work = [this] { pair.settle(); };
  FaultUnit dead(FaultSpec{.dead = {{.nic_address = 1}}}, 0, counters);
  Deferrals deferrals(&timed, &dead, a.errors, delays);
  EXPECT_EQ(deferrals.defer_or_fail(poster.endpoint, put()).kind, Kind::accepted);
  EXPECT_FALSE(clock.quiet());
  clock.pass_to(1000);
  EXPECT_EQ(target[0], 11u);
  EXPECT_EQ(told.all, std::vector{Errc::ok});
}

TEST_F(Deferred, WhatIsHeldGoesWhenThereIsRoom) {
  FaultUnit none(FaultSpec{}, 0, counters);
  Deferrals deferrals(nullptr, &none, a.errors, delays);
  ASSERT_EQ(deferrals.hold(put()), Errc::ok);
  EXPECT_TRUE(deferrals.holds_any());
  while (delays.run()) yield_cpu();
  pair.settle();
  EXPECT_EQ(target[0], 11u);
}

}  // namespace
}  // namespace orrery::nic
