// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What an answer that carries data says beside them.
#include "tests/emu/wire/ofi_pair.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::wire {
namespace {

// However long the machine leaves it waiting, nothing is sent a second time or acknowledged by a frame of its
// own.
void wait_for_ever(OfiWireOptions& options, int) {
  options.retransmit_after_ns = options.ack_after_ns = kPatience;
}

TEST(OfiWire, AnAnswerWithDataSaysThatItsRequestWasDelivered) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair{wait_for_ever};
  const std::vector<std::byte> payload = payload_of(1, 8);
  pair.sink[1].on_packet = [&](const Packet& packet) {
    ASSERT_TRUE(pair.end[1]->try_send(packet.header.source, header_of(Verb::response, 0, 8), payload).ok());
  };
  PacketHeader request = header_of(Verb::get, 0, 8);
  request.flags |= kWantsResponse;
  pair.send(0, request);
  ASSERT_TRUE(pair.until([&] { return pair.sink[0].count == 1; }));
  const std::uint64_t sent = pair.end[0]->counts().frames_sent;
  // Alone on its way, so it does not wait for the next poll.
  ASSERT_TRUE(pair.end[0]->try_send(Pair::slot_of_other(0), request, {}).ok());
  EXPECT_EQ(pair.end[0]->counts().frames_sent, sent + 1);
  EXPECT_EQ(pair.end[1]->counts().acks_sent, 0u);
}

// End 1 has delivered a put of end 0, and acknowledges it with a put of its own, which end 0 has just taken
// in.
struct PutForPut {
  PutForPut() {
    pair.sink[0].on_packet = [this](const Packet& packet) { taken.push_back(packet.header.verb); };
    pair.sink[1].on_packet = [this](const Packet& packet) {
      ASSERT_TRUE(pair.end[1]->try_send(packet.header.source, header_of(Verb::response, 0, 0), {}).ok());
    };
    PacketHeader put = header_of(Verb::put, 1, 8);
    put.flags |= kWantsResponse;
    pair.send(0, put, payload);
    EXPECT_TRUE(pair.until([this] { return pair.sink[1].count == 1; }));
    pair.send(1, header_of(Verb::put, 2, 8), payload);
    const std::int64_t limit = monotonic_ns() + kPatience;
    while (taken.empty() && monotonic_ns() < limit) pair.end[0]->poll(16);
  }
  Pair pair{wait_for_ever};
  const std::vector<std::byte> payload = payload_of(1, 8);
  std::vector<Verb> taken;
};

TEST(OfiWire, PacketsComeBeforeTheAnswersThatTheirFrameBrings) {
  SKIP_WITHOUT_PROVIDER();
  PutForPut exchange;
  ASSERT_EQ(exchange.taken, std::vector{Verb::put});
  EXPECT_FALSE(exchange.pair.end[0]->is_idle());
  exchange.pair.end[0]->poll(16);
  EXPECT_EQ(exchange.taken, (std::vector{Verb::put, Verb::response}));
}

TEST(OfiWire, AnswersThatCameBeforeThePeerWentAreNotLost) {
  SKIP_WITHOUT_PROVIDER();
  PutForPut exchange;
  ASSERT_EQ(exchange.taken, std::vector{Verb::put});
  Pair& pair = exchange.pair;
  pair.end[0]->drop_peer(Pair::slot_of_other(0), pair.end[1]->address());
  EXPECT_TRUE(pair.end[0]->is_lost(Pair::slot_of_other(0)));
  EXPECT_EQ(exchange.taken, (std::vector{Verb::put, Verb::response}));
}

TEST(OfiWire, LastFramesOfAPeerThatLeftAreCountedButNoNews) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair;
  pair.send(1, header_of(Verb::put, 1, 8), payload_of(1, 8));
  ASSERT_TRUE(pair.until([&] { return pair.sink[0].count == 1; }));
  pair.end[0]->drop_peer(Pair::slot_of_other(0), pair.end[1]->address());
  ASSERT_TRUE(pair.end[0]->is_lost(Pair::slot_of_other(0)));
  pair.send(1, header_of(Verb::put, 2, 8), payload_of(2, 8));
  const auto refused = [&] {
    return pair.end[0]->counts().refused[static_cast<std::size_t>(Refusal::source)];
  };
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(pair.until([&] { return refused() > 0; }));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(pair.sink[0].count, 1u);
}

TEST(OfiWire, WhoSleepsHasTakenInAllAnswers) {
  SKIP_WITHOUT_PROVIDER();
  PutForPut exchange;
  ASSERT_EQ(exchange.taken, std::vector{Verb::put});
  (void)exchange.pair.end[0]->prepare_to_sleep();
  EXPECT_EQ(exchange.taken, (std::vector{Verb::put, Verb::response}));
}

}  // namespace
}  // namespace orrery::wire
