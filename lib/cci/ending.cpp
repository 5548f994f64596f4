// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/debug.hpp"
#include "lib/cci/endpoint.hpp"

#include <algorithm>

#include <sys/socket.h>

// How a connection ends: the peer is lost, or the client disconnects.
namespace orrery::cci {

// The other end is gone, or says what makes no sense.
void Endpoint::lose(Connection* connection, bool take_rest) {
  switch (connection->state) {
    case ConnectionState::lost:
      return;
    case ConnectionState::ended:
    case ConnectionState::greeting:
      connection->state = ConnectionState::ended;
      release(connection);
      return;
    case ConnectionState::requested:
      // The client still holds the request.
      connection->state = ConnectionState::lost;
      connection->socket.reset();
      count_streams();
      return;
    case ConnectionState::accepting:
    case ConnectionState::dialling:
    case ConnectionState::waiting:
      connect_failed(connection, connection->client ? CCI_ETIMEDOUT : CCI_ERR_DISCONNECTED);
      return;
    case ConnectionState::open:
      break;
  }
  // What lies in the ring came before: it is taken first, as long as there are buffers.
  if (take_rest) {
    take_ring(connection);
    if (connection->state == ConnectionState::lost) return;
  }
  connection->state = ConnectionState::lost;
  debug::tell(debug::Topic::conn, "a peer is gone");
  if (hot_stream_ == connection) hot_stream_ = nullptr;
  if (connection->active) {
    connection->active = false;
    std::erase(active_, connection);
  }
  connection->socket.reset();
  segment_->free_claims_of(connection->generation << 14 | connection->slot);
  fail_all(connection, CCI_ERR_DISCONNECTED);
  count_streams();
}

int Endpoint::disconnect(Connection* connection) {
  // What was sent arrives.
  while (clock_ != nullptr && flying_ != 0) clock_->idle(this);
  const std::lock_guard lock(lock_);
  if (!connection->known) return CCI_EINVAL;
  flush_acks();  // what the client has had counts as delivered
  connection->known = false;
  for (List<Op>* const list : {&connection->queue, &connection->unacked}) {
    while (Op* const op = list->pop()) {
      if ((op->flags & CCI_FLAG_BLOCKING) != 0) {
        complete(op, CCI_ERR_DISCONNECTED);
        continue;
      }
      --sends_out_;
      delete op;
    }
  }
  const bool peer_lives = connection->state == ConnectionState::open;
  if (connection->active) {
    connection->active = false;
    connection->in->attended.store(0, std::memory_order_relaxed);
    std::erase(active_, connection);
  }
  connection->state = ConnectionState::ended;
  if (peer_lives && flush(connection) && connection->socket.valid()) {
    // The peer may write into the ring until it has seen this: the slot is free when its end is closed too.
    ::shutdown(connection->socket.get(), SHUT_WR);
    stirred_ = true;
    count_streams();
    return CCI_SUCCESS;
  }
  release(connection);
  return CCI_SUCCESS;
}

// Ends its part in everything. It goes when the loop over the sockets is done and no event names it.
void Endpoint::release(Connection* connection) {
  if (slots_[connection->slot] != connection) return;
  slots_[connection->slot] = nullptr;
  if (connection->in != nullptr) segment_->free_claims_of(connection->generation << 14 | connection->slot);
  free_slots_.push_back(connection->slot);
  // What stands in the lists goes out of them.
  std::erase(active_, connection);
  std::erase(blocked_, connection);
  std::erase(stalled_, connection);
  std::erase(owing_, connection);
  if (hot_stream_ == connection) hot_stream_ = nullptr;
  connection->stalled = false;
  std::erase_if(redials_, [&](const Redial& each) { return each.connection == connection; });
  // Rejections wait for the socket; what it does not take now is lost with it.
  connection->socket.reset();
  connection->released = true;
  if (connection->events == 0) dead_.push_back(connection);
  count_streams();
}

}  // namespace orrery::cci
