// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A peer of a CCI endpoint that says what it likes. The first byte says how far it keeps to the rules:
//   0  not at all: the bytes go to the endpoint's socket as they are
//   1  it greets with a Hello of these bytes
//   2  it connects as it should, and then sends well-sealed frames whose kind, numbers and payload are these
//   3  it connects by shared memory, and then writes these lines into its ring and says what they hold
// Records of 2 and 3 have a kind and a count of bytes in front.
#include "tests/lib/cci/stranger.hpp"

namespace {

using namespace orrery;
using namespace orrery::cci;
using Stranger = orrery::cci::test::Stranger<void (*)()>;

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

void converse(Stranger& peer, Bytes input, bool shares) {
  Hello mine{.endpoint = 77, .nonce = 99, .max_send_size = 4096, .generation = 1, .shares = shares ? 1u : 0u};
  mine.attribute = static_cast<std::uint32_t>(input.number(1) % 5);
  peer.greet(mine, nullptr, 0, shares);
  if (!peer.hear_accept()) return;
  const Hello& answer = peer.answer;
  const Segment* const theirs = peer.theirs.get();
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
      peer.frame(header, input.at, count);
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
      if ((kind & 64) != 0) peer.own->ring(0).head.store(input.number(8), std::memory_order_relaxed);
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
  Stranger peer(endpoint(), &serve);
  if (mode == 0) {
    peer.say(input.at, input.left);
  } else if (mode == 1) {
    Hello hello{};
    const std::size_t head = std::min(input.left, sizeof hello);
    std::memcpy(&hello, input.at, head);
    peer.greet(hello, input.at + head, input.left - head, false);
  } else {
    converse(peer, input, mode == 3);
  }
  serve();
  return 0;
}
