// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/hosts/bare.hpp"

#include "bench/common/clock.hpp"
#include "emu/wire/frame.hpp"
#include "emu/wire/frame_check.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace bench {

namespace {

[[noreturn]] void fail(const char* what, const std::string& why) {
  std::fprintf(stderr, "host_bench: %s: %s\n", what, why.c_str());
  _exit(1);
}
void must(bool good, const char* what) {
  if (!good) fail(what, std::strerror(errno));
}

sockaddr_in name_of(const std::string& address, std::uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1)
    fail("address", address + " is not an IPv4 address");
  return name;
}

void no_delay(int fd) {
  const int one = 1;
  must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0, "TCP_NODELAY");
}

}  // namespace

std::uint16_t BareTcp::listen_on(const std::string& address) {
  sockaddr_in name = name_of(address, 0);
  socklen_t size = sizeof name;
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(listener_ >= 0 && bind(listener_, reinterpret_cast<sockaddr*>(&name), size) == 0 &&
           listen(listener_, 1) == 0 &&
           getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size) == 0,
       "listen");
  return ntohs(name.sin_port);
}

void BareTcp::accept_one() {
  fd_ = accept(listener_, nullptr, nullptr);
  must(fd_ >= 0, "accept");
  close(listener_);
  no_delay(fd_);
}

void BareTcp::connect_to(const std::string& address, std::uint16_t port) {
  sockaddr_in name = name_of(address, port);
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(fd_ >= 0 && connect(fd_, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0, "connect");
  no_delay(fd_);
}

void BareTcp::send8() {
  const char bytes[8] = {};
  must(::send(fd_, bytes, sizeof bytes, 0) == sizeof bytes, "send");
}

bool BareTcp::take8() {
  char bytes[8];
  const ssize_t n = recv(fd_, bytes, sizeof bytes - taken_, MSG_DONTWAIT);
  if (n == 0) fail("recv", "the other side is gone");
  if (n < 0) return false;
  taken_ = (taken_ + static_cast<std::size_t>(n)) % sizeof bytes;
  return taken_ == 0;
}

void BareTcp::spin8() {
  while (!take8()) {
  }
}

double BareTcp::half_ns(int rank, int rounds) {
  const double begin = now_ns();
  for (int i = 0; i < rounds; ++i) {
    if (rank == 0) send8();
    spin8();
    if (rank != 0) send8();
  }
  return (now_ns() - begin) / rounds / 2;
}

std::vector<double> BareTcp::sleeper_ns(int rank, int rounds, std::int64_t pause_ns) {
  std::vector<double> all;
  const int waiter = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {}};
  must(waiter >= 0 && epoll_ctl(waiter, EPOLL_CTL_ADD, fd_, &event) == 0, "epoll");
  for (int i = 0; i < rounds; ++i) {
    if (rank != 0) {
      while (epoll_wait(waiter, &event, 1, -1) != 1) {
      }
      spin8();
      send8();
      continue;
    }
    const timespec pause{0, pause_ns};
    nanosleep(&pause, nullptr);
    const double begin = now_ns();
    send8();
    spin8();
    all.push_back(now_ns() - begin);
  }
  close(waiter);
  return all;
}

BareFabric::BareFabric(const std::string& provider, const std::string& interface) {
  std::string why;
  auto opened = orrery::wire::OfiEndpoint::open(
      {.provider = provider, .interface = interface, .message_bytes = kLong, .receives = 32, .sends = 16},
      &why);
  if (!opened.ok()) fail("libfabric", why);
  endpoint_ = std::move(opened).value();
}

void BareFabric::connect_to(const std::vector<std::byte>& address) {
  const auto number = endpoint_->insert(address);
  if (!number.ok()) fail("libfabric", "the address of the other side is not accepted");
  peer_ = number.value();
}

void BareFabric::send(std::size_t bytes) {
  while (begun_ - out_ >= operations_.size()) endpoint_->poll(*this, 16);
  const auto i = static_cast<std::uint32_t>(begun_ % operations_.size());
  // Injected, as the wire does it.
  if (bytes <= endpoint_->longest_injected()) {
    while (!endpoint_->inject(peer_, {endpoint_->send_buffer(i), bytes}).ok()) endpoint_->poll(*this, 16);
    return;
  }
  while (!endpoint_->send(peer_, {endpoint_->send_buffer(i), bytes}, operations_[i]).ok())
    endpoint_->poll(*this, 16);
  ++begun_;
}

void BareFabric::wait() {
  for (const std::uint64_t seen = waited_++; in_ <= seen;) endpoint_->poll(*this, 16);
}

namespace {
constexpr orrery::wire::AuthKey kKey{1, 2};
}  // namespace

void BareFabric::arrived(std::span<const std::byte> message) {
  ++in_;
  if (care_ == Care::check) {
    orrery::wire::FrameHeader header;
    if (orrery::wire::read_frame_header(message, header) || !orrery::wire::tag_is_right(message, kKey) ||
        orrery::wire::check_body(message, header))
      ++refused_;
  } else if (care_ == Care::check_copy && message.size() == kLong) {
    if (orrery::wire::crc32c(message) == 0) ++refused_;  // of zeros
    std::memcpy(copy_.data(), message.data(), message.size());
  }
}

void BareFabric::send_small() {
  if (care_ != Care::check) return send(8);
  while (begun_ - out_ >= operations_.size()) endpoint_->poll(*this, 16);
  const std::span<std::byte> room(
      endpoint_->send_buffer(static_cast<std::uint32_t>(begun_ % operations_.size())),
      orrery::wire::kShortHostFrameBytes + orrery::wire::kShortHostFrameTail);
  const std::array<std::byte, 8> payload{};
  const auto frame =
      room.first(orrery::wire::write_short_packet(room, {.verb = orrery::wire::Verb::put}, payload));
  orrery::wire::FrameHeader header;
  header.sequence = 1;
  orrery::wire::seal_short_frame(frame, header, kKey);
  send(frame.size());
}

double BareFabric::half_ns(int rank, int rounds, Care care) {
  care_ = care;
  const double begin = now_ns();
  for (int i = 0; i < rounds; ++i) {
    if (rank == 0) send_small();
    wait();
    if (rank != 0) send_small();
  }
  const double each = (now_ns() - begin) / rounds / 2;
  if (refused_ != 0) fail("libfabric", "a frame did not arrive as it was sent");
  return each;
}

double BareFabric::stream(int rank, int messages, Care care) {
  care_ = care;
  copy_.resize(kLong);
  const double begin = now_ns();
  if (rank == 0) {
    for (int i = 0; i < messages; ++i) {
      // Summed where the program's bytes lie, as a put's are.
      if (care == Care::check_copy && orrery::wire::crc32c(copy_) == 0) ++refused_;
      send(kLong);
    }
    wait();
  } else {
    for (int i = 0; i < messages; ++i) wait();
    send(8);
  }
  return static_cast<double>(messages) * kLong / (now_ns() - begin) * 1e9;
}

}  // namespace bench
