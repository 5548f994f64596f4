// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The wire with encryption, and a stranger on the way between two processes that reads all of it.
#include "tests/emu/wire/ofi_pair.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::wire {
namespace {

sockaddr_in socket_address_in(const std::vector<std::byte>& address) {
  sockaddr_in at{};
  std::memcpy(&at, address.data() + 32, sizeof at);
  return at;
}

// A stranger through which all bytes to one process go.
class Relay {
 public:
  explicit Relay(const std::vector<std::byte>& address) : to_(socket_address_in(address)) {
    listening_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listening_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    socklen_t size = sizeof at;
    getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &size);
    EXPECT_EQ(listen(listening_, 8), 0);
    address_ = address;
    std::memcpy(address_.data() + 32, &at, sizeof at);
    const std::uint32_t sum = crc32c(std::span<const std::byte>(address_).subspan(8));
    std::memcpy(address_.data() + 4, &sum, sizeof sum);
  }
  ~Relay() {
    close(listening_);
    for (const auto& pair : pairs_) {
      close(pair.fd[0]);
      close(pair.fd[1]);
    }
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // What its peer is told to be the process's address.
  const std::vector<std::byte>& address() const { return address_; }
  void pass() {
    if (const int fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); fd >= 0) {
      const int on = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      EXPECT_EQ(connect(on, reinterpret_cast<const sockaddr*>(&to_), sizeof to_), 0);
      fcntl(on, F_SETFL, O_NONBLOCK);
      pairs_.push_back({{fd, on}, {}});
    }
    for (auto& pair : pairs_) {
      for (const int from : {0, 1}) {
        std::vector<std::byte>& waiting = pair.waiting[from];
        std::array<std::byte, 65536> bytes;
        ssize_t got = 0;
        while (waiting.size() < bytes.size() &&
               (got = recv(pair.fd[from], bytes.data(), bytes.size(), 0)) > 0) {
          waiting.insert(waiting.end(), bytes.begin(), bytes.begin() + got);
          seen.insert(seen.end(), bytes.begin(), bytes.begin() + got);
        }
        const ssize_t sent = send(pair.fd[1 - from], waiting.data(), waiting.size(), MSG_NOSIGNAL);
        if (sent > 0) waiting.erase(waiting.begin(), waiting.begin() + sent);
      }
    }
  }

  std::vector<std::byte> seen;

 private:
  struct Connection {
    int fd[2];
    std::vector<std::byte> waiting[2];
  };
  const sockaddr_in to_;
  int listening_ = -1;
  std::vector<std::byte> address_;
  std::vector<Connection> pairs_;
};

class Encrypted : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string why;
    if (!Sealer::is_usable(&why)) ORRERY_SKIP("encryption") << why;
    const auto names = OfiEndpoint::usable_providers();
    if (std::find(names.begin(), names.end(), GetParam()) == names.end())
      ORRERY_SKIP("provider") << "libfabric has no provider " << GetParam() << " here";
  }
  static OfiWireOptions options(std::uint32_t rank, bool encrypt) {
    OfiWireOptions options = options_of(rank);
    options.provider = GetParam();
    options.encrypt = encrypt;
    return options;
  }
  static void encrypting(OfiWireOptions& options, int) {
    options.provider = GetParam();
    options.encrypt = true;
  }
};

TEST_P(Encrypted, EverySizeArrivesInOrder) {
  Pair pair(encrypting);
  std::array<std::uint64_t, 2> wrong{};
  std::array<std::vector<std::byte>, 2> whole;
  for (std::size_t i = 0; i < 2; ++i) {
    pair.sink[i].on_packet = [&, i](const Packet& packet) {
      auto& bytes = whole[i];
      if (packet.header.offset == 0) bytes.clear();
      bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
      if ((packet.header.flags & kLast) == 0) return;
      wrong[i] +=
          bytes != payload_of(packet.header.event_data, static_cast<std::size_t>(packet.header.length));
      bytes.clear();
    };
  }
  std::uint64_t sent = 0;
  for (const std::size_t bytes : {0, 8, 16, 100, 4000, 65000, 65536, 200'000, 1 << 20}) {
    for (int turn = 0; turn < 8; ++turn, ++sent) {
      for (int from = 0; from < 2; ++from)
        pair.send(from, header_of(Verb::put, sent, bytes), payload_of(sent, bytes));
    }
  }
  EXPECT_TRUE(pair.until([&] { return pair.end[0]->is_idle() && pair.end[1]->is_idle(); }));
  EXPECT_EQ(wrong[0] + wrong[1], 0u);
  EXPECT_GE(pair.sink[0].count, sent);
  EXPECT_GE(pair.sink[1].count, sent);
  EXPECT_EQ(pair.end[0]->counts().refusals(Refusal::tag), 0u);
  EXPECT_EQ(pair.end[0]->longest_in_place(), 0u) << "a payload is not read where it lies";
}

// Without encryption a stranger on the way reads the payload: that is how this test knows that it looks.
TEST_P(Encrypted, OnTheWayNoPayloadShows) {
  for (const bool encrypt : {false, true}) {
    Collect sink[2];
    const auto from = open_wire(options(10, encrypt), sink[0]);
    const auto to = open_wire(options(11, encrypt), sink[1]);
    Relay relay(to->address());
    ASSERT_TRUE(from->add_peer(5, relay.address()).ok());
    ASSERT_TRUE(to->add_peer(2, from->address()).ok());
    const auto big = payload_of(7, 20'000);
    const auto small = payload_of(9, 16);
    const std::int64_t limit = monotonic_ns() + kPatience;
    std::uint64_t sent = 0;
    while (sink[1].count < 20 && monotonic_ns() < limit) {
      if (sent < 20) {
        const auto& payload = sent % 2 == 0 ? big : small;
        if (from->try_send(5, header_of(Verb::put, sent, payload.size()), payload).ok()) ++sent;
      }
      from->poll(16);
      to->poll(16);
      relay.pass();
    }
    ASSERT_EQ(sink[1].count, 20u);
    ASSERT_GT(relay.seen.size(), 10 * big.size());
    for (const auto* const payload : {&big, &small}) {
      const bool shows = std::search(relay.seen.begin(), relay.seen.end(), payload->begin(),
                                     payload->begin() + 16) != relay.seen.end();
      EXPECT_EQ(shows, !encrypt);
    }
  }
}

TEST_P(Encrypted, WhatWasChangedOnTheWayIsRefusedAndSentAgain) {
  Pair pair([](OfiWireOptions& options, int i) {
    encrypting(options, i);
    options.faults = FaultRates::parse("drop=0.02,corrupt=0.1,duplicate=0.02,seed=5").value();
    options.retransmit_after_ns = 10'000'000;
    options.frame_bytes = 1024;  // many frames
  });
  std::uint64_t wrong = 0;
  pair.sink[1].on_packet = [&](const Packet& packet) {
    const auto expected = payload_of(packet.header.event_data, packet.payload.size());
    wrong += !std::equal(expected.begin(), expected.end(), packet.payload.begin());
  };
  constexpr std::uint64_t kPuts = kSanitized ? 200 : 1000;
  for (std::uint64_t i = 0; i < kPuts; ++i) pair.send(0, header_of(Verb::put, i, 500), payload_of(i, 500));
  EXPECT_TRUE(pair.until([&] { return pair.sink[1].count >= kPuts; }));
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(pair.end[1]->counts().refusals(Refusal::tag) + pair.end[1]->counts().refusals(Refusal::magic),
            0u);
  EXPECT_EQ(pair.end[1]->counts().refusals(Refusal::checksum), 0u)
      << "nothing is looked at before it is opened";
}

TEST_P(Encrypted, AFrameThatIsNotEncryptedIsRefused) {
  Pair pair(encrypting);
  pair.send(0, header_of(Verb::put, 1, 8), payload_of(1, 8));
  ASSERT_TRUE(pair.until([&] { return pair.sink[1].count == 1; }));
  std::vector<std::byte> frame(kHostFrameHeaderBytes);
  write_frame_header(
      frame, {.kind = FrameKind::ack, .job = 0x4a4f42, .source = 10, .target = 11, .sequence = 1}, kSecret);
  ASSERT_TRUE(pair.end[0]->send_raw_for_test(5, frame).ok());
  EXPECT_TRUE(pair.until([&] { return pair.end[1]->counts().refusals(Refusal::magic) == 1; }));
}

TEST_P(Encrypted, MembersThatDifferDoNotMeetAndOneLineSaysSo) {
  Collect sink[2];
  const auto open = open_wire(options(10, false), sink[0]);
  const auto closed = open_wire(options(11, true), sink[1]);
  EXPECT_TRUE(address_encrypts(closed->address()));
  EXPECT_FALSE(address_encrypts(open->address()));
  testing::internal::CaptureStderr();
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(open->add_peer(5, closed->address()).code(), Errc::corrupt);
    EXPECT_EQ(closed->add_peer(5, open->address()).code(), Errc::corrupt);
  }
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "orrery: error: wire: process 11 encrypts, this one does not: the processes of a job need the same "
      "ORRERY_ENCRYPT\n"
      "orrery: error: wire: process 10 does not encrypt, this one does: the processes of a job need the same "
      "ORRERY_ENCRYPT\n");
}

INSTANTIATE_TEST_SUITE_P(Over, Encrypted, ::testing::Values("net", "tcp;ofi_rxm"), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ';', '_');
  return name;
});

}  // namespace
}  // namespace orrery::wire
