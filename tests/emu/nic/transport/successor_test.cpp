// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/nic.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

// A process in a slot that another one had: what that left in the lanes does not hinder it.
namespace orrery::nic {
namespace {

using box::Path;
using box::World;

constexpr std::size_t kBytes = 4096;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

class Successors : public ::testing::Test {
 protected:
  Successors() : target(kBytes, 7) {
    key = world[1]
              .nic()
              .register_region(world[1].port(), address_of(target.data()), kBytes, 0, nullptr)
              .value();
  }

  // Posts more gets than a lane holds the answers of.
  void ask(std::vector<std::uint8_t>& into, CompletionQueue* queue, Endpoint& endpoint) {
    Request request;
    request.op = Op::get;
    request.flags = kLocalEvent;
    request.local_address = address_of(into.data());
    request.remote_address = address_of(target.data());
    request.length = kBytes;
    request.remote = key;
    for (int i = 0; i < kGets; ++i) ASSERT_EQ(world[0].nic().post(endpoint, request), Errc::ok);
    EXPECT_EQ(queue->posts_open(), static_cast<std::uint32_t>(kGets));
  }

  static constexpr int kGets = 20;
  World world{2, Path::frame};
  std::vector<std::uint8_t> target;
  MemKey key;
};

TEST_F(Successors, AnswersThatNobodyTookDoNotFillTheLane) {
  for (const bool served_before : {false, true}) {
    std::vector<std::uint8_t> lost(kBytes);
    CompletionQueue* queue = world[0].nic().create_queue(64, 0).value();
    auto endpoint = world.endpoint(0, 1, queue);
    ask(lost, queue, *endpoint);
    if (served_before) world[1].nic().serve();
    world.kill(0);
    endpoint.reset();
    world.revive(0);

    std::vector<std::uint8_t> got(kBytes);
    queue = world[0].nic().create_queue(64, 0).value();
    endpoint = world.endpoint(0, 1, queue);
    ask(got, queue, *endpoint);
    int events = 0;
    for (int round = 0; round < 1000 && events < kGets; ++round) {
      world[1].nic().serve();  // before the successor looks
      world[0].nic().serve();
      Event event;
      while (world[0].nic().poll(*queue, &event) == Errc::ok) {
        ++events;
        EXPECT_EQ(event.status, Errc::ok);
        (void)queue->completed(event.transaction(), event.status);
      }
    }
    EXPECT_EQ(events, kGets);
    EXPECT_EQ(got, target);
    EXPECT_TRUE(world.settle(0, *endpoint));
  }
}

}  // namespace
}  // namespace orrery::nic
