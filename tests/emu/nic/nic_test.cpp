// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/nic.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

using box::Path;
using box::World;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

// Each test runs over both paths: what a packet does may not depend on its carrier.
class NicOverPath : public ::testing::TestWithParam<Path> {
 protected:
  // Runs service threads until `queue` has an event. Bounded, so that a lost event fails instead of hanging.
  Event next_event(World& world, int node, CompletionQueue& queue) {
    Event event;
    for (int i = 0; i < 10'000; ++i) {
      const Errc found = world[node].nic().poll(queue, &event);
      if (found != Errc::not_done) return event;
      world.serve_all();
    }
    ADD_FAILURE() << "no event arrived";
    return event;
  }

  Errc outcome(World& world, int node, CompletionQueue& queue, void* expected_context) {
    const Event event = next_event(world, node, queue);
    EXPECT_EQ(event.kind, EventKind::post);
    const auto completion = queue.completed(event.transaction(), event.status);
    EXPECT_TRUE(completion.ok());
    EXPECT_EQ(completion.value().context, expected_context);
    return event.status;
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, NicOverPath, ::testing::Values(Path::direct, Path::frame),
                         [](const auto& info) { return info.param == Path::direct ? "Direct" : "Frame"; });

struct Pair {
  explicit Pair(Path path, std::size_t bytes) : world(2, path), source(bytes), target(bytes) {
    local = world[0].nic().create_queue(64, 0).value();
    remote = world[1].nic().create_queue(64, 0).value();
    key =
        world[1].nic().register_region(world[1].port(), address_of(target.data()), bytes, 0, remote).value();
    endpoint = world.endpoint(0, 1, local);
    std::iota(source.begin(), source.end(), std::uint8_t{1});
  }
  ~Pair() { EXPECT_TRUE(world.settle(0, *endpoint)); }
  Request put(std::size_t from, std::size_t to, std::size_t bytes) {
    Request request;
    request.op = Op::put;
    request.flags = kLocalEvent;
    request.local_address = address_of(source.data() + from);
    request.remote_address = address_of(target.data() + to);
    request.length = bytes;
    request.remote = key;
    request.context = this;
    return request;
  }
  World world;
  std::vector<std::uint8_t> source;
  std::vector<std::uint8_t> target;
  CompletionQueue* local = nullptr;
  CompletionQueue* remote = nullptr;
  MemKey key;
  std::unique_ptr<Endpoint> endpoint;
};

TEST_P(NicOverPath, PutOfAnyLengthAndAlignmentArrivesWholeAndNothingElseChanges) {
  Pair pair(GetParam(), 40'000);
  for (const std::size_t bytes : {0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 4000, 4096, 12'345, 39'000}) {
    for (const std::size_t shift : {0, 1, 3, 4, 7}) {
      std::fill(pair.target.begin(), pair.target.end(), std::uint8_t{0});
      ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, pair.put(shift, shift + 8, bytes)), Errc::ok);
      ASSERT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok);
      for (std::size_t i = 0; i < pair.target.size(); ++i) {
        const bool inside = i >= shift + 8 && i < shift + 8 + bytes;
        ASSERT_EQ(pair.target[i], inside ? pair.source[i - 8] : 0)
            << bytes << " bytes at " << shift << ", byte " << i;
      }
    }
  }
}

TEST_P(NicOverPath, GetOfAnyLengthBringsTheTargetsBytes) {
  Pair pair(GetParam(), 40'000);
  std::iota(pair.target.begin(), pair.target.end(), std::uint8_t{9});
  for (const std::size_t bytes : {1, 4, 8, 12, 4096, 39'000}) {
    std::fill(pair.source.begin(), pair.source.end(), std::uint8_t{0});
    Request request = pair.put(4, 16, bytes);
    request.op = Op::get;
    ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, request), Errc::ok);
    ASSERT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok);
    for (std::size_t i = 0; i < pair.source.size(); ++i) {
      const bool inside = i >= 4 && i < 4 + bytes;
      ASSERT_EQ(pair.source[i], inside ? pair.target[i + 12] : 0) << bytes << " bytes, byte " << i;
    }
  }
}

TEST_P(NicOverPath, RemoteEventCarriesTheSendersValueAndComesAfterTheData) {
  Pair pair(GetParam(), 9'000);
  Request request = pair.put(0, 0, 9'000);
  request.flags |= kRemoteEvent;
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, request), Errc::ok);
  const Event event = next_event(pair.world, 1, *pair.remote);
  EXPECT_EQ(event.kind, EventKind::remote);
  EXPECT_EQ(event.data, 0x5000u);
  EXPECT_EQ(pair.target, pair.source);
  Event none;
  EXPECT_EQ(pair.remote->take(&none), Errc::not_done) << "one operation, one event";
}

TEST_P(NicOverPath, RegistrationGoesOnWithoutItsQueueWhenThatIsDestroyed) {
  Pair pair(GetParam(), 4096);
  Request request = pair.put(0, 8, 8);
  request.flags |= kRemoteEvent;
  // The first one leaves a grant that knows the queue.
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, request), Errc::ok);
  ASSERT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok);
  EXPECT_EQ(next_event(pair.world, 1, *pair.remote).kind, EventKind::remote);
  ASSERT_TRUE(pair.world[1].nic().destroy_queue(pair.remote).ok());
  // Another queue takes its number: it hears nothing of what was meant for the first.
  CompletionQueue* const next = pair.world[1].nic().create_queue(64, 0).value();
  pair.source[0] = 77;
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, request), Errc::ok);
  ASSERT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok);
  EXPECT_EQ(pair.target[8], 77);
  Event event;
  EXPECT_EQ(pair.world[1].nic().poll(*next, &event), Errc::not_done);
  EXPECT_TRUE(pair.world[1].nic().deregister(pair.key).ok());
  EXPECT_TRUE(pair.world[1].nic().destroy_queue(next).ok());
}

TEST_P(NicOverPath, LocalAndGlobalEventsAreTwoForOneTransaction) {
  Pair pair(GetParam(), 64);
  Request request = pair.put(0, 0, 8);
  request.flags = kLocalEvent | kGlobalEvent;
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, request), Errc::ok);
  EXPECT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok);
  EXPECT_EQ(pair.local->posts_open(), 1u);
  EXPECT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok);
  EXPECT_EQ(pair.local->posts_open(), 0u);
}

TEST_P(NicOverPath, SyncFlagIsStoredAfterTheData) {
  Pair pair(GetParam(), 20'000);
  Request request = pair.put(0, 8, 19'000);
  request.flags = kLocalEvent | kSyncFlag;
  request.sync_address = address_of(pair.target.data() + 19'992);
  request.sync_value = 0x1122334455667788;
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, request), Errc::ok);
  ASSERT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok);
  std::uint64_t flag = 0;
  std::memcpy(&flag, pair.target.data() + 19'992, sizeof flag);
  EXPECT_EQ(flag, request.sync_value);
  EXPECT_EQ(pair.target[8 + 18'999], pair.source[18'999]);
}

TEST_P(NicOverPath, CqWriteDeliversItsBitsAndNothingElse) {
  Pair pair(GetParam(), 64);
  Request request;
  request.op = Op::cq_write;
  request.flags = kLocalEvent;
  request.remote = pair.key;
  request.cq_data = 0xabcdef012345;
  request.context = &pair;
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, request), Errc::ok);
  const Event event = next_event(pair.world, 1, *pair.remote);
  EXPECT_EQ(event.kind, EventKind::cq_write);
  EXPECT_EQ(event.data, 0xabcdef012345u);
  EXPECT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok);
}

TEST_P(NicOverPath, WhatMayNotBeTouchedIsReportedByAnEventAndLeftAlone) {
  Pair pair(GetParam(), 8192);
  Nic& nic = pair.world[0].nic();
  const auto refused = [&](Request request) {
    EXPECT_EQ(nic.post(*pair.endpoint, request), Errc::ok);
    return outcome(pair.world, 0, *pair.local, &pair);
  };
  Request request = pair.put(0, 0, 8);
  request.remote.generation = static_cast<std::uint16_t>(request.remote.generation + 1);
  EXPECT_EQ(refused(request), Errc::invalid_handle);
  request = pair.put(0, 0, 8);
  request.remote.index = 4095;
  EXPECT_EQ(refused(request), Errc::invalid_handle);
  request = pair.put(0, 0, 8);
  request.remote_address = address_of(pair.target.data()) + 3 * kPageBytes;
  EXPECT_EQ(refused(request), Errc::bounds);
  request = pair.put(0, 0, 8);
  request.remote_address = UINT64_MAX - 3;
  EXPECT_EQ(refused(request), Errc::bounds);
  Port* stranger = nic.open_port(/*domain=*/8, 0, 99);
  pair.endpoint->port = stranger;
  pair.endpoint->grants = {};
  EXPECT_EQ(refused(pair.put(0, 0, 8)), Errc::protection);
  pair.endpoint->port = &pair.world[0].port();
  const MemKey read_only =
      pair.world[1]
          .nic()
          .register_region(pair.world[1].port(), address_of(pair.target.data()), 64, kReadOnly, nullptr)
          .value();
  request = pair.put(0, 0, 8);
  request.remote = read_only;
  EXPECT_EQ(refused(request), Errc::permission);
  EXPECT_EQ(std::count(pair.target.begin(), pair.target.end(), 0), 8192);
  request.op = Op::get;
  EXPECT_EQ(refused(request), Errc::ok) << "reading read-only memory is allowed";
}

TEST_P(NicOverPath, DeregisteredKeyIsRefusedAlthoughItsPlaceIsUsedAgain) {
  Pair pair(GetParam(), 64);
  Nic& owner = pair.world[1].nic();
  ASSERT_TRUE(owner.deregister(pair.key).ok());
  EXPECT_EQ(owner.deregister(pair.key).code(), Errc::invalid_handle);
  // 4,096 further registrations use every entry, this one's too.
  std::vector<MemKey> keys;
  for (std::uint32_t i = 0; i < kMaxRegions; ++i) {
    keys.push_back(
        owner.register_region(pair.world[1].port(), address_of(pair.target.data()), 64, 0, nullptr).value());
  }
  EXPECT_EQ(
      owner.register_region(pair.world[1].port(), address_of(pair.target.data()), 64, 0, nullptr).code(),
      Errc::no_resource);
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, pair.put(0, 0, 8)), Errc::ok);
  EXPECT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::invalid_handle);
  for (const MemKey& key : keys) EXPECT_TRUE(owner.deregister(key).ok());
}

TEST_P(NicOverPath, SegmentsAreAddressedAsOneByOffsets) {
  Pair pair(GetParam(), 64);
  std::vector<std::uint8_t> a(100), b(5'000), c(30);
  const Segment segments[] = {
      {address_of(a.data()), a.size()}, {address_of(b.data()), b.size()}, {address_of(c.data()), c.size()}};
  const auto key =
      pair.world[1].nic().regions().register_segments(pair.world[1].port(), segments, 0, nullptr);
  ASSERT_TRUE(key.ok());
  std::vector<std::uint8_t> data(5'060);
  std::iota(data.begin(), data.end(), std::uint8_t{3});
  Request request = pair.put(0, 0, data.size());
  request.local_address = address_of(data.data());
  request.remote = key.value();
  request.remote_address = 50;
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, request), Errc::ok);
  ASSERT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok);
  std::vector<std::uint8_t> whole = a;
  whole.insert(whole.end(), b.begin(), b.end());
  whole.insert(whole.end(), c.begin(), c.end());
  EXPECT_TRUE(std::equal(data.begin(), data.end(), whole.begin() + 50));
  EXPECT_EQ(std::count(whole.begin(), whole.begin() + 50, 0), 50);
  request.remote_address = 100;
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, request), Errc::ok);
  EXPECT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::bounds);
}

TEST_P(NicOverPath, FullQueueAtTheTargetLosesEventsAndSaysSo) {
  Pair pair(GetParam(), 64);
  CompletionQueue* small = pair.world[1].nic().create_queue(1, 0).value();
  const auto key =
      pair.world[1].nic().register_region(pair.world[1].port(), address_of(pair.target.data()), 64, 0, small);
  for (int i = 0; i < 3; ++i) {
    Request request = pair.put(0, 0, 8);
    request.remote = key.value();
    request.flags |= kRemoteEvent;
    ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, request), Errc::ok);
    EXPECT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok) << "the data is in place all the same";
  }
  Event event;
  EXPECT_EQ(small->take(&event), Errc::ok);
  for (int lost = 0; lost < 2; ++lost) {
    EXPECT_EQ(small->take(&event), Errc::overrun);
    EXPECT_EQ(event.kind, EventKind::overrun);
  }
  EXPECT_EQ(small->take(&event), Errc::not_done);
}

TEST_P(NicOverPath, PostsBeyondTheQueuesDepthAreTurnedAwayAndNothingIsLost) {
  Pair pair(GetParam(), 4096);
  int accepted = 0;
  while (pair.world[0].nic().post(*pair.endpoint, pair.put(0, 0, 8)) == Errc::ok) ++accepted;
  EXPECT_EQ(accepted, 64);
  for (int i = 0; i < accepted; ++i) EXPECT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok);
  EXPECT_EQ(pair.world[0].nic().post(*pair.endpoint, pair.put(0, 0, 8)), Errc::ok);
}

TEST_P(NicOverPath, OperationsToADeadPeerEndInUnreachable) {
  Pair pair(GetParam(), 64);
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, pair.put(0, 0, 8)), Errc::ok);
  EXPECT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::ok);
  pair.world.kill(1);
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, pair.put(0, 0, 8)), Errc::ok);
  EXPECT_EQ(outcome(pair.world, 0, *pair.local, &pair), Errc::unreachable);
}

TEST_P(NicOverPath, TheSourceOfAPutMayChangeWhenItsPostReturns) {
  constexpr std::size_t kPart = 4096;
  constexpr int kPuts = 40;  // more than a lane holds
  for (const std::uint32_t events : {std::uint32_t{0}, std::uint32_t{kLocalEvent}}) {
    Pair pair(GetParam(), kPuts * kPart);
    for (int i = 0; i < kPuts; ++i) {
      std::fill_n(pair.source.begin(), kPart, static_cast<std::uint8_t>(i + 1));
      Request put = pair.put(0, static_cast<std::size_t>(i) * kPart, kPart);
      put.flags = events;
      ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, put), Errc::ok);
    }
    std::fill_n(pair.source.begin(), kPart, std::uint8_t{0});
    for (int i = 0; i < 1000 && !pair.endpoint->is_idle(); ++i) {
      pair.world.serve_all();
      pair.world[0].nic().progress();
    }
    for (int i = 0; i < kPuts; ++i) {
      const auto from = pair.target.begin() + static_cast<std::ptrdiff_t>(i * kPart);
      EXPECT_EQ(std::count(from, from + kPart, i + 1), static_cast<std::ptrdiff_t>(kPart)) << i;
    }
  }
}

TEST(NicFrames, FlightsOutstandingWhenThePeerDiesEndInUnreachable) {
  Pair pair(Path::frame, 4096);
  for (int i = 0; i < 40; ++i)
    ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, pair.put(0, 0, 4096)), Errc::ok);
  EXPECT_EQ(pair.endpoint->in_flight.load(), 40u);
  pair.world.kill(1);
  for (int i = 0; i < 40; ++i) {
    Event event;
    ASSERT_EQ(pair.world[0].nic().poll(*pair.local, &event), Errc::ok);
    EXPECT_EQ(event.status, Errc::unreachable);
  }
  EXPECT_EQ(pair.endpoint->in_flight.load(), 0u);
}

// Posted with another queue than the endpoint has by now.
TEST(NicFrames, AQueueStaysUntilTheOperationsThatNameItAreOver) {
  for (const std::uint32_t how : {std::uint32_t{0}, static_cast<std::uint32_t>(kBlockTransfer)}) {
    Pair pair(Path::frame, std::size_t{4} << 20);
    Nic& nic = pair.world[0].nic();
    CompletionQueue* const other = nic.create_queue(8, 0).value();
    other->become_source();
    pair.endpoint->queue = other;
    Request request = pair.put(0, 0, how == 0 ? 4096 : pair.source.size());
    request.flags |= how;
    ASSERT_EQ(nic.post(*pair.endpoint, request), Errc::ok);
    pair.endpoint->queue = pair.local;
    // No thread serves the target.
    EXPECT_EQ(nic.destroy_queue(other).code(), Errc::no_resource);
    ASSERT_TRUE(pair.world.settle(0, *pair.endpoint));
    Event event;
    ASSERT_EQ(other->take(&event), Errc::ok);
    EXPECT_EQ(event.status, Errc::ok);
    EXPECT_TRUE(nic.destroy_queue(other).ok());
  }
}

TEST(NicFrames, SleepingTargetIsRungOnceAndAnAttendedOneNotAtAll) {
  Pair pair(Path::frame, 64);
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, pair.put(0, 0, 8)), Errc::ok);
  EXPECT_GE(pair.world[1].rings, 1);
  pair.world[1].nic().serve();
  const int rings = pair.world[1].rings;
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, pair.put(0, 0, 8)), Errc::ok);
  EXPECT_EQ(pair.world[1].rings, rings) << "its service thread said that a thread looks";
  while (pair.world[1].nic().serve()) {
  }
  ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, pair.put(0, 0, 8)), Errc::ok);
  EXPECT_GT(pair.world[1].rings, rings) << "asleep again";
}

TEST(NicAdoption, HotRegionBecomesDirectAndKeysStayGood) {
  Pair pair(Path::frame, 4096);
  const auto state = [&] { return pair.world[1].nic().regions().table().state_of(pair.key.index); };
  EXPECT_EQ(state(), RegionState::by_frame);
  for (std::uint32_t i = 0; i < pair.world[0].nic().options().adopt_after + 1; ++i) {
    ASSERT_EQ(pair.world[0].nic().post(*pair.endpoint, pair.put(0, 0, 8)), Errc::ok);
    Event event;
    for (int k = 0; k < 100 && pair.world[0].nic().poll(*pair.local, &event) == Errc::not_done; ++k)
      pair.world.serve_all();
    (void)pair.local->completed(event.transaction(), event.status);
  }
  // The box pretends that the pages are direct once the path says so; adoption itself looked before.
  EXPECT_EQ(state(), RegionState::by_frame) << "inspect() did not say direct, so it may not be believed";
}

TEST(NicThreads, DeregistrationWaitsForAnInitiatorInTheMiddleOfAPut) {
  // Property: after deregister() returned, no put changes the memory. One thread puts as fast as it can, the
  // other deregisters and then writes a pattern that must stay as it is.
  World world(2, Path::direct);
  std::vector<std::uint64_t> memory(512);
  const auto endpoint = world.endpoint(0, 1, world[0].nic().create_queue(8, 0).value());
  for (int round = 0; round < 200; ++round) {
    const MemKey key =
        world[1].nic().register_region(world[1].port(), address_of(memory.data()), 4096, 0, nullptr).value();
    std::atomic<bool> started{false};
    std::thread initiator([&] {
      const std::uint64_t value = 0x1111111111111111;
      Request request;
      request.local_address = address_of(&value);
      request.remote_address = address_of(memory.data());
      request.length = 8;
      request.remote = key;
      request.flags = kLocalEvent;
      for (;;) {
        (void)world[0].nic().post(*endpoint, request);
        Event event;
        if (endpoint->queue->take(&event) != Errc::ok) continue;
        (void)endpoint->queue->completed(event.transaction(), event.status);
        started.store(true, std::memory_order_release);
        if (event.status == Errc::invalid_handle) break;
      }
    });
    while (!started.load(std::memory_order_acquire)) std::this_thread::yield();
    ASSERT_TRUE(world[1].nic().deregister(key).ok());
    memory[0] = 42;
    initiator.join();
    ASSERT_EQ(memory[0], 42u) << "round " << round;
  }
}

}  // namespace
}  // namespace orrery::nic
