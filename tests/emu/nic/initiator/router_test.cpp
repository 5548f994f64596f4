// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/initiator/router.hpp"

#include "emu/nic/state/thread_word.hpp"
#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace orrery::nic {
namespace {

struct Ways : ::testing::Test {
  parts::Pair pair;
  parts::Node& a = pair.a;
  parts::Node& b = pair.b;
  parts::Told told;
  Endpoint endpoint;
  std::array<std::uint64_t, 8> source{1, 2, 3, 4, 5, 6, 7, 8};
  alignas(4096) std::array<std::uint64_t, 512> target{};

  // As if the target's memory were mapped here.
  void map() { b.host.direct = b.host.same_space = true; }
  Request put(const MemKey& key, std::uint64_t bytes = 8) {
    Request request = pair.put(a, b, source.data(), target.data(), bytes, key, &told);
    endpoint.port = a.port;
    endpoint.peer = request.peer;
    return request;
  }
};

TEST_F(Ways, MemoryThatIsMappedHereIsStoredToAndGranted) {
  map();
  const Request request = put(b.expose(target.data(), sizeof target));
  const Begun begun = a.router.route(request, thread_hazard_slot(), &endpoint);
  EXPECT_EQ(begun.kind, Begun::Kind::ended);
  EXPECT_EQ(begun.status, Errc::ok);
  EXPECT_EQ(target[0], 1u);
  EXPECT_TRUE(told.all.empty());  // the caller tells
  EXPECT_EQ(endpoint.grants[key_word(request.remote) % kGrants].key & kKeyWordMask, key_word(request.remote));
}

TEST_F(Ways, OtherMemoryIsReachedByFrames) {
  const Request request = put(b.expose(target.data(), sizeof target));
  EXPECT_EQ(a.router.route(request, thread_hazard_slot(), &endpoint).kind, Begun::Kind::accepted);
  EXPECT_EQ(target[0], 0u);
  pair.settle();
  EXPECT_EQ(target[0], 1u);
  EXPECT_EQ(told.all, std::vector{Errc::ok});
}

TEST_F(Ways, WhatWouldBeRefusedIsRefusedAtOnce) {
  const MemKey key = b.expose(target.data(), 4096, kReadOnly);
  const Begun begun = a.router.route(put(key), thread_hazard_slot(), &endpoint);
  EXPECT_EQ(begun.kind, Begun::Kind::ended);
  EXPECT_EQ(begun.status, Errc::permission);
}

TEST_F(Ways, InOrderBehindAFrameMeansAsAFrame) {
  const MemKey key = b.expose(target.data(), sizeof target);
  ASSERT_EQ(a.router.route(put(key), thread_hazard_slot(), &endpoint).kind, Begun::Kind::accepted);
  map();
  b.regions.table().set_state(key.index, RegionState::by_frame, RegionState::direct);
  Request behind = put(key);
  behind.flags |= kInOrder;
  a.moves.work = nullptr;  // no answer comes
  EXPECT_EQ(a.router.route(behind, thread_hazard_slot(), &endpoint).kind, Begun::Kind::accepted);
  EXPECT_EQ(a.pending.outstanding.load(), 2u);
  pair.settle();
  EXPECT_EQ(told.all.size(), 2u);
}

TEST_F(Ways, ALongBlockTransferIsTheEngines) {
  map();
  std::vector<std::byte> from(2 << 20, std::byte{5});
  std::vector<std::byte> to(from.size());
  const MemKey key = b.expose(to.data(), to.size());
  Request request = pair.put(a, b, from.data(), to.data(), from.size(), key, &told);
  request.flags |= kBlockTransfer;
  EXPECT_FALSE(a.router.block_transfer_is_short(request.length, nullptr));
  EXPECT_EQ(a.router.route(request, thread_hazard_slot(), &endpoint).kind, Begun::Kind::accepted);
  while (a.router.bte().outstanding() != 0) yield_cpu();
  EXPECT_EQ(told.all, std::vector{Errc::ok});
  EXPECT_EQ(to, from);
}

TEST_F(Ways, AnEventAfterTheBytesIsRaisedUnlessTheRegistrationIsGone) {
  map();
  CompletionQueue* const queue = b.queues.create(8, 0).value();
  const MemKey key = b.expose(target.data(), sizeof target, 0, queue);
  Request request = put(key);
  request.remote_event_data = 99;
  a.router.raise_at_target(request);
  Event event;
  ASSERT_EQ(queue->take(&event), Errc::ok);
  EXPECT_EQ(event.data, 99u);
  ASSERT_TRUE(b.regions.deregister(key).ok());
  a.router.raise_at_target(request);
  EXPECT_EQ(queue->take(&event), Errc::not_done);
}

}  // namespace
}  // namespace orrery::nic
