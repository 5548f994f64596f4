// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/endpoint.hpp"
#include "lib/cci/library.hpp"
#include "lib/cci/mapping.hpp"

#include <pthread.h>

// A child of a process that has endpoints (library.hpp).
namespace orrery::cci {

namespace {

void before() {
  Library& all = library();
  all.mu.lock();
  mapping::lock_for_fork();
  for (const auto& endpoint : all.endpoints) endpoint->lock_for_fork();
}

void in_parent() {
  Library& all = library();
  for (const auto& endpoint : all.endpoints) endpoint->unlock_after_fork();
  mapping::unlock_after_fork(false);
  all.mu.unlock();
}

// The objects stay: the client may still have handles, whose calls are refused.
void in_child() {
  Library& all = library();
  for (auto& endpoint : all.endpoints) {
    endpoint->abandon();
    endpoint->unlock_after_fork();
    (void)endpoint.release();
  }
  all.endpoints.clear();
  for (auto& device : all.devices) (void)device.release();
  all.devices.clear();
  all.shown.clear();
  all.users = 0;
  mapping::unlock_after_fork(true);
  all.mu.unlock();
}

}  // namespace

void register_fork_handlers() { ::pthread_atfork(before, in_parent, in_child); }

// In the child, whose copy of the endpoint this is. REQUIRES: lock_ is held. Allocates nothing.
void Endpoint::abandon() {
  has_thread_ = false;
  failed_ = true;
  segment_->forget();
  for (const auto& connection : connections_) {
    if (connection->peer != nullptr) {
      connection->peer->doorbell.reset();
      connection->peer->segment->forget();
    }
    connection->socket.reset();
    connection->descriptors.clear();
    connection->state = connection->known ? ConnectionState::lost : ConnectionState::ended;
    connection->handshake.disarm();
    connection->alive.disarm();
    for (List<Op>* const list : {&connection->queue, &connection->unacked})
      for (Op* op = list->head; op != nullptr; op = op->next) op->limit.disarm();
    connection->queue = connection->unacked = {};
    connection->active = connection->blocked = connection->stalled = connection->owes_ack = false;
  }
  for (UniqueFd* const each :
       {&doorbell_, &net_, &handle_, &stop_, &local_listener_, &address_listener_, &addresses_})
    each->reset();
  events_ = {};
  for (auto* const list : {&active_, &blocked_, &stalled_, &owing_, &dead_}) list->clear();
  redials_.clear();
  map_work_.clear();
  hot_stream_ = nullptr;
  fresh_registrations_ = kMaxRegistrations;  // the table is full
  free_registrations_.clear();
  thread_sleeps_ = false;
  thread_waits_.store(false, std::memory_order_relaxed);
  listen_again_.disarm();
  thread_until_ns_ = 0;
  streams_ = unsettled_ = 0;
}

}  // namespace orrery::cci
