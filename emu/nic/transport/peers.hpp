// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/transport/peer.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace orrery::nic {

// The processes that a NIC talks to, by their slots in the host directory.
// Threads: any; a lock of its own, under which the environment is asked only whether a process lives.
// Invariants: (1) a peer stays where it is until the table ends, even when its process has died and another
// one has its slot: operations, grants and lanes name it; (2) a process that dies after its peer is found
// here has been marked dead, or `of` finds it.
// Usage: Peer* peer = nullptr;  if (peers.behind(nic_address, slot, &peer) == Errc::ok) ...
class PeerTable {
 public:
  PeerTable(HostServices& services, wire::ProcessSlot self) : services_(services), self_(self) {}

  // The peer that was connected to last in a slot, or null. REQUIRES: slot < kMaxProcesses.
  Peer* find(wire::ProcessSlot slot) const { return peers_[slot].load(std::memory_order_acquire); }
  // The process in a slot of the host, mapped, if it lives behind that NIC address. Errors: invalid_handle
  // (it lives elsewhere, or there is no such slot), unreachable, and those of connect().
  Errc behind(std::uint32_t nic_address, wire::ProcessSlot slot, Peer** found);
  // What we hold of a process; maps its NIC the first time. Errors: HostServices::connect's.
  Result<Peer*> connect(ProcessName process);
  // All that was ever held of that process.
  std::vector<Peer*> of(ProcessName process);

 private:
  HostServices& services_;
  const wire::ProcessSlot self_;
  Lock<LockRank::peers> mu_;
  std::array<std::atomic<Peer*>, kMaxProcesses> peers_{};  // written under mu_
  std::vector<std::unique_ptr<Peer>> storage_;             // guarded by mu_
};

}  // namespace orrery::nic
