// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Processes that are none of the job's attack the wire between hosts from this host: the worst place, since
// their address is a member's.
#include "tests/emu/wire/ofi_pair.hpp"
#include "tests/emu/wire/stranger.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <sys/resource.h>

namespace orrery::wire {
namespace {

class WireOf : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto names = OfiEndpoint::usable_providers();
    if (std::find(names.begin(), names.end(), GetParam()) == names.end())
      ORRERY_SKIP("provider") << "libfabric has no provider " << GetParam() << " here";
  }
  static void by_provider(OfiWireOptions& options, int) { options.provider = GetParam(); }
};

// Sends `count` puts of `bytes` each way and waits for them.
void expect_talk(Pair& pair, std::uint64_t count, std::size_t bytes) {
  const std::uint64_t before[] = {pair.sink[0].count, pair.sink[1].count};
  const auto payload = payload_of(1, bytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    for (int from = 0; from < 2; ++from) pair.send(from, header_of(Verb::put, i, bytes), payload);
  }
  EXPECT_TRUE(pair.until(
      [&] { return pair.sink[0].count >= before[0] + count && pair.sink[1].count >= before[1] + count; }));
  EXPECT_TRUE(pair.losses[0].slots.empty());
  EXPECT_TRUE(pair.losses[1].slots.empty());
}

// Connects as one of the provider's own endpoints would, and if that is accepted announces a long message
// and sends the beginning of it.
std::vector<Stranger> take_all_buffers(Pair& pair, const sockaddr_in& at, std::uint16_t claims, int count) {
  std::vector<Stranger> strangers;
  for (int i = 0; i < count; ++i) {
    Stranger& one = strangers.emplace_back();
    EXPECT_TRUE(one.connect_to(at));
    one.say_first(0, claim_of(htons(static_cast<std::uint16_t>(ntohs(claims) + i))));
  }
  const std::int64_t limit = monotonic_ns() + 500'000'000;
  while (monotonic_ns() < limit) {
    pair.poll();
    for (Stranger& one : strangers) (void)one.hear();
  }
  for (Stranger& one : strangers) {
    if (one.first_heard() != kYes) continue;
    one.announce(65000);
    one.say(std::vector<std::byte>(100));
  }
  return strangers;
}

TEST_P(WireOf, AStrangerHoldsNoReceiveBuffer) {
  Pair pair(by_provider);
  // Before the members speak, and while they do.
  for (int turn = 0; turn < 2; ++turn) {
    const auto strangers =
        take_all_buffers(pair, socket_address_of(pair.end[1]->address()), htons(20000), 64);
    EXPECT_TRUE(std::none_of(strangers.begin(), strangers.end(), [](const Stranger& one) {
      return one.first_heard() == kYes;
    })) << "a connection is accepted that has proved nothing";
    expect_talk(pair, 50, 60000);
  }
}

TEST_P(WireOf, AStrangerAtAMembersAddressDoesNotTakeItsConnectionOver) {
  Pair pair(by_provider);
  const std::uint16_t port = socket_address_of(pair.end[0]->address()).sin_port;
  std::vector<Stranger> strangers;
  for (int turn = 0; turn < 2; ++turn) {
    for (Stranger& one : take_all_buffers(pair, socket_address_of(pair.end[1]->address()), port, 1))
      strangers.push_back(std::move(one));
    expect_talk(pair, 20, 1000);
    for (Stranger& one : strangers) {
      (void)one.hear();
      EXPECT_LE(one.heard.size(), sizeof(ControlHeader)) << "frames went to the stranger";
    }
  }
}

// Where a member listened, a stranger listens.
TEST_P(WireOf, AStrangerWhereAMemberListenedReadsNothing) {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  socklen_t size = sizeof at;
  getsockname(listening, reinterpret_cast<sockaddr*>(&at), &size);
  ASSERT_EQ(listen(listening, 8), 0);
  fcntl(listening, F_SETFL, O_NONBLOCK);

  Collect sink;
  Losses losses;
  auto options = options_of(10);
  options.provider = GetParam();
  options.unreachable_after_ns = 1'500'000'000;
  const auto wire = open_wire(options, sink, &losses);
  auto other = options_of(11);
  other.provider = GetParam();
  std::vector<std::byte> address = open_wire(other, sink)->address();
  std::memcpy(address.data() + 32, &at, sizeof at);
  const std::uint32_t sum = crc32c(std::span<const std::byte>(address).subspan(8));
  std::memcpy(address.data() + 4, &sum, sizeof sum);
  ASSERT_TRUE(wire->add_peer(5, address).ok());
  const auto payload = payload_of(7, 400);
  ASSERT_TRUE(wire->try_send(5, header_of(Verb::put, 1, payload.size()), payload).ok());

  std::vector<Stranger> strangers;
  const std::int64_t limit = monotonic_ns() + kPatience;
  while (losses.slots.empty() && monotonic_ns() < limit) {
    wire->poll(16);
    if (const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); fd >= 0) {
      strangers.emplace_back().take(fd);
    }
    for (Stranger& one : strangers) {
      const bool first = one.heard.empty();
      (void)one.hear();
      if (first && !one.heard.empty()) one.say_first(kYes, std::vector<std::byte>(32, std::byte{'Y'}));
    }
  }
  close(listening);
  ASSERT_EQ(losses.slots.size(), 1u);
  ASSERT_FALSE(strangers.empty());
  for (const Stranger& one : strangers) {
    EXPECT_LE(one.heard.size(), sizeof(ControlHeader) + 256);
    EXPECT_EQ(std::search(one.heard.begin(), one.heard.end(), payload.begin(), payload.begin() + 32),
              one.heard.end())
        << "the payload went to a stranger";
  }
}

// Connections that say nothing cost a descriptor each, for a short time only.
TEST_P(WireOf, AFloodLeavesDescriptors) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const auto open_now = [] {
    int n = 0;
    for (int fd = 0; fd < 4096; ++fd) n += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return n;
  };
  Pair pair(by_provider);
  const sockaddr_in at = socket_address_of(pair.end[1]->address());
  const int quiet = open_now();
  std::vector<Stranger> strangers;
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(strangers.emplace_back().connect_to(at));
    if (i % 8 == 0) pair.poll();
  }
  expect_talk(pair, 20, 1000);
  EXPECT_TRUE(pair.until([&] { return open_now() < quiet + 400 + 100; }));
  // Patience is 2 s: by then none of them is left.
  EXPECT_TRUE(pair.until([&] { return open_now() <= quiet + 400 + 6; })) << open_now() - quiet - 400;
  expect_talk(pair, 20, 1000);
}

// A process that died does not seem to live because its frames are sent once more.
TEST_P(WireOf, AReplayedFrameIsNoSignOfLife) {
  Pair pair([](OfiWireOptions& options, int i) {
    by_provider(options, i);
    options.unreachable_after_ns = 400'000'000;
    options.retransmit_after_ns = 20'000'000;
  });
  std::uint64_t incarnation[2];
  for (int i = 0; i < 2; ++i)
    std::memcpy(&incarnation[i], pair.end[i]->address().data() + 8, sizeof incarnation[i]);
  const auto sealed = [&](FrameKind kind) {
    const bool data = kind == FrameKind::data;
    std::vector<std::byte> frame(kHostFrameHeaderBytes + (data ? packet_bytes(0) : 0));
    if (data) write_packet(std::span(frame).subspan(kHostFrameHeaderBytes), header_of(Verb::put, 1, 0), {});
    const std::uint16_t domain = data ? 7 : 0;
    FrameHeader header;
    header.kind = kind;
    header.job = options_of(0).job;
    header.source = 11;
    header.target = 10;
    header.domain = domain;
    header.packets = data ? 1 : 0;
    header.sequence = 1;
    header.body_bytes = static_cast<std::uint32_t>(frame.size() - kHostFrameHeaderBytes);
    header.body_crc = crc32c(std::span<const std::byte>(frame).subspan(kHostFrameHeaderBytes));
    write_frame_header(frame, header,
                       derive_key(kSecret, {header.job, incarnation[1], incarnation[0], domain}));
    return frame;
  };
  const std::vector<std::byte> frames[] = {sealed(FrameKind::data), sealed(FrameKind::ack)};
  // Taken once each.
  for (const auto& frame : frames) {
    while (!pair.end[1]->send_raw_for_test(2, frame).ok()) pair.poll();
  }
  ASSERT_TRUE(pair.until([&] { return pair.sink[0].count == 1; }));
  pair.end[0]->watch(5, true);
  // The other end polls no more; only what was there before comes again and again.
  const std::int64_t limit = monotonic_ns() + 10'000'000'000;
  while (pair.losses[0].slots.empty() && monotonic_ns() < limit) {
    for (const auto& frame : frames) (void)pair.end[1]->send_raw_for_test(2, frame);
    const std::int64_t next = monotonic_ns() + 5'000'000;
    while (monotonic_ns() < next) pair.end[0]->poll(16);
  }
  EXPECT_EQ(pair.losses[0].slots.size(), 1u) << "the replays pass for a sign of life";
}

INSTANTIATE_TEST_SUITE_P(Providers, WireOf, ::testing::Values("net", kProvider));

}  // namespace
}  // namespace orrery::wire
