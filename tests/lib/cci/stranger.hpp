// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "cci.h"
#include "emu/base/check.hpp"
#include "emu/base/unique_fd.hpp"
#include "lib/cci/frame.hpp"
#include "lib/cci/segment.hpp"
#include "lib/cci/uri.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace orrery::cci::test {

// A peer of an endpoint of this process that speaks the library's frames, and keeps to its rules as far as
// the caller likes. `Serve` lets the endpoint do what there is to do. Usage: Stranger peer(endpoint, serve);
// peer.greet(hello, nullptr, 0, shares); if (peer.hear_accept()) peer.frame(...), or a line into peer.theirs.
template <typename Serve>
class Stranger {
 public:
  Stranger(cci_endpoint_t* endpoint, Serve serve) : serve_(std::move(serve)) {
    char* text = nullptr;
    ORRERY_CHECK(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &text) == CCI_SUCCESS);
    const auto uri = parse_uri(text);
    std::free(text);
    ORRERY_CHECK(uri.ok());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string& name = uri.value().meeting;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    socket.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    ORRERY_CHECK(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  }

  // What the socket does not take is lost.
  void say(const void* bytes, std::size_t count, const int* descriptors = nullptr) {
    iovec piece{const_cast<void*>(bytes), count};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    if (descriptors != nullptr) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* const rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
      std::memcpy(CMSG_DATA(rights), descriptors, 2 * sizeof(int));
    }
    (void)::sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // Asks for a connection. `shares`: with a segment and a doorbell of its own.
  void greet(const Hello& hello, const void* data, std::size_t count, bool shares) {
    mine = hello;
    int descriptors[2] = {-1, -1};
    if (shares) {
      auto made = Segment::create(4096, mine.endpoint);
      ORRERY_CHECK(made.ok());
      own = std::move(made.value());
      doorbell_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      descriptors[0] = own->fd();
      descriptors[1] = doorbell_.get();
    }
    std::vector<std::byte> frame(sizeof(FrameHeader) + sizeof(Hello) + count);
    FrameHeader header;
    header.kind = FrameKind::connect;
    header.sequence = 1;
    header.payload_bytes = static_cast<std::uint32_t>(sizeof(Hello) + count);
    seal(&header, nullptr);
    std::memcpy(frame.data(), &header, sizeof header);
    std::memcpy(frame.data() + sizeof header, &mine, sizeof mine);
    if (count != 0) std::memcpy(frame.data() + sizeof header + sizeof mine, data, count);
    say(frame.data(), frame.size(), shares ? descriptors : nullptr);
  }

  // The endpoint's accept, and its segment where that came along; says that it is ready.
  bool hear_accept() {
    std::byte bytes[sizeof(FrameHeader) + sizeof(Hello)];
    iovec piece{bytes, sizeof bytes};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t n = -1;
    for (int look = 0; look < 1000 && n < 0; ++look) {
      serve_();
      n = ::recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    }
    if (n != static_cast<ssize_t>(sizeof bytes)) return false;
    std::memcpy(&answer, bytes + sizeof(FrameHeader), sizeof(Hello));
    const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
      int descriptors[2];
      std::memcpy(descriptors, CMSG_DATA(rights), sizeof descriptors);
      const UniqueFd first(descriptors[0]), second(descriptors[1]);
      auto opened = Segment::open(descriptors[0]);
      if (opened.ok()) theirs = std::move(opened.value());
    }
    keys = session_keys(mine, answer);
    frame({.kind = FrameKind::ready, .a = own != nullptr && theirs != nullptr ? 1u : 0u}, nullptr, 0);
    serve_();
    return true;
  }

  // A frame that is numbered and sealed as it should be, unless `change` (of the header) says something else
  // before it is sealed.
  void frame(FrameHeader header, const void* payload, std::size_t count) {
    frame(header, payload, count, [](FrameHeader*) {});
  }
  template <typename Change>
  void frame(FrameHeader header, const void* payload, std::size_t count, Change change) {
    header.generation = answer.generation;
    header.sequence = ++sequence;
    header.payload_bytes = static_cast<std::uint32_t>(count);
    change(&header);
    seal(&header, &keys.from_client);
    std::vector<std::byte> all(sizeof header + count);
    std::memcpy(all.data(), &header, sizeof header);
    if (count != 0) std::memcpy(all.data() + sizeof header, payload, count);
    say(all.data(), all.size());
  }

  UniqueFd socket;
  Hello mine, answer;
  SessionKeys keys;
  std::uint64_t sequence = 1;
  std::unique_ptr<Segment> own, theirs;

 private:
  Serve serve_;
  UniqueFd doorbell_;
};

}  // namespace orrery::cci::test
