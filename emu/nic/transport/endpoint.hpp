// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/units.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/events/port.hpp"
#include "emu/nic/target/mailbox.hpp"
#include "emu/nic/transport/grant.hpp"
#include "emu/nic/transport/peer.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

// What the API layers hold of a NIC (nic.hpp): their sign-on to it, and where their posts go to.
namespace orrery::nic {

// Where posts of one port go to: a remote NIC, and the queue for their completions.
// Threads: one at a time. Members are set through the Nic.
struct Endpoint {
  static constexpr std::uint32_t kNoPeer = UINT32_MAX;
  Port* port = nullptr;
  CompletionQueue* queue = nullptr;  // may be null: then nothing that reports locally can be posted;
  // may be changed between posts: each keeps the one it was posted with
  // The peer of the last post: a remote key names its process, so one endpoint serves all that live behind
  // the NIC address it is bound to. A process that died stays dead to it until it is bound anew.
  Peer* peer = nullptr;
  std::uint32_t peer_slot = kNoPeer;  // its process slot, while `peer` is good
  std::uint32_t bound_slot =
      kNoPeer;  // of the process that it is bound to, once a number was looked up there
  bool bound = false;
  std::uint32_t remote_nic_address = 0;
  std::uint32_t remote_instance = 0;
  std::atomic<std::uint32_t> datagram{0};   // its post in the datagram unit, plus 1; the unit's own
  std::unique_ptr<Mailbox> mailbox;         // of its connection for short messages, if one is open
  std::uint32_t local_event_data = 0;       // user value of local events
  std::uint32_t remote_event_data = 0;      // data of remote events
  std::atomic<std::uint32_t> in_flight{0};  // operations that the wire or the engine still has,
  Peer* unacknowledged_to = nullptr;        // but for frames without an answer: the last of them went here
  std::uint64_t unacknowledged_end = 0;     // and ends here in the peer's request lane
  Picos data_until;                         // under a clock: when the last data that was posted arrives
  // Bound to another peer, or to none: what was known of the peer is forgotten.
  void forget_peer() {
    peer = nullptr;
    peer_slot = kNoPeer;
    bound_slot = kNoPeer;
    grants = {};
    frame_grant.key = UINT64_MAX;
  }
  // For a request that goes by frame. Later requests must not overtake it, whatever memory they go to, so
  // they take the general way until it is done. The grants' own check would not stop them: memory that
  // becomes direct once more has the control word that a grant remembers.
  void forget_grants() {
    for (Grant& grant : grants) {
      if (grant.key != UINT64_MAX) grant.key = UINT64_MAX;
    }
  }
  // Whether its frames without an answer have all been taken out, or never will be.
  bool is_taken_out() const {
    const Peer* const to = unacknowledged_to;
    return to == nullptr || to->dead.load(std::memory_order_relaxed) || to->requests.refused() ||
           to->requests.consumed() >= unacknowledged_end;
  }
  // Whether all that was posted to it is done. The thread that uses it.
  bool is_idle() const { return in_flight.load(std::memory_order_acquire) == 0 && is_taken_out(); }
  std::array<Grant, kGrants> grants;
  FrameGrant frame_grant;
};

}  // namespace orrery::nic
