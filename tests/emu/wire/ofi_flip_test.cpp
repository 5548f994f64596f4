// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Bits of a live TCP stream that are turned on its way into libfabric: this program's own recv(2) and its
// like stand before the C library's. Each must be caught by our checks, counted, and made good.
#include "tests/emu/wire/ofi_pair.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <random>

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace {

// The next read that brings at least `least` and at most `most` bytes has a bit turned in the byte `at`, or
// in one at random from there on. Reads that begin a message begin with the provider's own header, which only
// the provider could check: `at` lies behind it.
struct Flipper {
  bool armed = false;
  std::size_t least = 0;
  std::size_t most = 0;
  std::size_t at = 0;
  bool anywhere_behind = false;
  std::size_t flips = 0;
  std::size_t smallest = SIZE_MAX;  // read of at least `least` bytes that was seen
  std::mt19937_64 random{17};

  void pass(const iovec* parts, std::size_t count, ssize_t got) {
    if (got < 0) return;
    const auto size = static_cast<std::size_t>(got);
    if (size >= least) smallest = std::min(smallest, size);
    if (!armed || size < least || size > most || at >= size) return;
    std::size_t place = anywhere_behind ? at + random() % (size - at) : at;
    for (std::size_t i = 0; i < count; ++i) {
      if (place < parts[i].iov_len) {
        static_cast<unsigned char*>(parts[i].iov_base)[place] ^=
            static_cast<unsigned char>(1u << random() % 8);
        ++flips;
        armed = false;
        return;
      }
      place -= parts[i].iov_len;
    }
  }
};
Flipper g_flipper;

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  static auto* const real = next<ssize_t(int, void*, size_t, int)>("recv");
  const ssize_t got = real(fd, buffer, size, flags);
  const iovec part{buffer, size};
  g_flipper.pass(&part, 1, got);
  return got;
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static auto* const real = next<ssize_t(int, msghdr*, int)>("recvmsg");
  const ssize_t got = real(fd, message, flags);
  g_flipper.pass(message->msg_iov, message->msg_iovlen, got);
  return got;
}
ssize_t readv(int fd, const iovec* parts, int count) {
  static auto* const real = next<ssize_t(int, const iovec*, int)>("readv");
  const ssize_t got = real(fd, parts, count);
  g_flipper.pass(parts, static_cast<std::size_t>(count), got);
  return got;
}
}

namespace orrery::wire {
namespace {

constexpr std::size_t kProviderHeader = 64;  // at most
constexpr const char* kFlipped = "net";

bool flipped_provider_is_here() {
  const auto names = OfiEndpoint::usable_providers();
  return std::find(names.begin(), names.end(), kFlipped) != names.end();
}

Pair quick_pair() {
  return Pair([](OfiWireOptions& options, int) {
    options.provider = kFlipped;
    options.retransmit_after_ns = 5'000'000;
  });
}

std::uint64_t refused_by(const OfiWire& wire) {
  const auto& refused = wire.counts().refused;
  const std::uint64_t all = std::accumulate(refused.begin(), refused.end(), std::uint64_t{0});
  return all - wire.counts().refusals(Refusal::duplicate) - wire.counts().refusals(Refusal::window);
}

// Sends packet `number` alone, and waits until it and its acknowledgement have come.
void send_alone(Pair& pair, std::uint64_t number, std::size_t bytes, bool in_place = false) {
  const auto payload = payload_of(number, bytes);
  std::uint64_t delivered = 0;
  bool right = false;
  pair.sink[1].on_packet = [&](const Packet& packet) {
    ++delivered;
    right = packet.header.event_data == number &&
            std::equal(packet.payload.begin(), packet.payload.end(), payload.begin(), payload.end());
  };
  pair.send(0, header_of(Verb::put, number, bytes), payload, in_place);
  ASSERT_TRUE(pair.until([&] { return delivered > 0 && pair.end[0]->is_idle() && pair.end[1]->is_idle(); }));
  ASSERT_EQ(delivered, 1u);
  ASSERT_TRUE(right);
}

TEST(OfiFlip, EveryByteOfAShortFrameIsChecked) {
  if (!flipped_provider_is_here())
    ORRERY_SKIP("provider") << "libfabric has no provider " << kFlipped << " here";
  Pair pair = quick_pair();
  // A frame of this length is like no number of acknowledgements (88 bytes each) with the provider's headers.
  constexpr std::size_t kPayload = 200;
  constexpr std::size_t kFrame = kHostFrameHeaderBytes + kPacketHeaderBytes + kPayload;
  g_flipper = {};
  g_flipper.least = kFrame;
  std::uint64_t number = 0;
  while (number < 5) send_alone(pair, number++, kPayload);
  const std::size_t message = g_flipper.smallest;  // with the provider's header
  ASSERT_LT(message, kFrame + kProviderHeader) << "no read of libfabric's was met";
  g_flipper.least = g_flipper.most = message;
  for (std::size_t at = kProviderHeader; at < message; ++at) {
    const std::size_t flips = g_flipper.flips;
    const std::uint64_t refused = refused_by(*pair.end[1]);
    g_flipper.at = at;
    g_flipper.armed = true;
    // A read may bring two frames, when this thread was away so long that the first one was sent again.
    for (int i = 0; i < 1000 && g_flipper.armed; ++i) send_alone(pair, number++, kPayload);
    ASSERT_EQ(g_flipper.flips, flips + 1);
    ASSERT_EQ(refused_by(*pair.end[1]), refused + 1) << "byte " << at;
  }
}

TEST(OfiFlip, BitsAnywhereInLongFramesAreCaught) {
  if (!flipped_provider_is_here())
    ORRERY_SKIP("provider") << "libfabric has no provider " << kFlipped << " here";
  Pair pair = quick_pair();
  send_alone(pair, 0, 8);
  constexpr std::uint64_t kPackets = 100;
  ASSERT_GT(pair.end[0]->longest_in_place(), 5000 + 500 * kPackets);
  g_flipper = {};
  g_flipper.least = 4096;
  g_flipper.most = SIZE_MAX;
  g_flipper.at = kProviderHeader;
  g_flipper.anywhere_behind = true;
  for (std::uint64_t number = 1; number <= kPackets; ++number) {
    g_flipper.armed = true;
    send_alone(pair, number, 5000 + 500 * number, number % 2 == 0);
  }
  EXPECT_EQ(g_flipper.flips, kPackets);
  EXPECT_EQ(refused_by(*pair.end[1]), kPackets);
}

}  // namespace
}  // namespace orrery::wire
