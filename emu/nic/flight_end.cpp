// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The last answer to an operation that travelled as packets has come, or none will: who hears of it.
#include "emu/nic/nic.hpp"

#include <cstring>

namespace orrery::nic {

void Nic::finish_from_elsewhere(CompletionQueue* queue, std::uint32_t flags, std::uint32_t transaction,
                                std::uint32_t user_value, Errc status) {
  if (transaction == CompletionQueue::kNone || queue == nullptr) {
    // Silent: nobody asked. The error log knows.
    return;
  }
  if ((flags & kLocalEvent) != 0) {
    (void)push_event(queue->view(), Event::posted(transaction, false, user_value, status));
  }
  if ((flags & kGlobalEvent) != 0) {
    (void)push_event(queue->view(), Event::posted(transaction, true, user_value, status));
  }
}

// REQUIRES: frames_mu_ is held.
void Nic::end_flight(std::uint32_t name, Flight& flight) {
  if (flight.header.verb == wire::Verb::join || flight.header.verb == wire::Verb::release) [[unlikely]] {
    collective_.packet_ended(flight.header, flight.status);
    count(flight.peer->in_flight, -1);
    flights_.close(name);
    count(flights_open_, -1);
    return;
  }
  if (flight.status != Errc::ok && flight.endpoint != nullptr) [[unlikely]]
    report_error(*flight.endpoint, flight.transaction, flight.status);
  if (flight.header.verb == wire::Verb::datagram) {
    DatagramReply reply;
    std::memcpy(&reply, flight.local, sizeof reply);
    count(flight.peer->in_flight, -1);
    const DatagramName name_of_post = flight.datagram;
    const Errc status = flight.status;
    flights_.close(name);
    count(flights_open_, -1);
    return datagrams_.exchanged(name_of_post, status, reply);
  }
  const bool message = flight.header.verb == wire::Verb::message;
  if (flight.sequence != nullptr) [[unlikely]] {
    end_part(*flight.sequence, flight.status, flight.peer->link.process.slot);
  } else if (message || flight.header.verb == wire::Verb::credit) {
    if (flight.status != Errc::ok) flight.endpoint->break_mailbox();
    if (message && flight.queue != nullptr && flight.transaction != CompletionQueue::kNone)
      (void)push_event(flight.queue->view(),
                       Event::message_sent(flight.transaction, flight.user_value, flight.status));
  } else {
    finish_from_elsewhere(flight.queue, flight.flags, flight.transaction, flight.user_value, flight.status);
  }
  count(flight.peer->in_flight, -1);
  let_go(flight.queue);
  // Release: an endpoint that reads zero may be unbound; we do not touch it any more.
  flight.endpoint->in_flight.fetch_sub(1, std::memory_order_release);
  flights_.close(name);
  count(flights_open_, -1);
}

// The operations that are on their way as frames.
std::vector<std::uint32_t> Nic::open_flights() {
  const std::lock_guard lock(frames_mu_);
  return flights_.names();
}

void Nic::drop_ended_flights(std::vector<std::uint32_t>& names) {
  const std::lock_guard lock(frames_mu_);
  std::erase_if(names, [this](std::uint32_t name) { return flights_.find(name) == nullptr; });
}

}  // namespace orrery::nic
