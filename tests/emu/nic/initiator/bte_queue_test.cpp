// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/initiator/bte_queue.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

using box::Path;
using box::World;

constexpr std::size_t kMiB = 1 << 20;

// Node 0 moves blocks to the others.
class BlockTransfers : public ::testing::TestWithParam<Path> {
 protected:
  static std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }
  static Nic::Options short_crossover() {
    Nic::Options options;
    options.bte_crossover = kMiB;
    return options;
  }
  BlockTransfers() : world(3, GetParam(), short_crossover()), source(64 * kMiB, 7), target(64 * kMiB) {
    queue = world[0].nic().create_queue(16, 0).value();
    for (int node : {1, 2}) {
      endpoints.push_back(world.endpoint(0, node, queue));
      keys.push_back(
          world[node]
              .nic()
              .register_region(world[node].port(), address_of(target.data()), target.size(), 0, nullptr)
              .value());
    }
  }
  ~BlockTransfers() override {
    // The engine releases the endpoint after it has raised the event.
    for (const auto& endpoint : endpoints) EXPECT_TRUE(world.settle(0, *endpoint));
  }

  void post(int node, std::uint64_t offset, std::uint64_t bytes, std::uint32_t flags, void* context) {
    Request request;
    request.flags = kLocalEvent | kBlockTransfer | flags;
    request.local_address = address_of(source.data() + offset);
    request.remote_address = address_of(target.data() + offset);
    request.length = bytes;
    request.remote = keys[static_cast<std::size_t>(node - 1)];
    request.context = context;
    ASSERT_EQ(world[0].nic().post(*endpoints[static_cast<std::size_t>(node - 1)], request), Errc::ok);
  }
  // The context of what ended; nullptr: nothing yet.
  void* ended() {
    Event event;
    if (world[0].nic().poll(*queue, &event) == Errc::not_done) return nullptr;
    EXPECT_EQ(event.status, Errc::ok);
    return queue->completed(event.transaction(), event.status).value().context;
  }
  void* next() {
    for (;;) {
      if (void* const context = ended()) return context;
      world.serve_all();
      std::this_thread::yield();
    }
  }

  World world;
  std::vector<std::uint8_t> source;
  std::vector<std::uint8_t> target;
  CompletionQueue* queue = nullptr;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::vector<MemKey> keys;
  int a = 0;
  int b = 0;
  int c = 0;
};
INSTANTIATE_TEST_SUITE_P(Paths, BlockTransfers, ::testing::Values(Path::direct, Path::frame),
                         [](const auto& info) { return info.param == Path::direct ? "direct" : "frame"; });

TEST_P(BlockTransfers, LongOnesFinishBehindShortOnesAndFencesHoldOrder) {
  post(1, 0, 40 * kMiB, 0, &a);
  post(1, 40 * kMiB, kMiB, 0, &b);
  // Two channels share the engine: the short one overtakes, unless the long one was done before it was
  // posted.
  const void* const first = next();
  EXPECT_TRUE(first == &a || first == &b);
  EXPECT_EQ(next(), first == &a ? &b : &a);
  post(1, 0, 16 * kMiB, 0, &a);
  post(1, 16 * kMiB, kMiB, kFence, &b);
  post(1, 20 * kMiB, 8, 0, &c);
  EXPECT_EQ(next(), &a) << "a fenced transfer waits for what came before it";
  EXPECT_EQ(next(), &b) << "what comes after a fenced transfer waits for it, however small";
  EXPECT_EQ(next(), &c);
  EXPECT_EQ(std::count(target.begin(), target.begin() + 41 * kMiB, 7), 41 * kMiB);
}

// The first one's event and the fenced one's lie in the shared ring, the third is done by this thread itself.
TEST_P(BlockTransfers, WhatIsPostedWhenAFenceIsOverHasItsEventBehindIt) {
  // What a short transfer leaves for the next one, which then takes the shortest way.
  post(1, 0, 8, 0, &a);
  EXPECT_EQ(next(), &a);
  post(1, 0, 2 * kMiB, 0, &a);
  post(1, 2 * kMiB, 8, kFence, &b);
  while (world[0].nic().router().bte().outstanding() != 0) world.serve_all();
  EXPECT_FALSE(world[0].nic().router().block_transfer_is_short(8, queue))
      << "the events before it are not taken";
  post(1, 0, 8, 0, &c);
  EXPECT_EQ(next(), &a);
  EXPECT_EQ(next(), &b);
  EXPECT_FALSE(world[0].nic().router().block_transfer_is_short(8, queue));
  EXPECT_EQ(next(), &c);
  EXPECT_TRUE(world[0].nic().router().block_transfer_is_short(8, queue)) << "the fence is of the past";
  post(1, 0, 8, 0, &a);
  EXPECT_EQ(next(), &a);
}

// Short, and with nothing before it: the engine has to have it all the same.
TEST_P(BlockTransfers, AFencedOneThatAnotherProcessHasToTakeHoldsUpWhatComesAfterIt) {
  if (GetParam() == Path::direct) return;  // no other process has to take it
  post(1, 0, 8, kFence, &a);
  post(2, 8, 8, 0, &b);
  for (int i = 0; i < 1000; ++i) {
    world[2].nic().serve();
    ASSERT_EQ(ended(), nullptr) << "node 1 has not run";
    std::this_thread::yield();
  }
  EXPECT_EQ(target[8], 0);
  EXPECT_EQ(next(), &a);
  EXPECT_EQ(next(), &b);
  EXPECT_EQ(target[8], 7);
}

}  // namespace
}  // namespace orrery::nic
