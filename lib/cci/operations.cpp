// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/wait.hpp"
#include "lib/cci/endpoint.hpp"

#include <algorithm>
#include <cstring>

#include <sys/eventfd.h>

// Sends and RMA: what ends at once, and what waits for a line, a buffer, an acknowledgement or a time limit.
namespace orrery::cci {

namespace {

constexpr std::int64_t kNudgeNs = 5'000'000;  // between two

// The client may change its bytes when the call has returned.
void keep_bytes(Op* op, const iovec* pieces, std::uint32_t count, std::uint64_t bytes) {
  op->copy.resize(bytes);
  std::byte* to = op->copy.data();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (pieces[i].iov_len != 0) std::memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
    to += pieces[i].iov_len;
  }
  op->message = op->copy.data();
}

}  // namespace

// What a call says to a connection that is not open.
int Endpoint::refusal(const Connection& connection) const {
  if (connection.state != ConnectionState::lost) return CCI_EINVAL;
  return failed_ ? CCI_ERR_DEVICE_DEAD : CCI_ERR_DISCONNECTED;
}

int Endpoint::send(Connection* connection, const iovec* pieces, std::uint32_t count, std::uint64_t bytes,
                   void* context, int flags) {
  lock_.lock();
  const auto unlocked = [&](int status) {
    lock_.unlock();
    return status;
  };
  if (connection->state != ConnectionState::open) return unlocked(refusal(*connection));
  if (connection->shown.attribute == CCI_CONN_ATTR_UU_MC_RX ||
      (connection->shown.attribute == CCI_CONN_ATTR_UU_MC_TX && !connection->client))
    return unlocked(CCI_EINVAL);
  if (bytes > connection->shown.max_send_size) return unlocked(CCI_EMSGSIZE);
  if (sends_out_ >= send_limit_) return unlocked(CCI_ENOBUFS);
  if (flies(*connection)) {
    if (const int status = look_at_peer(connection); status != CCI_SUCCESS) return unlocked(status);
    Op* const op = new_op(connection, context, flags);
    op->message_bytes = static_cast<std::uint32_t>(bytes);
    keep_bytes(op, pieces, count, bytes);
    lock_.unlock();
    fly(connection, op);
    lock_.lock();
    return unlocked(post(op, flags));
  }
  const bool tells = (flags & (CCI_FLAG_SILENT | CCI_FLAG_BLOCKING)) == 0;
  if (connection->queue.head == nullptr) {
    if (connection->shared) {
      const Errc put = put_message(connection, pieces, count, static_cast<std::uint32_t>(bytes));
      // An unreliable message that finds no room is lost.
      if (put == Errc::ok || !is_reliable(*connection)) {
        if (tells) {
          ++sends_out_;
          raise_send(connection, context, CCI_SUCCESS);
        }
        return unlocked(CCI_SUCCESS);
      }
    } else if (!is_reliable(*connection)) {
      if (connection->outgoing.empty()) send_frame(connection, FrameKind::message, 0, 0, 0, 0, pieces, count);
      if (connection->state == ConnectionState::lost) return unlocked(CCI_ERR_DISCONNECTED);
      if (tells) {
        ++sends_out_;
        raise_send(connection, context, CCI_SUCCESS);
      }
      return unlocked(CCI_SUCCESS);
    }
  }
  Op* const op = new_op(connection, context, flags);
  op->message_bytes = static_cast<std::uint32_t>(bytes);
  if (!connection->shared && connection->queue.head == nullptr &&
      connection->outgoing.size() < kLongestPayload) {
    // It goes from where it lies, and is copied nowhere: the socket keeps what it takes.
    op->number = ++connection->messages_sent;
    send_frame(connection, FrameKind::message, 0, op->number, 0, 0, pieces, count);
    if (connection->state == ConnectionState::lost) {
      --sends_out_;
      delete op;
      return unlocked(CCI_ERR_DISCONNECTED);
    }
    connection->unacked.push(op);
  } else {
    if ((flags & CCI_FLAG_NO_COPY) != 0 && count == 1) {
      op->message = static_cast<const std::byte*>(pieces[0].iov_base);
    } else {
      keep_bytes(op, pieces, count, bytes);
    }
    connection->queue.push(op);
    block(connection);
  }
  const int status = post(op, flags);
  lock_.unlock();
  return status;
}

// Counts as a send buffer from now on.
Op* Endpoint::new_op(Connection* connection, void* context, int flags) {
  Op* const op = new Op;
  op->connection = connection;
  op->context = context;
  op->flags = flags;
  ++sends_out_;
  if (connection->send_timeout != 0 && !(flies(*connection) && clock_->is_virtual())) {
    set_limit(op->limit, std::int64_t{connection->send_timeout} * 1000);
  }
  return op;
}

// What an operation that was queued with `flags` says to its caller; one that does not block may be over, and
// deleted. REQUIRES: lock_ is held; it is left while this waits.
int Endpoint::post(Op* op, int flags) {
  if ((flags & CCI_FLAG_BLOCKING) == 0) return CCI_SUCCESS;
  if (clock_ != nullptr) wait_timed(op);
  for (std::uint32_t round = 0; !op->done; ++round) {
    ++polls_;
    if (!blocked_.empty()) retry_blocked();
    if (!op->done && streams_ + unsettled_ != 0) progress_network(false);
    if (op->done) break;
    lock_.unlock();
    if (round > 100) yield_cpu();
    lock_.lock();
  }
  const cci_status status = op->status;
  delete op;
  return status;
}

void Endpoint::complete(Op* op, cci_status status) {
  if ((op->flags & CCI_FLAG_BLOCKING) != 0) {
    --sends_out_;
    op->status = status;
    op->done = true;
    return;
  }
  if (status == CCI_SUCCESS && (op->flags & CCI_FLAG_SILENT) != 0)
    --sends_out_;
  else
    raise_send(op->connection, op->context, status);
  delete op;
}

void Endpoint::block(Connection* connection) {
  if (connection->blocked) return;
  connection->blocked = true;
  if (blocked_.empty()) ::eventfd_write(stop_.get(), 1);
  blocked_.push_back(connection);
}

void Endpoint::retry_blocked() {
  for (std::size_t i = 0; i < blocked_.size();) {
    Connection* const connection = blocked_[i];
    const Op* const first = connection->queue.head;
    pump(connection);
    // Under a clock its peer may wait for it.
    if (clock_ != nullptr && connection->queue.head != first) stirred_ = true;
    if (connection->queue.head != nullptr && connection->state == ConnectionState::open) {
      ++i;
      continue;
    }
    connection->blocked = false;
    blocked_[i] = blocked_.back();
    blocked_.pop_back();
  }
}

// A peer that does not poll takes nothing out of its ring, though it has receive buffers: its thread does
// when it hears this.
void Endpoint::nudge_peers() {
  if (blocked_.empty()) return;
  const std::int64_t now = monotonic_ns();
  for (std::size_t i = 0; i < blocked_.size(); ++i) {
    Connection* const connection = blocked_[i];
    if (!connection->shared || connection->state != ConnectionState::open ||
        now - connection->pinged_ns < kNudgeNs)
      continue;
    connection->pinged_ns = now;
    send_frame(connection, FrameKind::ping, 0, 0, 0, 0, nullptr, 0);
  }
}

// Sends what waits in a connection, in order, as far as it goes now.
void Endpoint::pump(Connection* connection) {
  while (connection->queue.head != nullptr && connection->state == ConnectionState::open) {
    Op* const op = connection->queue.head;
    if (op->kind != OpKind::message && !op->data_done) {
      if (!pump_rma(connection, op)) return;
      if (connection->queue.head != op) continue;  // it has ended in an error
    }
    const iovec piece{const_cast<std::byte*>(op->message), op->message_bytes};
    if (op->kind != OpKind::message && op->message_bytes == 0) {
      connection->queue.pop();
      complete(op, CCI_SUCCESS);
    } else if (connection->shared) {
      if (put_message(connection, &piece, 1, op->message_bytes) != Errc::ok) return;
      connection->queue.pop();
      complete(op, CCI_SUCCESS);
    } else {
      if (connection->outgoing.size() >= kLongestPayload) return;
      op->number = ++connection->messages_sent;
      connection->queue.pop();
      connection->unacked.push(op);
      send_frame(connection, FrameKind::message, 0, op->number, 0, 0, &piece, 1);
    }
  }
}

// Everything under way on a connection ends so.
void Endpoint::fail_all(Connection* connection, cci_status status) {
  while (Op* const op = connection->unacked.pop()) complete(op, status);
  while (Op* const op = connection->queue.pop()) complete(op, status);
}

// ---- time limits of operations and handshakes, keepalive ----

// Arms it; the thread is woken if it would sleep longer.
void Endpoint::set_limit(Limit& limit, std::int64_t from_now_ns) {
  const std::int64_t deadline = monotonic_ns() + from_now_ns;
  limits_.arm(limit, deadline);
  if (deadline >= thread_until_ns_) return;
  thread_until_ns_ = 0;
  ::eventfd_write(stop_.get(), 1);
}

// The thread calls it when the first limit is due.
void Endpoint::keep_time(std::int64_t now) {
  limits_.advance(now, [this, now](Timer& timer) {
    auto& limit = static_cast<Limit&>(timer);
    auto* const connection = static_cast<Connection*>(limit.object);
    switch (limit.of) {
      case Limit::Of::operation:
        if (!expire(static_cast<Op*>(limit.object))) limits_.arm(limit, now + TimerWheel::kTickNs);
        return;
      case Limit::Of::handshake:
        if (connection->state != ConnectionState::open && connection->state != ConnectionState::lost)
          connect_failed(connection, CCI_ETIMEDOUT);
        return;
      case Limit::Of::keepalive:
        return look_whether_alive(connection, now);
      case Limit::Of::listeners:
        return set_listening(true);
    }
  });
}

// Neither sent nor acknowledged in its time. False: it is on its way still, under a clock.
bool Endpoint::expire(Op* op) {
  if (op->done) return true;
  Connection* const connection = op->connection;
  if (!connection->unacked.remove(op) && !connection->queue.remove(op)) return false;
  complete(op, connection->shared || connection->peer_busy ? CCI_ERR_RNR : CCI_ETIMEDOUT);
  return true;
}

// Looks so many times in a connection's keepalive time whether anything has come.
constexpr std::int64_t kLooksAlive = 16;

void Endpoint::look_whether_alive(Connection* connection, std::int64_t now) {
  if (connection->keepalive == 0 || !connection->known) return;
  if (connection->state != ConnectionState::open && connection->state != ConnectionState::lost) return;
  // Under a clock a PE answers when its program calls, and none is stopped while the others go on.
  if (flies(*connection)) return;
  const std::int64_t period = std::int64_t{connection->keepalive} * 1000;
  if (connection->heard) {
    connection->heard = false;
    connection->heard_ns = now;
  } else if (now - connection->heard_ns > period) {
    connection->keepalive = 0;
    Event* const event = new_event();
    event->names(connection);
    event->show(cci_event_keepalive_timedout{CCI_EVENT_KEEPALIVE_TIMEDOUT, &connection->shown});
    raise(event);
    return;
  }
  set_limit(connection->alive, period / kLooksAlive);
  if (connection->state == ConnectionState::open && now - connection->pinged_ns > period / 4) {
    connection->pinged_ns = now;
    send_frame(connection, FrameKind::ping, 0, 0, 0, 0, nullptr, 0);
  }
}

}  // namespace orrery::cci
