// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/message.hpp"
#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

// Short messages between NICs of one process, by every path.
namespace orrery::nic {
namespace {

using box::Path;
using box::World;

constexpr MailboxShape kShape{.credits = 4, .max_bytes = 100};

// Two nodes with a mailbox each, and room around them.
class Mailboxes : public ::testing::TestWithParam<Path> {
 protected:
  struct Side {
    void* memory = nullptr;
    MailboxPlace place;
    CompletionQueue* sent = nullptr;
    CompletionQueue* arrived = nullptr;
    std::unique_ptr<Endpoint> endpoint;
  };
  static constexpr std::uint64_t kBytes = 4 * kPageBytes;

  Mailboxes() {
    for (int i = 0; i < 2; ++i) {
      Side& s = side[i];
      s.memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      s.sent = world[i].nic().create_queue(8, 0).value();
      s.arrived = world[i].nic().create_queue(256, 0).value();
      const auto address = reinterpret_cast<std::uint64_t>(s.memory);
      s.place = {
          .key = world[i].nic().register_region(world[i].port(), address, kBytes, 0, s.arrived).value(),
          .address = address + 40};
      s.endpoint = world.endpoint(i, 1 - i, s.sent);
    }
  }
  ~Mailboxes() override {
    for (Side& s : side) munmap(s.memory, kBytes);
  }
  void open(int i) {
    ASSERT_EQ(world[i].nic().messages().open(*side[i].endpoint, kShape, side[i].place, side[1 - i].place),
              Errc::ok);
  }
  Errc send(int i, std::uint64_t value, std::uint32_t id = 0, std::uint8_t tag = 0) {
    return send_message(world[i].nic(), *side[i].endpoint, std::as_bytes(std::span(&value, 1)), {},
                        {.id = id, .tag = tag});
  }
  // The next message's value; released.
  Errc receive(int i, std::uint64_t* value) {
    ReceivedMessage message;
    const Errc found = next_message(world[i].nic(), *side[i].endpoint, kAnyTag, &message);
    if (found != Errc::ok) return found;
    EXPECT_EQ(message.bytes, sizeof *value);
    std::memcpy(value, message.at, sizeof *value);
    return release_message(world[i].nic(), *side[i].endpoint);
  }
  Errc take_sent(int i, Event* event) {
    const Errc found = world[i].nic().poll(*side[i].sent, event);
    if (found != Errc::ok) return found;
    EXPECT_EQ(event->kind, EventKind::message_sent);
    void* none = nullptr;
    EXPECT_TRUE(side[i].sent->collect(static_cast<std::uint32_t>(event->data >> 32), &none));
    return found;
  }
  void settle() {
    for (int i = 0; i < 8; ++i) world.serve_all();
  }

  World world{2, GetParam(), {.adopt_after = 6}};
  Side side[2];
};

INSTANTIATE_TEST_SUITE_P(Paths, Mailboxes, ::testing::Values(Path::direct, Path::frame, Path::adopt),
                         [](const auto& info) {
                           return info.param == Path::direct  ? "Direct"
                                  : info.param == Path::frame ? "Frame"
                                                              : "Adopt";
                         });

TEST_P(Mailboxes, ManyMessagesArriveInOrderWithTheirEvents) {
  open(0);
  open(1);
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (int step = 0; received < 200 && step < 10'000; ++step) {
    const Errc rc = sent < 200 ? send(0, sent * 7, static_cast<std::uint32_t>(sent)) : Errc::not_done;
    ASSERT_TRUE(rc == Errc::ok || rc == Errc::not_done) << errc_name(rc);
    if (rc == Errc::ok) ++sent;
    ASSERT_LE(sent - received, kShape.credits);
    Event event;
    while (take_sent(0, &event) == Errc::ok) {
      EXPECT_EQ(event.status, Errc::ok);
    }
    if (step % 3 != 0) world[1].nic().serve();
    std::uint64_t value = 0;
    if (step % 5 == 0 && receive(1, &value) == Errc::ok) {
      ASSERT_EQ(value, received * 7);
      ++received;
    }
  }
  EXPECT_EQ(received, 200u);
  settle();
  Event event;
  std::uint64_t told = 0;
  while (world[1].nic().poll(*side[1].arrived, &event) == Errc::ok) {
    EXPECT_EQ(event.kind, EventKind::message_arrived);
    EXPECT_EQ(event.data, side[0].endpoint->remote_event_data);
    ++told;
  }
  EXPECT_EQ(told, 200u);
  EXPECT_EQ(side[0].sent->posts_open(), 0u);
}

TEST_P(Mailboxes, CreditsComeBackWithoutAnyCallOfTheSenders) {
  open(0);
  open(1);
  for (std::uint64_t i = 0; i < kShape.credits; ++i) ASSERT_EQ(send(0, i), Errc::ok);
  EXPECT_EQ(send(0, 9), Errc::not_done);
  settle();
  std::uint64_t value = 0;
  ASSERT_EQ(receive(1, &value), Errc::ok);
  settle();
  EXPECT_EQ(side[0].endpoint->mailbox->released_word().load(), 1u) << "in the sender's own memory";
  EXPECT_EQ(send(0, 9), Errc::ok);
  EXPECT_EQ(send(0, 10), Errc::not_done);
}

TEST_P(Mailboxes, MessagesComeBeforeTheReceiverOpensItsEnd) {
  open(0);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(send(0, 100 + i), Errc::ok);
  settle();
  open(1);
  std::uint64_t value = 0;
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(receive(1, &value), Errc::ok);
    EXPECT_EQ(value, 100 + i);
  }
  EXPECT_EQ(receive(1, &value), Errc::not_done);
}

TEST_P(Mailboxes, WhatADeadPeerSentIsReceivedFirst) {
  open(0);
  open(1);
  ASSERT_EQ(send(0, 5), Errc::ok);
  settle();
  world.kill(0);
  std::uint64_t value = 0;
  EXPECT_EQ(receive(1, &value), Errc::ok);
  EXPECT_EQ(value, 5u);
  EXPECT_EQ(receive(1, &value), Errc::not_done) << "the mailbox is as it was";
  EXPECT_EQ(send(1, 6), Errc::invalid_state);
}

TEST_P(Mailboxes, AMessageToTheDeadEndsInAnEventAndTheNextIsRefused) {
  open(0);
  ASSERT_EQ(send(0, 1, 41), Errc::ok);
  world.kill(1);
  Event event;
  ASSERT_EQ(take_sent(0, &event), Errc::ok);
  EXPECT_TRUE(event.status == Errc::ok || event.status == Errc::unreachable) << errc_name(event.status);
  EXPECT_EQ(static_cast<std::uint32_t>(event.data), 41u);
  EXPECT_EQ(send(0, 2), Errc::invalid_state);
  EXPECT_EQ(take_sent(0, &event), Errc::not_done);
  EXPECT_EQ(side[0].sent->posts_open(), 0u);
}

TEST_P(Mailboxes, ConnectionsThatCannotBeAreRefused) {
  Nic& nic = world[0].nic();
  Endpoint& ep = *side[0].endpoint;
  const auto open_with = [&](MailboxShape shape, MailboxPlace ours, MailboxPlace theirs) {
    return nic.messages().open(ep, shape, ours, theirs);
  };
  const MailboxPlace& ours = side[0].place;
  const MailboxPlace& theirs = side[1].place;
  EXPECT_EQ(open_with({0, 8}, ours, theirs), Errc::invalid_param);
  EXPECT_EQ(open_with({70'000, 8}, ours, theirs), Errc::invalid_param);
  EXPECT_EQ(open_with({1, 65'536}, ours, theirs), Errc::invalid_param);
  EXPECT_EQ(open_with({4, 4096}, ours, theirs), Errc::bounds);
  EXPECT_EQ(open_with(kShape, {theirs.key, ours.address}, theirs), Errc::invalid_handle);
  EXPECT_EQ(open_with(kShape, ours, {{}, theirs.address}), Errc::invalid_param);
  ep.bound = false;
  EXPECT_EQ(open_with(kShape, ours, theirs), Errc::invalid_state);
  ep.bound = true;
  EXPECT_EQ(open_with(kShape, ours, theirs), Errc::ok);
  EXPECT_EQ(open_with(kShape, ours, theirs), Errc::invalid_state);
}

// Both directions at once, with everything between them: no message is lost, doubled or seen early.
TEST(MailboxThreads, TwoThreadsTalkAsFastAsTheyCan) {
  for (const Path path : {Path::direct, Path::frame}) {
    constexpr std::uint64_t kMessages = 1'000;
    World world(2, path);
    std::vector<std::vector<std::uint64_t>> memory(2, std::vector<std::uint64_t>(1024));
    MailboxPlace place[2];
    std::unique_ptr<Endpoint> endpoint[2];
    for (int i = 0; i < 2; ++i) {
      const auto address = reinterpret_cast<std::uint64_t>(memory[static_cast<std::size_t>(i)].data());
      place[i] = {world[i].nic().register_region(world[i].port(), address, 8192, 0, nullptr).value(),
                  address};
      endpoint[i] = world.endpoint(i, 1 - i, nullptr);
    }
    std::atomic<int> wrong{0};
    const auto run = [&](int i) {
      Nic& nic = world[i].nic();
      if (nic.messages().open(*endpoint[i], kShape, place[i], place[1 - i]) != Errc::ok) ++wrong;
      std::uint64_t sent = 0;
      std::uint64_t received = 0;
      std::uint64_t payload[4];
      while (sent < kMessages || received < kMessages) {
        for (auto& word : payload) word = sent * 0x0101010101010101ull;
        if (sent < kMessages &&
            send_message(nic, *endpoint[i], std::as_bytes(std::span(payload)), {}, {}) == Errc::ok)
          ++sent;
        ReceivedMessage message;
        if (next_message(nic, *endpoint[i], kAnyTag, &message) != Errc::ok) {
          yield_cpu();
          continue;
        }
        std::uint64_t got[4];
        std::memcpy(got, message.at, sizeof got);
        for (const auto word : got) wrong += word != received * 0x0101010101010101ull;
        if (release_message(nic, *endpoint[i]) != Errc::ok) ++wrong;
        ++received;
      }
    };
    std::thread other([&] { run(1); });
    run(0);
    other.join();
    EXPECT_EQ(wrong.load(), 0);
    for (int i = 0; i < 1000 && !(endpoint[0]->is_idle() && endpoint[1]->is_idle()); ++i) world.serve_all();
  }
}

}  // namespace
}  // namespace orrery::nic
