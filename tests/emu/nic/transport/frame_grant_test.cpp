// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/initiator/fast_path.hpp"
#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

// Short puts by frame without a completion, from the second on: they go by what the first one left.
namespace orrery::nic {
namespace {

using box::Path;
using box::World;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

constexpr std::size_t kWords = 8192;

class FrameGrants : public ::testing::Test {
 protected:
  FrameGrants() : world(2, Path::frame), target(kWords), source(kWords) {
    remote = world[1].nic().create_queue(64, 0).value();
    key = world[1]
              .nic()
              .register_region(world[1].port(), address_of(target.data()), kWords * 8, 0, remote)
              .value();
    endpoint = world.endpoint(0, 1, nullptr);
  }
  ~FrameGrants() override { EXPECT_TRUE(world.settle(0, *endpoint)); }

  Request put(std::uint64_t value, std::size_t at, std::uint32_t flags = 0) {
    source[at] = value;
    return box::put_word(&source[at], &target[at], key, flags);
  }
  // To a target that looks after its frames: otherwise the kernel copies, or it is rung.
  Errc post(const Request& request) {
    world[1].nic().view().service().poller = Poller::some;
    return world[0].nic().post(*endpoint, request);
  }
  void serve() {
    for (int i = 0; i < 8; ++i) world.serve_all();
  }
  bool granted() const { return endpoint->frame_grant.key == key_word(key); }
  std::uint64_t errors() { return world[0].nic().errors().newest(); }

  World world;
  std::vector<std::uint64_t> target;
  std::vector<std::uint64_t> source;
  CompletionQueue* remote = nullptr;
  MemKey key;
  std::unique_ptr<Endpoint> endpoint;
};

TEST_F(FrameGrants, EachPutHasItsOwnAddressBytesAndEvent) {
  for (std::uint64_t i = 1; i <= 300; ++i) {
    endpoint->remote_event_data = static_cast<std::uint32_t>(1000 + i);
    Request request = put(i * 0x0101'0101'0101'0101, i, kRemoteEvent | (i % 2 != 0 ? kInOrder : 0u));
    request.length = 1 + i % 8;
    ASSERT_EQ(post(request), Errc::ok);
    ASSERT_TRUE(granted());
    serve();
    std::uint64_t expected = 0;
    std::memcpy(&expected, &source[i], request.length);
    ASSERT_EQ(target[i], expected);
    Event event;
    ASSERT_EQ(world[1].nic().poll(*remote, &event), Errc::ok);
    ASSERT_EQ(event.data, 1000 + i);
  }
}

TEST_F(FrameGrants, APutWithAListenerTellsIt) {
  struct Told final : Listener {
    int ends = 0;
    void ended(const Completion&, const Ending& ending) override {
      ends += ending.status == Errc::ok ? 1 : 100;
    }
  } told;
  ASSERT_EQ(post(put(1, 1)), Errc::ok);
  ASSERT_TRUE(granted());
  Request request = put(2, 1);
  request.completion.listener = &told;
  ASSERT_EQ(post(request), Errc::ok);
  serve();
  EXPECT_EQ(target[1], 2u);
  EXPECT_EQ(told.ends, 1);
}

TEST_F(FrameGrants, MemoryThatIsDeregisteredIsRefusedAtOnce) {
  ASSERT_EQ(post(put(1, 1)), Errc::ok);
  ASSERT_TRUE(granted());
  ASSERT_EQ(post(put(2, 1)), Errc::ok);
  serve();
  ASSERT_EQ(target[1], 2u);
  ASSERT_TRUE(world[1].nic().deregister(key).ok());
  const std::uint64_t before = errors();
  ASSERT_EQ(post(put(3, 1)), Errc::ok);
  EXPECT_EQ(errors(), before + 1) << "without a word from the target";
  serve();
  EXPECT_EQ(target[1], 2u);
}

TEST_F(FrameGrants, WhatReachesOutOfTheRegistrationIsRefusedAtOnce) {
  ASSERT_EQ(post(put(1, 1)), Errc::ok);
  ASSERT_TRUE(granted());
  for (const std::int64_t beyond : {-8, -1, 1, 8}) {
    Request request = put(5, 1);
    request.remote_address = beyond < 0 ? address_of(target.data()) : address_of(target.data() + kWords - 1);
    request.remote_address += static_cast<std::uint64_t>(beyond);
    // Whole pages are registered: the page before, or behind the last.
    request.remote_address += beyond < 0 ? -4096ull : 4096ull;
    const std::uint64_t before = errors();
    ASSERT_EQ(post(request), Errc::ok);
    EXPECT_EQ(errors(), before + 1) << beyond;
  }
}

TEST_F(FrameGrants, ABindingThatEndsTakesItsGrantAlong) {
  ASSERT_EQ(post(put(1, 1)), Errc::ok);
  ASSERT_TRUE(granted());
  endpoint->forget_peer();
  EXPECT_FALSE(granted());
}

TEST_F(FrameGrants, AnotherPeerIsNotMetByTheGrant) {
  ASSERT_EQ(post(put(1, 1)), Errc::ok);
  ASSERT_TRUE(granted());
  serve();
  // The same key, but the endpoint speaks to another process now.
  endpoint->frame_grant.peer = nullptr;
  ASSERT_EQ(post(put(2, 1)), Errc::ok);
  EXPECT_NE(endpoint->frame_grant.peer, nullptr) << "the general path left a new one";
  serve();
  EXPECT_EQ(target[1], 2u);
}

// A long put waits for room in the lane: what is posted after it comes after it.
TEST_F(FrameGrants, StaysBehindWhatWaitsForRoom) {
  ASSERT_EQ(post(put(1, 1)), Errc::ok);
  ASSERT_TRUE(granted());
  serve();
  Request all = put(7, 0, kInOrder);
  all.length = kWords * 8;
  std::vector<std::uint64_t> pattern(kWords, 7);
  all.local_address = address_of(pattern.data());
  ASSERT_EQ(post(all), Errc::ok);
  ASSERT_EQ(post(put(9, kWords - 1, kInOrder)), Errc::ok);
  for (int i = 0; i < 1000 && target[kWords - 1] != 9; ++i) {
    serve();
    world[0].nic().progress();
  }
  EXPECT_EQ(target[kWords - 1], 9u);
  EXPECT_EQ(target[kWords - 2], 7u);
}

// What the target refuses without an answer is noticed although nothing but granted puts is posted.
TEST_F(FrameGrants, RefusalsAreNoticedInAStreamOfThem) {
  ASSERT_EQ(post(put(1, 1)), Errc::ok);
  ASSERT_TRUE(granted());
  serve();
  const std::uint64_t before = errors();
  ++endpoint->frame_grant.frame.key_generation;  // a key that its owner does not know
  for (int i = 0; i < 200 && errors() == before; ++i) {
    ASSERT_EQ(post(put(2, 1)), Errc::ok);
    serve();
  }
  EXPECT_GT(errors(), before);
  EXPECT_EQ(target[1], 1u);
}

// A put of one line names a place in the registration; where that is, the segments say.
TEST_F(FrameGrants, SegmentsAreFollowed) {
  const Segment segments[] = {{address_of(&target[1000]), 12}, {address_of(&target[10]), 100}};
  key = world[1].nic().regions().register_segments(world[1].port(), segments, 0, nullptr).value();
  Request request = put(0x0807'0605'0403'0201, 1);
  for (const std::uint64_t offset : {0ull, 8ull, 12ull}) {
    request.remote_address = offset;
    ASSERT_EQ(post(request), Errc::ok);
    serve();
  }
  EXPECT_EQ(target[1000], 0x0807'0605'0403'0201u);
  EXPECT_EQ(target[1001], 0x0403'0201u) << "four bytes are the last of the first segment";
  EXPECT_EQ(target[10], 0x0807'0605'0403'0201u);
}

TEST_F(FrameGrants, AFullLaneHoldsNothingUp) {
  // No thread takes anything out: from the full lane on, the slow path keeps what does not fit.
  for (std::uint64_t i = 1; i < 2000; ++i) {
    const Errc posted = post(put(i, i));
    if (posted == Errc::no_resource) break;
    ASSERT_EQ(posted, Errc::ok);
  }
  for (int i = 0; i < 2000 && !endpoint->is_idle(); ++i) {
    serve();
    world[0].nic().progress();
  }
  for (std::uint64_t i = 1; i < 500; ++i) ASSERT_EQ(target[i], i);
}

// Data by granted frame into one registration, then a flag into another, whose memory is direct: the flag
// does not overtake the data by the grant that it has.
TEST(FrameAndDirectGrants, OfOneEndpointKeepTheOrderOfItsPosts) {
  Nic::Options options;
  options.adopt_after = 8;
  World world(2, Path::adopt, options);
  std::vector<std::uint64_t> memory(4 * kPageBytes / 8);
  std::uint64_t* const data = &memory[(-address_of(memory.data()) % kPageBytes) / 8];
  std::uint64_t* const flag = data + 2 * kPageBytes / 8;
  const auto registered = [&](std::uint64_t* page) {
    return world[1].nic().register_region(world[1].port(), address_of(page), kPageBytes, 0, nullptr).value();
  };
  const MemKey data_key = registered(data);
  const MemKey flag_key = registered(flag);
  const std::unique_ptr<Endpoint> endpoint = world.endpoint(0, 1, nullptr);
  const auto post = [&](const std::uint64_t& value, std::uint64_t* to, const MemKey& key) {
    world[1].nic().view().service().poller = Poller::some;
    ASSERT_EQ(world[0].nic().post(*endpoint, box::put_word(&value, to, key, 0)), Errc::ok);
  };
  const auto settle = [&] { ASSERT_TRUE(world.settle(0, *endpoint)); };
  const std::uint64_t first = 1;
  const std::uint64_t second = 2;
  for (int i = 0; i < 40; ++i) {
    post(first, flag, flag_key);
    settle();
  }
  post(first, data, data_key);
  ASSERT_EQ(endpoint->frame_grant.key, key_word(data_key));
  settle();
  post(first, flag, flag_key);
  ASSERT_EQ(endpoint->grants[flag_key.index % kGrants].key & kKeyWordMask, key_word(flag_key))
      << "not direct";

  post(second, data, data_key);
  post(second, flag, flag_key);
  EXPECT_TRUE(*flag == 1 || *data == 2) << "the flag came before the data";
  settle();
  EXPECT_EQ(*data, 2u);
  EXPECT_EQ(*flag, 2u);
}

}  // namespace
}  // namespace orrery::nic
