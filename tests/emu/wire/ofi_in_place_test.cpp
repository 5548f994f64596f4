// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Payloads that the wire reads where they lie.
#include "tests/emu/wire/ofi_pair.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace orrery::wire {
namespace {

constexpr const char* kGathers = "net";

bool gathering_provider_is_here() {
  const auto names = OfiEndpoint::usable_providers();
  return std::find(names.begin(), names.end(), kGathers) != names.end();
}

#define SKIP_WITHOUT_GATHERING()     \
  if (!gathering_provider_is_here()) \
  ORRERY_SKIP("provider") << "libfabric has no provider " << kGathers << " here"

Pair gathering_pair(const std::string& faults = "") {
  return Pair([&](OfiWireOptions& options, int) {
    options.provider = kGathers;
    options.retransmit_after_ns = 5'000'000;
    if (!faults.empty()) options.faults = FaultRates::parse(faults).value();
  });
}

TEST(OfiInPlace, PayloadsOfAnyLengthArriveAsOnePacketAmongOthers) {
  SKIP_WITHOUT_GATHERING();
  Pair pair = gathering_pair();
  const std::size_t most = pair.end[0]->longest_in_place();
  ASSERT_GE(most, std::size_t{1} << 20);
  std::uint64_t next = 0;
  std::vector<std::vector<std::byte>> payloads;
  pair.sink[1].on_packet = [&](const Packet& packet) {
    ASSERT_EQ(packet.header.event_data, next);
    ASSERT_TRUE(std::equal(packet.payload.begin(), packet.payload.end(), payloads[next].begin(),
                           payloads[next].end()))
        << next;
    ++next;
  };
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{100'003},
                                  most - 1, most, std::size_t{65'536}, most - 8}) {
    for (const bool in_place : {false, true, true, false})
      payloads.push_back(payload_of(payloads.size(), in_place ? bytes : 16));
  }
  std::uint64_t answers = 0;
  pair.sink[0].on_packet = [&](const Packet& packet) {
    ASSERT_EQ(packet.header.transaction, answers) << "each has its answer";
    ++answers;
  };
  for (std::uint64_t i = 0; i < payloads.size(); ++i) {
    PacketHeader header = header_of(Verb::put, i, payloads[i].size());
    header.flags |= kWantsResponse;
    header.transaction = static_cast<std::uint32_t>(i);
    pair.send(0, header, payloads[i], i % 4 == 1 || i % 4 == 2);
  }
  ASSERT_TRUE(pair.until([&] { return answers == payloads.size() && pair.end[0]->is_idle(); }));
  EXPECT_EQ(next, payloads.size());
  EXPECT_EQ(pair.end[0]->counts().packets_sent, payloads.size());
  const std::vector<std::byte> too_long(most + 1);
  EXPECT_EQ(pair.end[0]->try_send_in_place(5, header_of(Verb::put, 1, 1), too_long).code(), Errc::size);
  EXPECT_EQ(pair.end[0]->try_send_in_place(5, header_of(Verb::response, 1, 1), {}).code(), Errc::size);
  EXPECT_EQ(pair.end[0]->try_send_in_place(6, header_of(Verb::put, 1, 1), {}).code(), Errc::no_match);
}

TEST(OfiInPlace, ABadLinkLosesNothing) {
  SKIP_WITHOUT_GATHERING();
  Pair pair = gathering_pair("drop=0.05,duplicate=0.02,reorder=0.02,corrupt=0.05,seed=9");
  constexpr std::uint64_t kPuts = 400;
  constexpr std::size_t kBytes = 40'001;
  std::uint64_t next = 0;
  pair.sink[1].on_packet = [&](const Packet& packet) {
    ASSERT_EQ(packet.header.event_data, next++);
    ASSERT_EQ(packet.payload.size(), kBytes);
    const auto right = payload_of(packet.header.event_data, kBytes);
    ASSERT_TRUE(std::equal(packet.payload.begin(), packet.payload.end(), right.begin()));
  };
  ASSERT_GE(pair.end[0]->longest_in_place(), kBytes);
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < kPuts; ++i) payloads.push_back(payload_of(i, kBytes));
  for (std::uint64_t i = 0; i < kPuts; ++i) pair.send(0, header_of(Verb::put, i, kBytes), payloads[i], true);
  ASSERT_TRUE(pair.until([&] { return next == kPuts && pair.end[0]->is_idle(); })) << next;
  EXPECT_GT(pair.end[0]->counts().retransmitted, 0u);
}

// What was summed and then written into is refused, and arrives from a copy that is not written into.
TEST(OfiInPlace, APayloadThatChangesUnderWayArrivesAsItBecame) {
  SKIP_WITHOUT_GATHERING();
  Pair pair = gathering_pair();
  std::vector<std::byte> payload = payload_of(1, pair.end[0]->longest_in_place());
  std::vector<std::byte> got;
  pair.sink[1].on_packet = [&](const Packet& packet) {
    got.assign(packet.payload.begin(), packet.payload.end());
  };
  // There is no connection yet, so that not a byte of it has left.
  pair.send(0, header_of(Verb::put, 1, payload.size()), payload, true);
  payload.back() ^= std::byte{0xff};
  ASSERT_TRUE(pair.until([&] { return !got.empty() && pair.end[0]->is_idle(); }));
  EXPECT_EQ(got, payload);
  EXPECT_EQ(pair.end[1]->counts().refusals(Refusal::checksum), 1u);
  EXPECT_GE(pair.end[0]->counts().retransmitted, 1u);
  EXPECT_EQ(pair.end[0]->counts().peers_lost, 0u);
}

// An error is told before the acknowledgement, and ends the program's operation: what is sent again after
// that is not read from memory that the program may have given back.
TEST(OfiInPlace, MemoryMayGoWithAnAnswerThatIsAnError) {
  SKIP_WITHOUT_GATHERING();
  Pair pair = gathering_pair();
  constexpr std::size_t kBytes = 65'536;
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
  ASSERT_NE(memory, MAP_FAILED);
  pair.sink[1].on_packet = [&](const Packet& packet) {
    PacketHeader answer;
    answer.verb = Verb::response;
    answer.domain = packet.header.domain;
    answer.transaction = packet.header.transaction;
    answer.offset = packet.header.offset;
    answer.status = static_cast<std::uint8_t>(Errc::bounds);
    EXPECT_TRUE(pair.end[1]->try_send(Pair::slot_of_other(1), answer, {}).ok());
  };
  bool is_answered = false;
  pair.sink[0].on_packet = [&](const Packet& packet) {
    EXPECT_FALSE(is_answered) << "one answer";
    is_answered = true;
    EXPECT_EQ(packet.header.status, static_cast<std::uint8_t>(Errc::bounds));
    EXPECT_EQ(munmap(memory, kBytes), 0);
  };
  PacketHeader header = header_of(Verb::put, 1, kBytes);
  header.flags |= kWantsResponse;
  pair.send(0, header, {static_cast<const std::byte*>(memory), kBytes}, true);
  ASSERT_TRUE(pair.until([&] { return is_answered; }));
  // The other end is silent, so that the request is sent again.
  const std::int64_t limit = monotonic_ns() + kPatience;
  while (pair.end[0]->counts().retransmitted == 0 && monotonic_ns() < limit) pair.end[0]->poll(16);
  EXPECT_GE(pair.end[0]->counts().retransmitted, 1u);
  ASSERT_TRUE(pair.until([&] { return pair.end[0]->is_idle() && pair.end[1]->is_idle(); }));
  EXPECT_EQ(pair.sink[1].count, 1u);
}

TEST(OfiInPlace, AProviderWithoutItTakesNone) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair;
  EXPECT_EQ(pair.end[0]->longest_in_place(), 0u);
  EXPECT_EQ(pair.end[0]->try_send_in_place(5, header_of(Verb::put, 1, 1), payload_of(1, 1)).code(),
            Errc::size);
}

}  // namespace
}  // namespace orrery::wire
