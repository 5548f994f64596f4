// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"
#include "emu/nic/initiator/granted.hpp"
#include "emu/nic/nic.hpp"

// In which order requests of one endpoint take effect on one host: as they were posted, but for block
// transfers, whatever way each of them goes. Memory that becomes direct while requests are on their way by
// frame is the case that needs care. (Between hosts the wire decides; kInOrder holds for a whole peer.)
// All of it: the thread that uses the endpoint.
namespace orrery::nic {

// Whether a request has to go by frame because an earlier one of its endpoint still does. Where the memory is
// direct by now the frames get a moment: they are the last.
inline bool follows_own(Nic& nic, const Endpoint& endpoint, const Request& request) {
  if ((request.flags & kBlockTransfer) != 0 || Nic::idle(endpoint)) return false;
  const Peer& peer = *request.peer;
  if (peer.link.by_wire || request.remote.index >= kMaxRegions ||
      control::state(peer.link.nic.region(request.remote.index).control.load(std::memory_order_acquire)) !=
          RegionState::direct)
    return true;
  constexpr int kLooks = 64;
  for (int look = 0; look < kLooks; ++look) {
    nic.progress();
    if (Nic::idle(endpoint)) return false;
    cpu_relax();
  }
  return true;
}

// A request goes by frame: what was granted does not hold any more. Memory that becomes direct once more has
// the control word that it had.
inline void forget_grant(Endpoint& endpoint, const MemKey& key) {
  Grant& grant = endpoint.grants[key_word(key) % kGrants];
  if (grant.key == key_word(key)) grant.key = UINT64_MAX;
}

}  // namespace orrery::nic
