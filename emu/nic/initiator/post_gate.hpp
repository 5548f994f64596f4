// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/nic_state.hpp"

#include <atomic>
#include <cstdint>

namespace orrery::nic {

struct Port;

using SuspendableSet = std::atomic<std::uint64_t>[kMaxSuspendable / 64];
inline bool has(const SuspendableSet& set, std::uint32_t domain) {
  return domain < kMaxSuspendable &&
         (set[domain / 64].load(std::memory_order_seq_cst) >> domain % 64 & 1) != 0;
}

// Whether the owner of this NIC may start nothing new in that domain.
inline bool is_suspended(const NicView& nic, std::uint32_t domain) {
  return has(nic.service().suspended, domain);
}

// Announces that a port's thread is on the general path of an operation, after it has found its domain not
// suspended; waits while it is (gate/suspend.hpp). The fast path need not: what is granted ends when a
// registration is marked.
// REQUIRES: one live gate per port and thread at a time.
class PostGate {
 public:
  PostGate(const NicView& nic, Port& port);
  ~PostGate();
  PostGate(const PostGate&) = delete;
  PostGate& operator=(const PostGate&) = delete;

 private:
  void enter(bool strong);
  void leave();
  Port& port_;
  const std::uint32_t place_;  // of the thread's hazard word
};

}  // namespace orrery::nic
