// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/wire/ofi_endpoint.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// What the wire between hosts is held against, between the same two processes: a TCP connection and libfabric
// without anything of ours above it. Two PEs, one thread each; `rank` 0 begins. Everything that fails ends
// the process with a message.
namespace bench {

// A TCP connection without Nagle's delay.
class BareTcp {
 public:
  // PE 0 listens on `address` and gives the port; PE 1 connects to it.
  std::uint16_t listen_on(const std::string& address);
  void accept_one();
  void connect_to(const std::string& address, std::uint16_t port);

  void send8();
  // Whether the next 8 bytes are there, which are then taken. At once.
  bool take8();

  // Both sides spin: half a round trip of 8 bytes, in ns.
  double half_ns(int rank, int rounds);
  // PE 1 sleeps in epoll_wait before each: round trips in ns, at PE 0. At PE 1 empty.
  std::vector<double> sleeper_ns(int rank, int rounds, std::int64_t pause_ns);

 private:
  void spin8();
  int listener_ = -1;
  int fd_ = -1;
  std::size_t taken_ = 0;  // of the next 8 bytes
};

// libfabric's messages by the wire's provider, from an endpoint of its own.
class BareFabric final : orrery::wire::OfiEvents {
 public:
  static constexpr std::uint32_t kLong = 1u << 20;

  BareFabric(const std::string& provider, const std::string& interface);
  std::vector<std::byte> address() const { return endpoint_->address(); }
  void connect_to(const std::vector<std::byte>& address);
  const std::string& provider() const { return endpoint_->provider(); }

  // What is done to each message beside carrying it.
  enum class Care {
    none,
    check,  // it is as long as the frame of a put of 8 bytes, summed and tagged, and checked where it arrives
    check_copy  // it is summed at both ends and copied out of the receive buffer
  };
  // Half a round trip of 8 bytes, or of a frame, in ns.
  double half_ns(int rank, int rounds, Care care);
  // Bytes per second of `messages` of 1 MiB, with one answer at the end.
  double stream(int rank, int messages, Care care);

 private:
  void arrived(std::span<const std::byte> message) override;
  void sent(orrery::wire::OfiOperation&) override { ++out_; }
  void send(std::size_t bytes);
  void send_small();
  void wait();

  std::unique_ptr<orrery::wire::OfiEndpoint> endpoint_;
  std::uint64_t peer_ = 0;
  std::array<orrery::wire::OfiOperation, 16> operations_{};
  std::uint64_t in_ = 0, out_ = 0, begun_ = 0, waited_ = 0;
  Care care_ = Care::none;
  std::uint64_t refused_ = 0;
  std::vector<std::byte> copy_;
};

}  // namespace bench
