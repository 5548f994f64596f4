// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/request.hpp"
#include "emu/nic/transport/peer.hpp"

#include <cstdint>

namespace orrery::nic {

// Counts what a NIC does by frame or attach to memory of its peers, and asks an owner to move what is used
// often into the memory file. Each initiator counts its own, in memory of its own: a count in the entry would
// pull its line from core to core.
// Threads: any. Two of them may lose a count to each other: it is a threshold, not a ledger.
class HotMemory {
 public:
  HotMemory(HostServices& services, std::uint32_t adopt_after)
      : services_(services), adopt_after_(adopt_after) {}

  // One more operation that a direct store would have done.
  void count(Peer& peer, const MemKey& key, std::uint64_t address);
  // Asks the owner for the memory of that key at once.
  void ask(const Peer& peer, const MemKey& key);

 private:
  void count_extent(Peer& peer, std::uint64_t address);

  HostServices& services_;
  const std::uint32_t adopt_after_;
};

}  // namespace orrery::nic
