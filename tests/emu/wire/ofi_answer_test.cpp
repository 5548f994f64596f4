// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What an answer that carries data says beside them.
#include "tests/emu/wire/ofi_pair.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::wire {
namespace {

TEST(OfiWire, AnAnswerWithDataSaysThatItsRequestWasDelivered) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair;
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

}  // namespace
}  // namespace orrery::wire
