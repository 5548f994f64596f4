// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/timed.hpp"

#include <new>

namespace orrery::nic {

TimedOps::~TimedOps() {
  for (void* const block : free_) ::operator delete(block);
}

void* TimedOps::take(std::size_t bytes) {
  const std::lock_guard lock(mu_);
  if (free_.empty()) return ::operator new(bytes);
  void* const block = free_.back();
  free_.pop_back();
  return block;
}

void TimedOps::give_back(void* block) {
  const std::lock_guard lock(mu_);
  free_.push_back(block);
}

Endpoint& TimedOps::endpoint_of(const EndpointAsPosted& posted) {
  endpoint_.port = posted.port;
  endpoint_.queue = posted.queue;
  endpoint_.peer = posted.peer;
  endpoint_.peer_slot = posted.peer_slot;
  endpoint_.bound = true;
  endpoint_.remote_nic_address = posted.remote_nic_address;
  endpoint_.local_value = posted.local_value;
  endpoint_.remote_value = posted.remote_value;
  endpoint_.unanswered_to = nullptr;
  endpoint_.frame_grant.key = UINT64_MAX;
  return endpoint_;
}

}  // namespace orrery::nic
