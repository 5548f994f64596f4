// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/endpoint.hpp"

#include "emu/base/wait.hpp"

#include <algorithm>

#include <sys/eventfd.h>
#include <unistd.h>

namespace orrery::cci {

namespace {

constexpr std::size_t kEventChunk = 64;
constexpr std::uint32_t kSpinningAfter = 64;  // polls that found nothing
constexpr std::uint64_t kLookEvery = 128;     // polls, where no message uses a socket
constexpr std::size_t kKeptActive = 4;        // rings that stay looked at when they are empty

}  // namespace

// ---- events ----

Event* Endpoint::new_event() {
  if (free_events_.head == nullptr) {
    auto chunk = std::make_unique<Event[]>(kEventChunk);
    for (std::size_t i = 0; i < kEventChunk; ++i) {
      chunk[i].endpoint = this;
      free_events_.push(&chunk[i]);
    }
    event_chunks_.push_back(std::move(chunk));
  }
  Event* const event = free_events_.pop();
  event->request = nullptr;
  event->of = nullptr;
  event->buffer = kNoBuffer;
  event->receives = false;
  event->sends = false;
  return event;
}

void Endpoint::free_event(Event* event) {
  event->show(cci_event_type::CCI_EVENT_NONE);
  event->next = free_events_.head;
  if (free_events_.head == nullptr) free_events_.tail = event;
  free_events_.head = event;
}

void Endpoint::raise(Event* event) {
  events_.push(event);
  if (armed_ && segment_->header().armed.exchange(0, std::memory_order_seq_cst) != 0) ring_self();
}

// The operation counts as a send buffer already.
void Endpoint::raise_send(Connection* connection, void* context, cci_status status) {
  Event* const event = new_event();
  event->sends = true;
  event->names(connection);
  event->show(cci_event_send{CCI_EVENT_SEND, status, &connection->shown, context});
  raise(event);
}

int Endpoint::get_event(Event** event) {
  if (clock_ != nullptr) return get_event_timed(event);
  // A client that does nothing but poll would keep the thread from the lock.
  if (thread_waits_.load(std::memory_order_relaxed)) [[unlikely]]
    yield_cpu();
  const std::lock_guard lock(lock_);
  ++polls_;
  Event* const next = next_event();
  if (handle_.valid()) settle(next != nullptr);
  *event = next;
  if (next != nullptr) return CCI_SUCCESS;
  return receives_out_ >= receive_limit_ ? CCI_ENOBUFS : CCI_EAGAIN;
}

Event* Endpoint::next_event() {
  if (events_.head != nullptr) return events_.pop();
  if (!blocked_.empty()) [[unlikely]]
    retry_blocked();
  if (Event* const event = take_shared(); event != nullptr) return event;
  if (streams_ + unsettled_ != 0)
    progress_network(false);
  else if (polls_ % kLookEvery == 0)
    progress_network(true);
  return events_.pop();
}

int Endpoint::return_event(Event* event) {
  const std::lock_guard lock(lock_);
  // Returned before, or not decided.
  if (event->type() == CCI_EVENT_NONE || event->request != nullptr) return CCI_EINVAL;
  if (event->receives) {
    const bool was_full = receives_out_ >= receive_limit_;
    --receives_out_;
    if (event->buffer != kNoBuffer) segment_->give_back(event->buffer);
    if (!stalled_.empty()) [[unlikely]]
      retry_stalled();
    if (was_full && armed_ && has_something()) ring_self();
    if (event->buffer != kNoBuffer) made_room();
  }
  if (event->sends) --sends_out_;
  if (event->of != nullptr && --event->of->events == 0 && event->of->released) dead_.push_back(event->of);
  free_event(event);
  return CCI_SUCCESS;
}

// A line or a buffer is free again. Under a clock nothing but this lets a sender look again.
void Endpoint::made_room() {
  if (clock_ != nullptr && segment_->header().wanted.exchange(0, std::memory_order_acq_rel) != 0)
    stirred_ = true;
}

// ---- the OS handle ----

// Whether a poll would find something without the network.
bool Endpoint::has_something() const {
  if (events_.head != nullptr) return true;
  if (receives_out_ >= receive_limit_) return false;
  for (const auto& word : segment_->header().ready_words) {
    if (word.load(std::memory_order_seq_cst) != 0) return true;
  }
  for (const Connection* connection : active_) {
    if (line_is_there(*connection)) return true;
  }
  return false;
}

void Endpoint::ring_self() { ::eventfd_write(doorbell_.get(), 1); }

// After each poll of an endpoint with a handle: the handle is readable while there is something, and
// otherwise the next event makes it so. A client that polls all the time does not pay for that: the thread
// does it when the polls have stopped. Under a clock there is no thread, and each poll sees to it.
void Endpoint::settle(bool got) {
  misses_ = got ? 0 : misses_ + 1;
  if (clock_ == nullptr && !spinning_ && misses_ > kSpinningAfter) {
    spinning_ = true;
    ::eventfd_write(stop_.get(), 1);  // the thread is to see when it ends
    armed_ = false;
    segment_->header().armed.store(0, std::memory_order_relaxed);
  }
  if (spinning_) return;
  flush_acks();
  auto& armed = segment_->header().armed;
  if (has_something()) {
    // Rung by the thread that took `armed` back; else by us.
    if (!armed_ || armed.exchange(0, std::memory_order_seq_cst) != 0) ring_self();
    armed_ = true;
    return;
  }
  const bool rung = !armed_ || armed.load(std::memory_order_relaxed) == 0;
  // A poll in vain: a bell that came late, after its event was taken.
  if (rung || !got) {
    eventfd_t count = 0;
    ::eventfd_read(doorbell_.get(), &count);
  }
  while (!active_.empty()) {
    if (!unattend(active_.back())) break;
  }
  armed_ = true;
  armed.store(1, std::memory_order_seq_cst);
  if (has_something() && armed.exchange(0, std::memory_order_seq_cst) != 0) ring_self();
}

int Endpoint::arm() {
  const std::lock_guard lock(lock_);
  if (!handle_.valid()) return CCI_EINVAL;
  spinning_ = false;
  misses_ = 0;
  settle(true);
  return CCI_SUCCESS;
}

// ---- rings that are looked at ----

bool Endpoint::line_is_there(const Connection& connection) const {
  const std::uint64_t mark =
      connection.in->lines[connection.in_head % kRingLines].mark.load(std::memory_order_acquire);
  return static_cast<std::uint32_t>(mark >> 32) == static_cast<std::uint32_t>(connection.in_head + 1);
}

void Endpoint::attend(Connection* connection) {
  if (connection->active || connection->in == nullptr) return;
  connection->active = true;
  connection->in->attended.store(1, std::memory_order_seq_cst);
  active_.push_back(connection);
}

// False: something has come meanwhile, and the ring stays looked at.
bool Endpoint::unattend(Connection* connection) {
  connection->in->attended.store(0, std::memory_order_seq_cst);
  // The peer stores its line and then looks at `attended`; one of us sees the other.
  if (line_is_there(*connection) && connection->state == ConnectionState::open) {
    connection->in->attended.store(1, std::memory_order_seq_cst);
    return false;
  }
  connection->active = false;
  std::erase(active_, connection);
  return true;
}

void Endpoint::look_at_ready() {
  SegmentHeader& shared = segment_->header();
  for (std::uint32_t group = 0; group < std::size(shared.ready_words); ++group) {
    if (shared.ready_words[group].load(std::memory_order_relaxed) == 0) continue;
    std::uint64_t words = shared.ready_words[group].exchange(0, std::memory_order_seq_cst);
    for (; words != 0; words &= words - 1) {
      const std::uint32_t word = group * 64 + static_cast<std::uint32_t>(__builtin_ctzll(words));
      std::uint64_t bits = shared.ready[word].exchange(0, std::memory_order_seq_cst);
      for (; bits != 0; bits &= bits - 1) {
        const std::uint32_t slot = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits));
        Connection* const connection = slot < slots_.size() ? slots_[slot] : nullptr;
        if (connection != nullptr && connection->state == ConnectionState::open && connection->shared)
          attend(connection);
      }
    }
  }
}

Event* Endpoint::take_shared() {
  if (receives_out_ >= receive_limit_) return nullptr;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < active_.size();) {
      Connection* const connection = active_[i];
      if (Event* const event = take_line(connection); event != nullptr) {
        // The next poll begins with another ring.
        if (active_.size() > 1)
          std::rotate(active_.begin(), active_.begin() + static_cast<long>(i) + 1, active_.end());
        return event;
      }
      if (connection->active && active_.size() > kKeptActive && unattend(connection)) continue;
      if (i < active_.size() && active_[i] == connection) ++i;
    }
    if (round == 0) look_at_ready();
  }
  return nullptr;
}

// ---- options ----

int Endpoint::set_option(Connection* connection, cci_opt_name name, std::uint32_t value) {
  const std::lock_guard lock(lock_);
  switch (name) {
    case CCI_OPT_ENDPT_SEND_TIMEOUT:
      send_timeout_ = value;
      for (const auto& each : connections_) each->send_timeout = value;
      return CCI_SUCCESS;
    case CCI_OPT_CONN_SEND_TIMEOUT:
      connection->send_timeout = value;
      return CCI_SUCCESS;
    case CCI_OPT_ENDPT_RECV_BUF_COUNT:
      if (value == 0 || value > kMaxReceiveBuffers) return CCI_ERANGE;
      receive_limit_ = value;
      segment_->set_buffer_limit(value);
      return CCI_SUCCESS;
    case CCI_OPT_ENDPT_SEND_BUF_COUNT:
      if (value == 0 || value > kMaxReceiveBuffers) return CCI_ERANGE;
      send_limit_ = value;
      return CCI_SUCCESS;
    case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT:
      keepalive_ = value;
      for (const auto& each : connections_) {
        each->keepalive = value;
        each->heard_ns = monotonic_ns();
        if (value != 0) set_limit(each->alive, 0);
      }
      break;
    case CCI_OPT_CONN_KEEPALIVE_TIMEOUT:
      connection->keepalive = value;
      connection->heard_ns = monotonic_ns();
      if (value != 0) set_limit(connection->alive, 0);
      break;
    default:
      return CCI_EINVAL;
  }
  return CCI_SUCCESS;
}

int Endpoint::get_option(Connection* connection, cci_opt_name name, std::uint32_t* value) {
  const std::lock_guard lock(lock_);
  switch (name) {
    case CCI_OPT_ENDPT_SEND_TIMEOUT:
      *value = send_timeout_;
      break;
    case CCI_OPT_CONN_SEND_TIMEOUT:
      *value = connection->send_timeout;
      break;
    case CCI_OPT_ENDPT_RECV_BUF_COUNT:
      *value = receive_limit_;
      break;
    case CCI_OPT_ENDPT_SEND_BUF_COUNT:
      *value = send_limit_;
      break;
    case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT:
      *value = keepalive_;
      break;
    case CCI_OPT_CONN_KEEPALIVE_TIMEOUT:
      *value = connection->keepalive;
      break;
    default:
      return CCI_EINVAL;
  }
  return CCI_SUCCESS;
}

}  // namespace orrery::cci
