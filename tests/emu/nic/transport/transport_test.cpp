// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/transport/transport.hpp"

#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace orrery::nic {
namespace {

struct Frames : ::testing::Test {
  parts::Pair pair;
  parts::Node& a = pair.a;
  parts::Node& b = pair.b;
  parts::Told told;
  alignas(4096) std::array<std::uint64_t, 512> source{};
  alignas(4096) std::array<std::uint64_t, 512> target{};
  MemKey key = b.expose(target.data(), sizeof target);
  Frames() { std::iota(source.begin(), source.end(), 1); }
  Request put(std::uint64_t bytes, Listener* listener) {
    return pair.put(a, b, source.data(), target.data(), bytes, key, listener);
  }
};

TEST_F(Frames, APutIsAppliedByTheTargetAndItsEndIsToldOnce) {
  const Request request = put(sizeof target, &told);
  EXPECT_EQ(a.transport.send(request), Errc::not_done);
  EXPECT_TRUE(a.transport.has_in_flight(*request.peer));
  EXPECT_EQ(a.pending.outstanding.load(), 1u);
  EXPECT_FALSE(a.pending.is_quiet());
  EXPECT_TRUE(told.all.empty());
  pair.settle();
  EXPECT_EQ(target, source);
  EXPECT_EQ(told.all, std::vector{Errc::ok});
  EXPECT_FALSE(a.transport.has_in_flight(*request.peer));
  EXPECT_EQ(a.pending.outstanding.load(), 0u);
}

TEST_F(Frames, AFrameThatArrivedIsPendingUntilItIsTakenIn) {
  ASSERT_EQ(a.transport.send(put(8, &told)), Errc::not_done);
  pair.settle();
  EXPECT_TRUE(b.pending.is_quiet());
  ASSERT_EQ(a.transport.send(put(8, &told)), Errc::not_done);
  EXPECT_FALSE(b.pending.is_quiet());
  EXPECT_TRUE(b.transport.poll_requests(true));
  EXPECT_TRUE(b.pending.is_quiet());
}

TEST_F(Frames, ARefusalIsTheOperationsEnd) {
  ASSERT_TRUE(b.regions.deregister(key).ok());
  ASSERT_EQ(a.transport.send(put(8, &told)), Errc::not_done);
  pair.settle();
  EXPECT_EQ(told.all, std::vector{Errc::invalid_handle});
  EXPECT_EQ(target[0], 0u);
}

TEST_F(Frames, WhatIsUnderWayToAPeerThatDiedEndsAndNoMoreGoes) {
  const Request request = put(8, &told);
  ASSERT_EQ(a.transport.send(request), Errc::not_done);
  request.peer->dead = true;
  a.transport.fail(*request.peer, Errc::unreachable);
  EXPECT_EQ(told.all, std::vector{Errc::unreachable});
  EXPECT_EQ(a.transport.send(request), Errc::unreachable);
  EXPECT_EQ(a.transport.open_requests(), std::vector<std::uint32_t>{});
}

TEST_F(Frames, NamesOfRequestsAreDroppedWhenTheyHaveEnded) {
  ASSERT_EQ(a.transport.send(put(8, &told)), Errc::not_done);
  std::vector<std::uint32_t> names = a.transport.open_requests();
  EXPECT_EQ(names.size(), 1u);
  a.transport.drop_ended(names);
  EXPECT_EQ(names.size(), 1u);
  pair.settle();
  a.transport.drop_ended(names);
  EXPECT_TRUE(names.empty());
}

TEST_F(Frames, WithoutAnAnswerAreOverWhenTheTargetHasTakenThem) {
  Endpoint endpoint;
  endpoint.port = a.port;
  Request request = put(8, nullptr);
  endpoint.peer = request.peer;
  EXPECT_EQ(a.transport.send(request, &endpoint), Errc::not_done);
  EXPECT_EQ(a.pending.outstanding.load(), 0u);
  EXPECT_FALSE(endpoint.is_idle());
  EXPECT_FALSE(a.transport.all_taken_out());
  EXPECT_TRUE(b.transport.poll_requests(true));
  EXPECT_TRUE(endpoint.is_idle());
  EXPECT_TRUE(a.transport.all_taken_out());
  EXPECT_EQ(target[0], 1u);
  // The same again needs no second look, while the target polls.
  b.host.view.service().poller = Poller::some;
  source[0] = 77;
  EXPECT_EQ(a.transport.send_granted(endpoint, request), Errc::ok);
  EXPECT_TRUE(b.transport.poll_requests(true));
  EXPECT_EQ(target[0], 77u);
}

TEST_F(Frames, RefusedWithoutAnAnswerAreInTheErrorLog) {
  Endpoint endpoint;
  endpoint.port = a.port;
  Request request = put(8, nullptr);
  ASSERT_TRUE(b.regions.deregister(key).ok());
  EXPECT_EQ(a.transport.send(request, &endpoint), Errc::not_done);
  EXPECT_TRUE(b.transport.poll_requests(true));
  a.transport.collect_refusals();
  EXPECT_EQ(a.errors.newest(), 1u);
}

TEST_F(Frames, PacketsOfTheEngineGoToTheEngine) {
  wire::PacketHeader header;
  header.verb = wire::Verb::join;
  header.domain = 7;
  ASSERT_EQ(a.transport.send_packet(*put(8, nullptr).peer, header, {}, {.listener = &told}), Errc::not_done);
  pair.settle();
  ASSERT_EQ(b.engine_packets.size(), 1u);
  EXPECT_EQ(b.engine_packets[0].source, 0u);
  EXPECT_EQ(told.all, std::vector{Errc::ok});
}

TEST_F(Frames, ThatFoundNoRoomGoWhenThereIsSome) {
  std::vector<std::byte> much(4 << 20, std::byte{9});
  std::vector<std::byte> room(much.size());
  const MemKey large = b.expose(room.data(), room.size());
  const Request request = pair.put(a, b, much.data(), room.data(), much.size(), large, &told);
  ASSERT_EQ(a.transport.send(request), Errc::not_done);
  EXPECT_TRUE(a.transport.waits_for_room(*request.peer));
  // What was not sent yet is a copy: the source may change.
  std::fill(much.begin(), much.end(), std::byte{0});
  for (int i = 0; i < 10'000 && told.all.empty(); ++i) pair.settle();
  EXPECT_FALSE(a.transport.waits_for_room(*request.peer));
  EXPECT_EQ(told.all, std::vector{Errc::ok});
  EXPECT_EQ(room, std::vector<std::byte>(room.size(), std::byte{9}));
}

}  // namespace
}  // namespace orrery::nic
