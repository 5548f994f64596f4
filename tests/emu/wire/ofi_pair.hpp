// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"
#include "emu/wire/ofi_wire.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// Two ends of the wire between hosts over this host's loopback interface.
namespace orrery::wire {

inline constexpr AuthKey kSecret{0x123456789abcdef0, 0x0fedcba987654321};
inline constexpr std::int64_t kPatience = 60'000'000'000;  // a test that waits longer has failed
// Instrumented, a test that sends many packets sends fewer.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
inline const char* const kProvider = "tcp;ofi_rxm";

inline OfiWireOptions options_of(std::uint32_t rank) {
  OfiWireOptions options;
  options.provider = kProvider;
  options.interface = "127.0.0.1";
  options.job = 0x4a4f42;
  options.secret = kSecret;
  options.rank = rank;
  return options;
}

inline bool provider_is_here() {
  const auto names = OfiEndpoint::usable_providers();
  return std::find(names.begin(), names.end(), kProvider) != names.end();
}

#define SKIP_WITHOUT_PROVIDER() \
  if (!provider_is_here()) ORRERY_SKIP("provider") << "libfabric has no provider " << kProvider << " here"

struct Collect : Sink {
  std::function<void(const Packet&)> on_packet = [](const Packet&) {};
  std::uint64_t count = 0;
  void deliver(const Packet& packet) override {
    ++count;
    on_packet(packet);
  }
};

struct Losses : PeerLoss {
  std::vector<ProcessSlot> slots;
  void lost(ProcessSlot peer) override { slots.push_back(peer); }
};

inline std::unique_ptr<OfiWire> open_wire(const OfiWireOptions& options, Sink& sink,
                                          PeerLoss* loss = nullptr) {
  std::string why;
  auto wire = OfiWire::open(options, sink, loss, &why);
  EXPECT_TRUE(wire.ok()) << why;
  return wire.ok() ? std::move(wire).value() : nullptr;
}

// Two ends that know each other: end 0 calls end 1 slot 5, end 1 calls end 0 slot 2.
struct Pair {
  explicit Pair(const std::function<void(OfiWireOptions&, int)>& change = [](OfiWireOptions&, int) {}) {
    for (int i = 0; i < 2; ++i) {
      OfiWireOptions options = options_of(static_cast<std::uint32_t>(i + 10));
      change(options, i);
      end[i] = open_wire(options, sink[i], &losses[i]);
    }
    EXPECT_TRUE(end[0]->add_peer(5, end[1]->address()).ok());
    EXPECT_TRUE(end[1]->add_peer(2, end[0]->address()).ok());
  }
  static ProcessSlot slot_of_other(int i) { return i == 0 ? 5 : 2; }
  void poll() {
    end[0]->poll(16);
    end[1]->poll(16);
  }
  // Polls both until `done`; false when it took too long.
  bool until(const std::function<bool()>& done) {
    const std::int64_t limit = monotonic_ns() + kPatience;
    while (!done()) {
      poll();
      if (monotonic_ns() > limit) return false;
    }
    return true;
  }
  void send(int from, const PacketHeader& header, std::span<const std::byte> payload = {},
            bool in_place = false) {
    const std::int64_t limit = monotonic_ns() + kPatience;
    for (;;) {
      const Status status = in_place ? end[from]->try_send_in_place(slot_of_other(from), header, payload)
                                     : end[from]->try_send(slot_of_other(from), header, payload);
      if (status.ok()) return;
      ASSERT_EQ(status.code(), Errc::not_done);
      ASSERT_LT(monotonic_ns(), limit);
      poll();
    }
  }

  Collect sink[2];
  Losses losses[2];
  std::unique_ptr<OfiWire> end[2];
};

inline std::byte byte_of(std::uint64_t number, std::size_t i) {
  return static_cast<std::byte>(number * 31 + i * 7 + 1);
}

inline std::vector<std::byte> payload_of(std::uint64_t number, std::size_t bytes) {
  std::vector<std::byte> payload(bytes);
  for (std::size_t i = 0; i < bytes; ++i) payload[i] = byte_of(number, i);
  return payload;
}

inline PacketHeader header_of(Verb verb, std::uint64_t number, std::size_t bytes) {
  PacketHeader header;
  header.verb = verb;
  header.flags = kLast;
  header.domain = 7;
  header.event_data = number;
  header.length = bytes;
  return header;
}

}  // namespace orrery::wire
