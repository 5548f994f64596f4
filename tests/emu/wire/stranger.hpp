// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/wire/ofi_wire.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

// A process that is none of the job's and speaks libfabric's protocol over TCP by hand (version 3, as
// libfabric 1.17's providers net and tcp have it): a connection begins with a message of 32 bytes and up to
// 256 of the client's data, and is answered by one like it.
namespace orrery::wire {

struct ControlHeader {
  std::uint8_t version = 3;
  std::uint8_t type = 0;         // 0 asks for a connection, 1 says yes, 6 no
  std::uint16_t data_bytes = 0;  // big-endian
  std::uint32_t unused = 0;
  std::uint64_t unused_too[2] = {};
  std::uint64_t byte_order = 1;
};
static_assert(sizeof(ControlHeader) == 32);
inline constexpr std::uint8_t kYes = 1;

// What goes before each message.
struct MessageHeader {
  std::uint8_t version = 3;
  std::uint8_t operation = 0;  // a message
  std::uint16_t flags = 0;
  std::uint8_t more[2] = {};
  std::uint8_t header_bytes = 16;
  std::uint8_t reserved = 0;
  std::uint64_t bytes = 0;  // with this header
};
static_assert(sizeof(MessageHeader) == 16);

// The socket address in an address of the wire's.
inline sockaddr_in socket_address_of(std::span<const std::byte> address) {
  sockaddr_in name{};
  std::memcpy(&name, address.data() + 32, std::min(sizeof name, address.size() - 32));
  return name;
}

// What a provider's own endpoint says when it connects: that it is the one at this port.
inline std::vector<std::byte> claim_of(std::uint16_t port_big_endian) {
  std::vector<std::byte> claim(8);
  std::memcpy(claim.data() + 2, &port_big_endian, sizeof port_big_endian);
  claim[7] = std::byte{77};  // a process number
  return claim;
}

class Stranger {
 public:
  ~Stranger() {
    if (fd_ >= 0) close(fd_);
  }
  Stranger() = default;
  Stranger(Stranger&& other) noexcept : heard(std::move(other.heard)), fd_(other.fd_) { other.fd_ = -1; }
  Stranger& operator=(Stranger&&) = delete;

  bool connect_to(const sockaddr_in& to) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd_ >= 0 && ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
           fcntl(fd_, F_SETFL, O_NONBLOCK) == 0;
  }
  void take(int fd) { fd_ = fd; }
  void say(std::span<const std::byte> bytes) { (void)send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void announce(std::uint64_t bytes) {
    MessageHeader message;
    message.bytes = sizeof message + bytes;
    say(std::as_bytes(std::span(&message, 1)));
  }
  void say_first(std::uint8_t type, std::span<const std::byte> data) {
    ControlHeader header;
    header.type = type;
    header.data_bytes = htons(static_cast<std::uint16_t>(data.size()));
    std::vector<std::byte> message(sizeof header);
    std::memcpy(message.data(), &header, sizeof header);
    message.insert(message.end(), data.begin(), data.end());
    say(message);
  }
  // Takes in what has come. False: the other end has closed.
  bool hear() {
    std::byte buffer[4096];
    for (;;) {
      const ssize_t n = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
      if (n == 0) return false;
      if (n < 0) return errno == EAGAIN;
      heard.insert(heard.end(), buffer, buffer + n);
    }
  }
  // Type of the other end's first message.
  std::optional<std::uint8_t> first_heard() const {
    if (heard.size() < sizeof(ControlHeader)) return std::nullopt;
    return std::to_integer<std::uint8_t>(heard[1]);
  }
  int fd() const { return fd_; }

  std::vector<std::byte> heard;

 private:
  int fd_ = -1;
};

}  // namespace orrery::wire
