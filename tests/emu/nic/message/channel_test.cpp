// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/channel.hpp"
#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

// Sends to receive buffers that were posted before, by every path.
namespace orrery::nic {
namespace {

using box::Path;
using box::World;

constexpr std::uint64_t kBytes = 16 * kPageBytes;

class Channels : public ::testing::TestWithParam<Path> {
 protected:
  Channels() {
    memory = static_cast<std::byte*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    arrivals = world[1].nic().create_queue(256, 0).value();
    key = world[1]
              .nic()
              .register_region(world[1].port(), reinterpret_cast<std::uint64_t>(memory), kBytes, 0, nullptr)
              .value();
    name = unit().open(world[1].port(), arrivals).value();
    sent = world[0].nic().create_queue(64, 0).value();
    endpoint = world.endpoint(0, 1, sent);
  }
  ~Channels() override { munmap(memory, kBytes); }

  ChannelUnit& unit() { return world[1].nic().channels(); }
  // Buffer i is a page; its context says which.
  Errc post(std::uint64_t i, std::uint64_t length = kPageBytes) {
    return unit().post(name, key, reinterpret_cast<std::uint64_t>(memory) + i * kPageBytes, length,
                       reinterpret_cast<void*>(i));
  }
  Errc send(const std::vector<std::byte>& bytes, Endpoint& from, int node) {
    Request request;
    request.op = Op::send;
    request.flags = kGlobalEvent;
    request.local_address = reinterpret_cast<std::uint64_t>(bytes.data());
    request.length = bytes.size();
    request.remote = key_of(name);
    return world[node].nic().post(from, request);
  }
  // How a send of node 0 ended.
  Errc outcome() {
    Event event;
    for (int i = 0; i < 1000; ++i) {
      if (world[0].nic().poll(*sent, &event) == Errc::ok) {
        EXPECT_TRUE(sent->completed(event.transaction(), event.status).ok());
        return event.status;
      }
      world.serve_all();
    }
    return Errc::timeout;
  }
  Errc send(const std::vector<std::byte>& bytes) {
    const Errc posted = send(bytes, *endpoint, 0);
    return posted == Errc::ok ? outcome() : posted;
  }
  static std::vector<std::byte> filled(std::size_t bytes, int seed) {
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      data[i] = static_cast<std::byte>(static_cast<std::size_t>(seed) * 17 + i);
    return data;
  }
  // The next send that came; checks its bytes.
  Result<ReceivedSend> receive(const std::vector<std::byte>& expected) {
    Event event;
    if (world[1].nic().poll(*arrivals, &event) != Errc::ok) return Errc::not_done;
    const auto came = unit().take(event);
    if (!came.ok()) return came;
    const auto i = reinterpret_cast<std::uint64_t>(came.value().context);
    EXPECT_EQ(came.value().bytes, expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory + i * kPageBytes));
    return came;
  }

  World world{3, GetParam(), {.adopt_after = 4}};
  std::byte* memory = nullptr;
  CompletionQueue* arrivals = nullptr;
  CompletionQueue* sent = nullptr;
  MemKey key;
  ChannelName name;
  std::unique_ptr<Endpoint> endpoint;
};

INSTANTIATE_TEST_SUITE_P(Paths, Channels, ::testing::Values(Path::direct, Path::frame, Path::adopt),
                         [](const auto& info) {
                           return info.param == Path::direct  ? "Direct"
                                  : info.param == Path::frame ? "Frame"
                                                              : "Adopt";
                         });

TEST_P(Channels, SendsTakeTheBuffersInTheOrderInWhichTheyWerePosted) {
  for (const std::uint64_t i : {3u, 1u, 2u}) ASSERT_EQ(post(i), Errc::ok);
  EXPECT_EQ(credits_of(world[1].nic().view(), name).value(), 3u);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(send(filled(100, i)), Errc::ok);
  EXPECT_EQ(credits_of(world[1].nic().view(), name).value(), 0u);
  constexpr std::uint64_t kOrder[] = {3, 1, 2};
  for (int i = 0; i < 3; ++i) {
    const auto came = receive(filled(100, i));
    ASSERT_TRUE(came.ok());
    EXPECT_EQ(came.value().context, reinterpret_cast<void*>(kOrder[i]));
    EXPECT_EQ(came.value().source, 0);
    EXPECT_EQ(came.value().remote_event_data, endpoint->remote_event_data);
  }
  EXPECT_FALSE(receive({}).ok());
}

TEST_P(Channels, WithoutABufferTheSenderHearsThatTheReceiverIsNotReady) {
  EXPECT_EQ(send(filled(8, 1)), Errc::no_resource);
  ASSERT_EQ(post(0), Errc::ok);
  EXPECT_EQ(send(filled(8, 2)), Errc::ok);
  EXPECT_EQ(send(filled(8, 3)), Errc::no_resource);
  EXPECT_TRUE(receive(filled(8, 2)).ok());
  EXPECT_EQ(send(filled(8, 3)), Errc::no_resource) << "a buffer that was taken is not posted again by itself";
}

TEST_P(Channels, WhatIsLongerThanTheBufferLeavesItReady) {
  ASSERT_EQ(post(0, 50), Errc::ok);
  EXPECT_EQ(send(filled(51, 1)), Errc::size);
  EXPECT_EQ(send(filled(50, 2)), Errc::ok);
  EXPECT_TRUE(receive(filled(50, 2)).ok());
  ASSERT_EQ(post(1), Errc::ok);
  EXPECT_EQ(send({}), Errc::ok) << "nothing at all is a send too";
  EXPECT_TRUE(receive({}).ok());
}

TEST_P(Channels, LongSendsArriveWhole) {
  ASSERT_EQ(post(0, 15 * kPageBytes), Errc::ok);
  const auto data = filled(15 * kPageBytes - 7, 4);
  EXPECT_EQ(send(data), Errc::ok);
  EXPECT_TRUE(receive(data).ok());
}

TEST_P(Channels, StrangersAndChannelsThatAreClosedAreRefused) {
  ASSERT_EQ(post(0), Errc::ok);
  auto stranger = world.endpoint(0, 1, sent);
  stranger->port = world[0].nic().open_port(9, 0, 5);
  ASSERT_EQ(send(filled(8, 1), *stranger, 0), Errc::ok);
  EXPECT_EQ(outcome(), Errc::permission);
  EXPECT_EQ(unit().close(name), Errc::ok);
  EXPECT_EQ(send(filled(8, 1)), Errc::invalid_handle);
  EXPECT_EQ(post(1), Errc::invalid_handle);
  EXPECT_FALSE(credits_of(world[1].nic().view(), name).ok());
  EXPECT_EQ(unit().close(name), Errc::invalid_handle);
  const ChannelName again = unit().open(world[1].port(), arrivals).value();
  EXPECT_EQ(again.index, name.index);
  EXPECT_NE(again.generation, name.generation);
}

TEST_P(Channels, MemoryThatIsDeregisteredIsNotWritten) {
  ASSERT_EQ(post(0), Errc::ok);
  ASSERT_TRUE(world[1].nic().deregister(key).ok());
  EXPECT_EQ(send(filled(8, 1)), Errc::invalid_handle);
  EXPECT_EQ(memory[0], std::byte{0});
}

TEST_P(Channels, ABufferThatADeadSenderWasFillingIsReadyAgain) {
  ASSERT_EQ(post(0), Errc::ok);
  auto& word = channels_of(world[1].nic().view()).channels[name.index].buffers[0].word;
  word.store(post_word::claimed(word.load(), 2, 0));
  EXPECT_EQ(send(filled(8, 1)), Errc::no_resource) << "process 2 is at it";
  EXPECT_EQ(unit().close(name), Errc::not_done);
  world.kill(2);
  EXPECT_EQ(credits_of(world[1].nic().view(), name).ok(), false) << "closed for new senders all the same";
  EXPECT_EQ(unit().close(name), Errc::ok);
  name = unit().open(world[1].port(), arrivals).value();
  ASSERT_EQ(post(0), Errc::ok);
  word.store(post_word::claimed(word.load(), 2, 0));
  world[1].nic().channels().take_back_from_the_dead();
  EXPECT_EQ(send(filled(8, 1)), Errc::ok);
  EXPECT_TRUE(receive(filled(8, 1)).ok());
}

TEST_P(Channels, NoMoreBuffersAndChannelsThanThereIsRoomFor) {
  for (std::uint32_t i = 0; i < kMaxReceives; ++i) ASSERT_EQ(post(i % 16), Errc::ok);
  EXPECT_EQ(post(0), Errc::no_resource);
  for (std::uint32_t i = 1; i < kMaxChannels; ++i) ASSERT_TRUE(unit().open(world[1].port(), arrivals).ok());
  EXPECT_EQ(unit().open(world[1].port(), arrivals).code(), Errc::no_resource);
  EXPECT_EQ(unit().take({EventKind::received, Errc::ok, 99ull << 32}).code(), Errc::no_match);
  EXPECT_EQ(unit().take({EventKind::received, Errc::ok, 5}).code(), Errc::no_match) << "it was not filled";
}

// Two senders and a receiver that posts as fast as it takes: every send that was taken is there once, whole.
TEST(ChannelThreads, TwoSendersAndAReceiverThatPostsAsItGoes) {
  constexpr std::uint64_t kSends = 1'000;
  World world(3, Path::direct);
  std::vector<std::uint64_t> buffers(8 * 8);
  CompletionQueue* const arrivals = world[0].nic().create_queue(64, 0).value();
  const auto address = reinterpret_cast<std::uint64_t>(buffers.data());
  const MemKey key = world[0].nic().register_region(world[0].port(), address, 512, 0, nullptr).value();
  ChannelUnit& unit = world[0].nic().channels();
  const ChannelName name = unit.open(world[0].port(), arrivals).value();
  const auto post = [&](std::uint64_t i) {
    return unit.post(name, key, address + i * 64, 64, reinterpret_cast<void*>(i));
  };
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(post(i), Errc::ok);
  std::atomic<int> wrong{0};
  std::vector<std::thread> senders;
  for (int node = 1; node < 3; ++node) {
    senders.emplace_back([&, node] {
      CompletionQueue* const sent = world[node].nic().create_queue(8, 0).value();
      const auto endpoint = world.endpoint(node, 0, sent);
      for (std::uint64_t i = 0; i < kSends;) {
        std::array<std::uint64_t, 8> data;
        data.fill(i << 8 | static_cast<std::uint64_t>(node));
        Request request;
        request.op = Op::send;
        request.flags = kGlobalEvent;
        request.local_address = reinterpret_cast<std::uint64_t>(data.data());
        request.length = sizeof data;
        request.remote = key_of(name);
        Event event;
        if (world[node].nic().post(*endpoint, request) != Errc::ok || sent->take(&event) != Errc::ok ||
            !sent->completed(event.transaction(), event.status).ok())
          ++wrong;
        if (event.status == Errc::ok) {
          ++i;
        } else {
          wrong += event.status != Errc::no_resource;
          yield_cpu();
        }
      }
    });
  }
  std::array<std::uint64_t, 3> next{};
  for (std::uint64_t got = 0; got < 2 * kSends;) {
    Event event;
    if (arrivals->take(&event) != Errc::ok) {
      yield_cpu();
      continue;
    }
    const auto came = unit.take(event);
    if (!came.ok()) {
      ++wrong;
      break;
    }
    const auto i = reinterpret_cast<std::uint64_t>(came.value().context);
    const std::uint64_t node = buffers[i * 8] & 0xff;
    for (std::uint64_t k = 0; k < 8; ++k) wrong += buffers[i * 8 + k] != (next[node] << 8 | node);
    ++next[node];
    if (post(i) != Errc::ok) ++wrong;
    ++got;
  }
  for (auto& sender : senders) sender.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace orrery::nic
