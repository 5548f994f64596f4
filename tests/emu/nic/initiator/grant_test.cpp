// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/nic.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

// What lets later puts take the fast path, and what must not.
namespace orrery::nic {
namespace {

using box::Path;
using box::World;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

// Of the second NIC, with a queue that hears of puts.
MemKey registered_with_queue(World& world, void* memory, std::size_t bytes) {
  CompletionQueue* const queue = world[1].nic().create_queue(64, 0).value();
  return world[1].nic().register_region(world[1].port(), address_of(memory), bytes, 0, queue).value();
}

TEST(Grants, AQueueThatWasWrittenToWhilePagesMoveLetsNoPutThrough) {
  Nic::Options options;
  options.adopt_after = 1;
  World world(2, Path::adopt, options);
  alignas(kPageBytes) static std::uint64_t target[kPageBytes / 8];
  const std::uint64_t value = 5;
  const MemKey key = registered_with_queue(world, target, sizeof target);
  const auto endpoint = world.endpoint(0, 1, nullptr);
  const Request put = box::put_word(&value, target, key, 0);
  int switches = 0;
  world.during_switch = [&](int) {
    ++switches;
    Request write = put;
    write.op = Op::cq_write;
    EXPECT_EQ(world[0].nic().post(*endpoint, write), Errc::ok);
    EXPECT_EQ(world[0].nic().post(*endpoint, put), Errc::ok);
    EXPECT_EQ(target[0], 0u) << "the pages are neither here nor there";
  };
  target[0] = 0;
  for (int i = 0; i < 4 && switches == 0; ++i) {
    EXPECT_EQ(world[0].nic().post(*endpoint, box::put_word(&value, target + 8, key, 0)), Errc::ok);
    world.serve_all();
  }
  EXPECT_EQ(switches, 1);
  EXPECT_TRUE(world.settle(0, *endpoint));
  EXPECT_EQ(target[0], 5u);
}

// A lazy cache may hold the word: puts go to the owner, which flushes it.
TEST(Grants, AQueueThatWasWrittenToLetsNoPutPastALazyCache) {
  Nic::Options options;
  options.amo_cache_mode = AmoCacheMode::lazy;
  World world(2, Path::direct, options);
  std::uint64_t target[2] = {};
  const std::uint64_t value = 5;
  const MemKey key = registered_with_queue(world, target, sizeof target);
  const auto endpoint = world.endpoint(0, 1, nullptr);
  const Request put = box::put_word(&value, target, key, 0);
  Request write = put;
  write.op = Op::cq_write;
  EXPECT_EQ(world[0].nic().post(*endpoint, write), Errc::ok);
  EXPECT_EQ(world[0].nic().post(*endpoint, put), Errc::ok);
  EXPECT_EQ(target[0], 0u) << "its owner has not served it";
  EXPECT_TRUE(world.settle(0, *endpoint));
  world.serve_all();
  EXPECT_EQ(target[0], 5u);
}

// A program may give the pages back to the system when the call returns that deregisters them: the service
// thread is at none of them then, and goes on to none.
TEST(Adoption, StopsBeforePagesThatTheProgramLetGoOf) {
  Nic::Options options;
  options.adopt_after = 1;
  World world(2, Path::adopt, options);
  alignas(kPageBytes) static std::uint64_t target[8 * kPageBytes / 8];  // two parts of the box's adoption
  const std::uint64_t value = 5;
  const MemKey key = registered_with_queue(world, target, sizeof target);
  const auto endpoint = world.endpoint(0, 1, nullptr);
  std::atomic<bool> gone{false};
  std::thread program;
  int switches = 0;
  world.during_switch = [&](int) {
    if (++switches > 1) return;
    program = std::thread([&] {
      EXPECT_TRUE(world[1].nic().deregister(key).ok());
      gone = true;
    });
    while (world[1].nic().regions().table().state_of(key.index) != RegionState::free)
      std::this_thread::yield();
    EXPECT_FALSE(gone) << "its pages are being moved";
  };
  for (int i = 0; i < 4 && switches == 0; ++i) {
    EXPECT_EQ(world[0].nic().post(*endpoint, box::put_word(&value, target + 8, key, 0)), Errc::ok);
    world.serve_all();
  }
  ASSERT_TRUE(program.joinable());
  program.join();
  EXPECT_TRUE(gone);
  EXPECT_EQ(switches, 1);
}

// A registration of many parts moves for seconds: what a peer posts meanwhile is served before the next part.
TEST(Adoption, APutWaitsForOnePartAtTheMost) {
  Nic::Options options;
  options.adopt_after = 1;
  World world(2, Path::adopt, options);
  constexpr std::uint64_t kWords = kPageBytes / 8;
  alignas(kPageBytes) static std::uint64_t target[16 * kWords];  // four parts of the box's adoption
  const MemKey key = registered_with_queue(world, target, sizeof target);
  const auto endpoint = world.endpoint(0, 1, nullptr);
  int switches = 0;
  std::uint64_t value = 0;
  world.during_switch = [&](int) {
    // The put of the part before, to a page that has moved by now and to one that has not.
    if (switches > 0) {
      EXPECT_EQ(target[0], value) << "after part " << switches;
      EXPECT_EQ(target[15 * kWords], value) << "after part " << switches;
    }
    if (++switches == 4) return;
    value = static_cast<std::uint64_t>(switches);
    EXPECT_EQ(world[0].nic().post(*endpoint, box::put_word(&value, target, key, 0)), Errc::ok);
    EXPECT_EQ(world[0].nic().post(*endpoint, box::put_word(&value, target + 15 * kWords, key, 0)), Errc::ok);
  };
  for (int i = 0; i < 4 && switches == 0; ++i) {
    EXPECT_EQ(world[0].nic().post(*endpoint, box::put_word(&value, target + 8, key, 0)), Errc::ok);
    world.serve_all();
  }
  EXPECT_EQ(switches, 4);
  EXPECT_TRUE(world.settle(0, *endpoint));
}

}  // namespace
}  // namespace orrery::nic
