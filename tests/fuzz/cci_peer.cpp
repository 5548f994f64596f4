// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A peer of a CCI endpoint that says what it likes. The first byte says how far it keeps to the rules:
//   0  not at all: the bytes go to the endpoint's socket as they are
//   1  it greets with a Hello of these bytes
//   2  it connects as it should, and then sends well-sealed frames whose kind, numbers and payload are these
//   3  it connects by shared memory, and then writes these lines into its ring and says what they hold
// Records of 2 and 3 have a kind and a count of bytes in front.
#include "cci.h"
#include "emu/base/check.hpp"
#include "emu/base/unique_fd.hpp"
#include "lib/cci/frame.hpp"
#include "lib/cci/segment.hpp"
#include "lib/cci/uri.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using namespace orrery;
using namespace orrery::cci;

cci_endpoint_t* endpoint() {
  static cci_endpoint_t* const made = [] {
    std::uint32_t caps = 0;
    cci_endpoint_t* opened = nullptr;
    ORRERY_CHECK(cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS);
    ORRERY_CHECK(cci_create_endpoint(nullptr, 0, &opened, nullptr) == CCI_SUCCESS);
    return opened;
  }();
  return made;
}

std::byte* exposed() {
  static std::byte memory[256];
  static const bool registered = [] {
    cci_rma_handle_t* handle = nullptr;
    return cci_rma_register(endpoint(), memory, sizeof memory, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle) ==
           CCI_SUCCESS;
  }();
  ORRERY_CHECK(registered);
  return memory;
}

// Lets the endpoint do what there is to do; connection requests are accepted, messages read.
void serve() {
  for (int in_vain = 0; in_vain < 3;) {
    cci_event_t* event = nullptr;
    if (cci_get_event(endpoint(), &event) != CCI_SUCCESS) {
      ++in_vain;
      continue;
    }
    in_vain = 0;
    if (event->type == CCI_EVENT_CONNECT_REQUEST) {
      ORRERY_CHECK(event->request.data_len <= CCI_CONN_REQ_LEN);
      ORRERY_CHECK(cci_accept(event, nullptr) == CCI_SUCCESS);
    } else if (event->type == CCI_EVENT_RECV) {
      ORRERY_CHECK(event->recv.len <= endpoint()->device->max_send_size);
      unsigned sum = 0;
      for (std::uint32_t i = 0; i < event->recv.len; ++i)
        sum += static_cast<const unsigned char*>(event->recv.ptr)[i];
      ORRERY_CHECK(sum <= 255u * event->recv.len);
      (void)cci_send(event->recv.connection, event->recv.ptr, event->recv.len, nullptr, CCI_FLAG_SILENT);
    }
    ORRERY_CHECK(cci_return_event(event) == CCI_SUCCESS);
  }
}

UniqueFd dial() {
  char* text = nullptr;
  ORRERY_CHECK(cci_get_opt(endpoint(), CCI_OPT_ENDPT_URI, &text) == CCI_SUCCESS);
  const auto uri = parse_uri(text);
  std::free(text);
  ORRERY_CHECK(uri.ok());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, uri.value().meeting.data(), uri.value().meeting.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + uri.value().meeting.size());
  ORRERY_CHECK(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  return socket;
}

void say(int socket, const void* bytes, std::size_t count, const int* descriptors = nullptr) {
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
  (void)::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// The server's accept, and its segment where it came along.
bool hear_accept(int socket, Hello* theirs, std::unique_ptr<Segment>* segment) {
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
    serve();
    n = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  }
  if (n != static_cast<ssize_t>(sizeof bytes)) return false;
  std::memcpy(theirs, bytes + sizeof(FrameHeader), sizeof(Hello));
  const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    int descriptors[2];
    std::memcpy(descriptors, CMSG_DATA(rights), sizeof descriptors);
    const UniqueFd first(descriptors[0]), second(descriptors[1]);
    auto opened = Segment::open(descriptors[0]);
    if (opened.ok()) *segment = std::move(opened.value());
  }
  return true;
}

struct Bytes {
  const std::uint8_t* at;
  std::size_t left;
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::size_t n = bytes < left ? bytes : left;
    std::memcpy(&value, at, n);
    at += n;
    left -= n;
    return value;
  }
};

void greet(int socket, const Hello& hello, const void* data, std::size_t count, const int* descriptors) {
  std::vector<std::byte> frame(sizeof(FrameHeader) + sizeof(Hello) + count);
  FrameHeader header;
  header.kind = FrameKind::connect;
  header.sequence = 1;
  header.payload_bytes = static_cast<std::uint32_t>(sizeof(Hello) + count);
  seal(&header, nullptr);
  std::memcpy(frame.data(), &header, sizeof header);
  std::memcpy(frame.data() + sizeof header, &hello, sizeof hello);
  if (count != 0) std::memcpy(frame.data() + sizeof header + sizeof hello, data, count);
  say(socket, frame.data(), frame.size(), descriptors);
}

void converse(int socket, Bytes input, bool shares) {
  Hello mine{.endpoint = 77, .nonce = 99, .max_send_size = 4096, .generation = 1, .shares = shares ? 1u : 0u};
  mine.attribute = static_cast<std::uint32_t>(input.number(1) % 5);
  std::unique_ptr<Segment> own, theirs;
  UniqueFd doorbell;
  int descriptors[2] = {-1, -1};
  if (shares) {
    auto made = Segment::create(4096, mine.endpoint);
    ORRERY_CHECK(made.ok());
    own = std::move(made.value());
    doorbell.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    descriptors[0] = own->fd();
    descriptors[1] = doorbell.get();
  }
  greet(socket, mine, nullptr, 0, shares ? descriptors : nullptr);
  Hello answer;
  if (!hear_accept(socket, &answer, &theirs)) return;
  const SessionKeys keys = session_keys(mine, answer);
  std::uint64_t sequence = 1;
  const auto frame = [&](FrameHeader header, const void* payload, std::size_t count) {
    header.generation = answer.generation;
    header.sequence = ++sequence;
    header.payload_bytes = static_cast<std::uint32_t>(count);
    seal(&header, &keys.from_client);
    std::vector<std::byte> all(sizeof header + count);
    std::memcpy(all.data(), &header, sizeof header);
    if (count != 0) std::memcpy(all.data() + sizeof header, payload, count);
    say(socket, all.data(), all.size());
  };
  frame({.kind = FrameKind::ready, .a = shares && theirs != nullptr ? 1u : 0u}, nullptr, 0);
  serve();
  std::uint64_t position = 0;
  for (int records = 0; records < 64 && input.left != 0; ++records) {
    const auto kind = static_cast<std::uint8_t>(input.number(1));
    if (theirs == nullptr) {
      FrameHeader header;
      header.kind = static_cast<FrameKind>(kind % 14);
      header.flags = static_cast<std::uint16_t>(input.number(1));
      header.acked = input.number(1);
      // A registration's name is generation << 32 | index: small numbers of both.
      header.a = input.number(1);
      header.b = input.number(1) << 32 | input.number(1);
      header.c = input.number(2);
      const std::size_t count = std::min<std::size_t>(input.number(2) % 8192, input.left);
      frame(header, input.at, count);
      input.at += count;
      input.left -= count;
    } else {
      ConnectionRing& ring = theirs->ring(answer.slot % kMaxConnections);
      Line& line = ring.lines[position % kRingLines];
      BufferedMessage message{static_cast<std::uint32_t>(input.number(2)),
                              static_cast<std::uint32_t>(input.number(1)),
                              static_cast<std::uint32_t>(input.number(2)), 0};
      if ((kind & 4) != 0) {
        const auto claim = theirs->claim(answer.generation << 14 | answer.slot);
        if (claim.ok()) message.buffer = claim.value().buffer, message.serial = claim.value().serial;
      }
      std::memcpy(line.bytes, &message, sizeof message);
      const auto generation = static_cast<std::uint8_t>(answer.generation + ((kind & 8) != 0 ? 1 : 0));
      line.mark.store(line_mark(position, static_cast<LineKind>(kind & 3), generation,
                                static_cast<std::uint16_t>(input.number(1))),
                      std::memory_order_seq_cst);
      ++position;
      if ((kind & 16) != 0) theirs->header().free_head.store(input.number(8), std::memory_order_relaxed);
      if ((kind & 32) != 0) theirs->header().fresh.store(input.number(8), std::memory_order_relaxed);
      if ((kind & 64) != 0) own->ring(0).head.store(input.number(8), std::memory_order_relaxed);
      (void)theirs->announce(kind & 128 ? static_cast<std::uint32_t>(input.number(2)) % kMaxConnections
                                        : answer.slot % kMaxConnections);
    }
    if (records % 8 == 7) serve();
  }
  serve();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  (void)exposed();
  const std::uint8_t mode = data[0] % 4;
  const Bytes input{data + 1, size - 1};
  const UniqueFd socket = dial();
  if (mode == 0) {
    say(socket.get(), input.at, input.left);
  } else if (mode == 1) {
    Hello hello{};
    const std::size_t head = std::min(input.left, sizeof hello);
    std::memcpy(&hello, input.at, head);
    greet(socket.get(), hello, input.at + head, input.left - head, nullptr);
  } else {
    converse(socket.get(), input, mode == 3);
  }
  serve();
  return 0;
}
