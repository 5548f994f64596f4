// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/endpoint.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/epoll.h>
#include <sys/socket.h>

// Frames over a connection's socket: everything of a connection that shares no memory, and what makes and
// watches one that does.
namespace orrery::cci {

namespace {

constexpr std::size_t kScratch = 256 * 1024;
constexpr std::size_t kMostDescriptors = 4;  // of a peer, that wait for their frame
constexpr int kMostPieces = 60;

}  // namespace

// Whether the peer may send its memory file now.
bool Endpoint::expects_file(const Connection& connection) {
  return connection.shared && connection.peer != nullptr && connection.peer->asked &&
         connection.peer->memory == nullptr;
}

bool Endpoint::by_stream(const Connection& connection) const {
  return connection.state == ConnectionState::open && !connection.shared;
}

void Endpoint::set_interest(Connection* connection, std::uint32_t events) {
  if (connection->interest == events || !connection->socket.valid()) return;
  connection->interest = events;
  epoll_event event{};
  event.events = events;
  event.data.ptr = connection;
  ::epoll_ctl(net_.get(), EPOLL_CTL_MOD, connection->socket.get(), &event);
}

// Sends a frame, or keeps what the socket does not take. False: the connection is lost.
bool Endpoint::send_frame(Connection* connection, FrameKind kind, std::uint16_t flags, std::uint64_t a,
                          std::uint64_t b, std::uint64_t c, const iovec* pieces, std::uint32_t count,
                          const int* descriptors) {
  if (!connection->socket.valid()) return false;
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  FrameHeader header;
  header.kind = kind;
  header.flags = flags;
  header.payload_bytes = static_cast<std::uint32_t>(bytes);
  header.generation = connection->peer_generation;
  header.sequence = ++connection->frames_sent;
  header.acked = connection->messages_taken;
  header.a = a;
  header.b = b;
  header.c = c;
  seal(&header, connection->keyed ? &connection->write_key : nullptr);
  // The frame carries the acknowledgement; the list is put right when it is gone through.
  connection->owes_ack = false;
  stirred_ = true;

  std::size_t sent = 0;
  if (connection->outgoing.empty() && count <= kMostPieces) {
    iovec all[kMostPieces + 1];
    all[0] = {&header, sizeof header};
    std::copy(pieces, pieces + count, all + 1);
    msghdr message{};
    message.msg_iov = all;
    message.msg_iovlen = count + 1;
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
    ssize_t n;
    do n = ::sendmsg(connection->socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
      lose(connection);
      return false;
    }
    sent = n < 0 ? 0 : static_cast<std::size_t>(n);
    if (sent == sizeof header + bytes) return true;
  }
  const auto keep = [&](const void* from, std::size_t n) {
    if (sent >= n) {
      sent -= n;
      return;
    }
    const auto* const first = static_cast<const std::byte*>(from) + sent;
    connection->outgoing.insert(connection->outgoing.end(), first, first + (n - sent));
    sent = 0;
  };
  keep(&header, sizeof header);
  for (std::uint32_t i = 0; i < count; ++i) keep(pieces[i].iov_base, pieces[i].iov_len);
  set_interest(connection, connection->interest | EPOLLOUT);
  return true;
}

// Sends what the socket did not take before. False: the connection is lost.
bool Endpoint::flush(Connection* connection) {
  std::size_t sent = 0;
  while (sent < connection->outgoing.size()) {
    iovec piece{connection->outgoing.data() + sent, connection->outgoing.size() - sent};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    const ssize_t n = ::sendmsg(connection->socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n < 0) {
      lose(connection);
      return false;
    }
    sent += static_cast<std::size_t>(n);
  }
  connection->outgoing.erase(connection->outgoing.begin(),
                             connection->outgoing.begin() + static_cast<long>(sent));
  if (connection->outgoing.empty()) {
    std::vector<std::byte>().swap(connection->outgoing);
    set_interest(connection, connection->interest & ~static_cast<std::uint32_t>(EPOLLOUT));
  }
  return true;
}

void Endpoint::read_socket(Connection* connection) {
  if (connection->stalled || !connection->socket.valid()) return;
  if (scratch_ == nullptr) scratch_ = std::make_unique_for_overwrite<std::byte[]>(kScratch);
  iovec piece{scratch_.get(), kScratch};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  const bool may_bring = connection->same_user && (!connection->keyed || expects_file(*connection));
  if (may_bring) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  // Not recv(2) and send(2): clients have functions of these names, which would be called instead.
  const ssize_t n = ::recvmsg(connection->socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (may_bring && n > 0) {
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
      if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(each) + i * sizeof(int), sizeof fd);
        UniqueFd brought(fd);
        if (connection->descriptors.size() < kMostDescriptors)
          connection->descriptors.push_back(std::move(brought));
      }
    }
  }
  if (n <= 0) {
    lose(connection);
    return;
  }
  connection->heard = true;
  const std::span<const std::byte> bytes(scratch_.get(), static_cast<std::size_t>(n));
  if (connection->partial.empty()) {
    handle_bytes(connection, bytes);
  } else {
    std::vector<std::byte> whole;
    whole.swap(connection->partial);
    whole.insert(whole.end(), bytes.begin(), bytes.end());
    handle_bytes(connection, whole);
  }
}

// Deals with the frames in `bytes`, and keeps what is not whole, or cannot be taken yet.
void Endpoint::handle_bytes(Connection* connection, std::span<const std::byte> bytes) {
  while (connection->state != ConnectionState::lost && connection->socket.valid()) {
    FrameHeader header;
    const Errc looked = connection->reader.look(bytes, &header);
    if (looked == Errc::not_done) {
      connection->partial.assign(bytes.begin(), bytes.end());
      return;
    }
    Errc done = looked;
    if (looked == Errc::ok) {
      done = handle_frame(connection, header, bytes.subspan(sizeof header, header.payload_bytes));
      if (done == Errc::not_done) {
        connection->partial.assign(bytes.begin(), bytes.end());
        return;
      }
    }
    if (done != Errc::ok) {
      lose(connection);
      return;
    }
    connection->reader.next();
    bytes = bytes.subspan(sizeof header + header.payload_bytes);
  }
}

// Outcomes: ok; not_done: not now, the same frame again later; corrupt: not what may come in this state.
Errc Endpoint::handle_frame(Connection* connection, const FrameHeader& header,
                            std::span<const std::byte> payload) {
  switch (header.kind) {
    case FrameKind::connect:
      return connection->state == ConnectionState::greeting ? handle_connect(connection, payload)
                                                            : Errc::corrupt;
    case FrameKind::accept:
      return connection->state == ConnectionState::waiting ? handle_accept(connection, payload)
                                                           : Errc::corrupt;
    case FrameKind::reject:
      if (connection->state != ConnectionState::waiting) return Errc::corrupt;
      connect_failed(connection, CCI_ECONNREFUSED);
      return Errc::ok;
    case FrameKind::ready:
      return connection->state == ConnectionState::accepting ? handle_ready(connection, header.a != 0)
                                                             : Errc::corrupt;
    default:
      break;
  }
  if (connection->state == ConnectionState::ended) return Errc::ok;
  if (connection->state != ConnectionState::open) return Errc::corrupt;
  handle_ack(connection, header.acked);
  switch (header.kind) {
    case FrameKind::message:
      return connection->shared ? Errc::corrupt : handle_message(connection, header, payload);
    case FrameKind::busy:
      connection->peer_busy = true;
      return Errc::ok;
    case FrameKind::ping:
      take_ring(connection);
      if (connection->state != ConnectionState::open) return Errc::ok;
      send_frame(connection, FrameKind::pong, 0, 0, 0, 0, nullptr, 0);
      return Errc::ok;
    case FrameKind::ack:
    case FrameKind::pong:
      return Errc::ok;
    case FrameKind::map:
    case FrameKind::memory:
      return handle_mapping(connection, header);
    default:
      return handle_rma(connection, header, payload);
  }
}

Errc Endpoint::handle_message(Connection* connection, const FrameHeader& header,
                              std::span<const std::byte> payload) {
  if (payload.size() > segment_->buffer_bytes()) return Errc::corrupt;
  const bool reliable = connection->shown.attribute <= CCI_CONN_ATTR_RU;
  if (reliable && header.a != connection->messages_taken + 1) return Errc::corrupt;
  if (connection->shown.attribute == CCI_CONN_ATTR_UU_MC_TX) {
    relay(connection, payload.data(), static_cast<std::uint32_t>(payload.size()));
    return Errc::ok;
  }
  const bool is_short = payload.size() <= kInlineBytes;
  Result<Claim> claim = Errc::no_resource;
  if (receives_out_ < receive_limit_ && !is_short) claim = segment_->claim(kOwnClaim);
  if (receives_out_ >= receive_limit_ || (!is_short && !claim.ok())) {
    if (!reliable) return Errc::ok;  // lost
    if (!connection->said_busy) {
      connection->said_busy = true;
      send_frame(connection, FrameKind::busy, 0, 0, 0, 0, nullptr, 0);
    }
    stall(connection);
    return Errc::not_done;
  }
  connection->said_busy = false;
  const auto bytes = static_cast<std::uint32_t>(payload.size());
  Event* const event = receive_event(connection, bytes);
  std::byte* to = event->bytes;
  if (!is_short) {
    segment_->take(claim.value(), kOwnClaim);
    event->buffer = claim.value().buffer;
    to = segment_->buffer(event->buffer);
    event->show(cci_event_recv{CCI_EVENT_RECV, bytes, to, &connection->shown});
  }
  if (bytes != 0) std::memcpy(to, payload.data(), bytes);
  if (reliable) {
    ++connection->messages_taken;
    owe_ack(connection);
  }
  raise(event);
  return Errc::ok;
}

void Endpoint::handle_ack(Connection* connection, std::uint64_t through) {
  while (connection->unacked.head != nullptr && connection->unacked.head->number <= through) {
    connection->peer_busy = false;
    complete(connection->unacked.pop(), CCI_SUCCESS);
  }
}

void Endpoint::owe_ack(Connection* connection) {
  if (connection->owes_ack) return;
  connection->owes_ack = true;
  wake_thread();
  if (std::find(owing_.begin(), owing_.end(), connection) == owing_.end()) owing_.push_back(connection);
}

void Endpoint::flush_acks() {
  if (owing_.empty()) return;
  std::vector<Connection*> owing;
  owing.swap(owing_);
  for (Connection* connection : owing) {
    if (connection->owes_ack && connection->state == ConnectionState::open)
      send_frame(connection, FrameKind::ack, 0, 0, 0, 0, nullptr, 0);
    connection->owes_ack = false;
  }
}

// What the socket holds waits there until retry_stalled().
void Endpoint::stall(Connection* connection) {
  connection->stalled = true;
  stalled_.push_back(connection);
  set_interest(connection, connection->interest & ~static_cast<std::uint32_t>(EPOLLIN));
}

// Buffers are free again: what could not be taken is looked at once more.
void Endpoint::retry_stalled() {
  std::vector<Connection*> stalled;
  stalled.swap(stalled_);
  for (Connection* connection : stalled) {
    if (!connection->stalled) continue;
    connection->stalled = false;
    set_interest(connection, connection->interest | EPOLLIN);
    std::vector<std::byte> whole;
    whole.swap(connection->partial);
    handle_bytes(connection, whole);
  }
}

}  // namespace orrery::cci
