// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/transport/peers.hpp"

#include <utility>

namespace orrery::nic {

Errc PeerTable::behind(std::uint32_t nic_address, wire::ProcessSlot slot, Peer** found) {
  if (slot >= kMaxProcesses) return Errc::invalid_handle;
  // Clients bind an endpoint anew for each transfer: a known process is not looked for again.
  Peer* const known = find(slot);
  if (known != nullptr && known->nic_address.load(std::memory_order_relaxed) == nic_address &&
      !known->dead.load(std::memory_order_relaxed) && services_.alive(known->link.process)) {
    *found = known;
    return Errc::ok;
  }
  const auto process = services_.find_process(nic_address, slot);
  if (!process.ok()) return process.code() == Errc::no_match ? Errc::invalid_handle : process.code();
  const auto peer = connect(process.value());
  if (!peer.ok()) return peer.code();
  *found = peer.value();
  (*found)->nic_address.store(nic_address, std::memory_order_relaxed);
  return Errc::ok;
}

Result<Peer*> PeerTable::connect(ProcessName process) {
  const wire::ProcessSlot slot = process.slot;
  Peer* peer = find(slot);
  if (peer != nullptr && peer->link.process == process) return peer;
  auto link = services_.connect(process);
  if (!link.ok()) return link.code();
  const std::lock_guard lock(mu_);
  peer = find(slot);
  if (peer != nullptr && peer->link.process == process) return peer;
  storage_.push_back(std::make_unique<Peer>(std::move(link).value(), self_));
  peer = storage_.back().get();
  peers_[slot].store(peer, std::memory_order_release);
  // Published first: a process that dies after this look is told of by peer_died().
  if (!services_.alive(process)) peer->dead.store(true, std::memory_order_relaxed);
  return peer;
}

std::vector<Peer*> PeerTable::of(ProcessName process) {
  std::vector<Peer*> found;
  const std::lock_guard lock(mu_);
  for (const auto& peer : storage_) {
    if (peer->link.process == process) found.push_back(peer.get());
  }
  return found;
}

}  // namespace orrery::nic
