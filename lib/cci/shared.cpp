// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/endpoint.hpp"

#include <algorithm>
#include <cstring>

#include <sys/eventfd.h>

// Messages through memory that both ends share. A message of up to 56 bytes is one line of the receiver's
// ring; a longer one lies in a receive buffer of the endpoint, which its line names.
namespace orrery::cci {

namespace {

constexpr std::uint64_t kLinesTold = kRingLines / 4;
constexpr std::uint64_t kLinesAhead = 2;

void gather(std::byte* to, const iovec* pieces, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (pieces[i].iov_len == 0) continue;
    std::memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
    to += pieces[i].iov_len;
  }
}

}  // namespace

// Outcomes: ok (it lies in the peer's memory), not_done (no line or no buffer is free).
Errc Endpoint::put_message(Connection* connection, const iovec* pieces, std::uint32_t count,
                           std::uint32_t bytes) {
  ConnectionRing& ring = *connection->out;
  const auto no_room = [&] {
    if (clock_ != nullptr) connection->peer->segment->header().wanted.store(1, std::memory_order_release);
    return Errc::not_done;
  };
  if (connection->out_tail - connection->out_head >= kRingLines) {
    // Acquire: the owner's use of the line happens before ours. What the peer says is not believed.
    const std::uint64_t head = ring.head.load(std::memory_order_acquire);
    if (head > connection->out_tail || connection->out_tail - head >= kRingLines) return no_room();
    connection->out_head = head;
  }
  const auto generation = static_cast<std::uint8_t>(connection->peer_generation);
  Line& line = ring.lines[connection->out_tail % kRingLines];
  std::uint64_t mark;
  if (bytes <= kInlineBytes) {
    gather(line.bytes, pieces, count);
    mark = line_mark(connection->out_tail, LineKind::message, generation, static_cast<std::uint16_t>(bytes));
  } else {
    const Segment& segment = *connection->peer->segment;
    const auto claim = segment.claim(connection->peer_generation << 14 | connection->peer_slot);
    if (!claim.ok()) return no_room();
    gather(segment.buffer(claim.value().buffer), pieces, count);
    const BufferedMessage message{claim.value().buffer, claim.value().serial, bytes, 0};
    std::memcpy(line.bytes, &message, sizeof message);
    mark = line_mark(connection->out_tail, LineKind::buffered, generation, sizeof message);
  }
  // A full barrier: the line is there before we see whether the owner looks at it.
  line.mark.exchange(mark, std::memory_order_seq_cst);
  ++connection->out_tail;
  // Not the next, which the owner may be looking at.
  __builtin_prefetch(&ring.lines[(connection->out_tail + kLinesAhead) % kRingLines], 1);
  if (ring.attended.load(std::memory_order_seq_cst) == 0 &&
      connection->peer->segment->announce(connection->peer_slot))
    ::eventfd_write(connection->peer->doorbell.get(), 1);
  return Errc::ok;
}

// An event for a message that has come, without its bytes.
Event* Endpoint::receive_event(Connection* connection, std::uint32_t bytes) {
  Event* const event = new_event();
  event->receives = true;
  event->names(connection);
  ++receives_out_;
  event->show(cci_event_recv{CCI_EVENT_RECV, bytes, bytes == 0 ? nullptr : event->bytes, &connection->shown});
  return event;
}

// The next message of a connection, or nothing. A line that makes no sense ends the connection.
Event* Endpoint::take_line(Connection* connection) {
  while (line_is_there(*connection)) {
    ConnectionRing& ring = *connection->in;
    const Line& line = ring.lines[connection->in_head % kRingLines];
    const std::uint64_t mark = line.mark.load(std::memory_order_relaxed);
    const auto kind = static_cast<LineKind>(mark >> 24 & 0xff);
    const auto bytes = static_cast<std::uint32_t>(mark & 0xffff);
    const bool ours =
        static_cast<std::uint8_t>(mark >> 16) == static_cast<std::uint8_t>(connection->generation);
    BufferedMessage message{};
    if (kind == LineKind::buffered) std::memcpy(&message, line.bytes, sizeof message);
    const bool sane = ours && (kind == LineKind::message
                                   ? bytes <= kInlineBytes
                                   : kind == LineKind::buffered &&
                                         message.bytes <= segment_->buffer_bytes() && message.bytes > 0 &&
                                         segment_->take({message.buffer, message.serial},
                                                        connection->generation << 14 | connection->slot));
    if (!sane) {
      lose(connection, false);
      return nullptr;
    }
    connection->heard = true;
    Event* event = nullptr;
    if (connection->shown.attribute == CCI_CONN_ATTR_UU_MC_TX) {
      relay(connection, kind == LineKind::message ? line.bytes : segment_->buffer(message.buffer),
            kind == LineKind::message ? bytes : message.bytes);
      if (kind == LineKind::buffered) segment_->give_back(message.buffer);
    } else if (kind == LineKind::message) {
      event = receive_event(connection, bytes);
      std::memcpy(event->bytes, line.bytes, kInlineBytes);  // all of it: of a length that is known here
    } else {
      event = receive_event(connection, message.bytes);
      event->buffer = message.buffer;
      event->show(cci_event_recv{CCI_EVENT_RECV, message.bytes, segment_->buffer(message.buffer),
                                 &connection->shown});
    }
    ++connection->in_head;
    // Told now and then: the peer reads the same line of memory with each message that it sends.
    if (connection->in_head % kLinesTold == 0) {
      // Release: we are done with the lines.
      ring.head.store(connection->in_head, std::memory_order_release);
      made_room();
    }
    // Behind a message that followed another without a look in vain, the next is likely there.
    if (connection->in_row) __builtin_prefetch(&ring.lines[(connection->in_head + kLinesAhead) % kRingLines]);
    connection->in_row = true;
    if (event != nullptr) return event;
  }
  connection->in_row = false;
  return nullptr;
}

// Takes what lies in a connection's ring, as long as there are receive buffers: its messages are events then.
void Endpoint::take_ring(Connection* connection) {
  while (connection->shared && connection->state == ConnectionState::open && receives_out_ < receive_limit_) {
    Event* const event = take_line(connection);
    if (event == nullptr) return;
    raise(event);
  }
}

// A message for a multicast group: to every member that has room for it.
void Endpoint::relay(Connection* from, const std::byte* message, std::uint32_t bytes) {
  const iovec piece{const_cast<std::byte*>(message), bytes};
  for (const auto& member : connections_) {
    if (member.get() == from || member->state != ConnectionState::open || member->client ||
        member->shown.attribute != CCI_CONN_ATTR_UU_MC_RX || bytes > member->shown.max_send_size)
      continue;
    if (member->shared)
      (void)put_message(member.get(), &piece, 1, bytes);
    else if (member->outgoing.empty())
      send_frame(member.get(), FrameKind::message, 0, 0, 0, 0, &piece, 1);
  }
}

}  // namespace orrery::cci
