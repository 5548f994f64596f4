// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Requests whose target the client knows by number alone (state/mdh.hpp): they become requests like any other
// before anything else looks at them.
#include "emu/nic/initiator/initiator.hpp"
#include "emu/nic/state/mdh.hpp"

namespace orrery::nic {

// The process whose numbers an endpoint means: the one that it is bound to; where no port of that instance
// number is open, the only one behind its NIC address that the endpoint's process knows.
Errc Initiator::find_bound_process(Endpoint& endpoint, const MemKey& remote, Peer** found) {
  if (endpoint.bound_slot == Endpoint::kNoPeer) {
    const auto bound =
        services_.find_port(endpoint.port->domain, endpoint.remote_nic_address, endpoint.remote_instance);
    if (bound.ok()) {
      endpoint.bound_slot = bound.value().slot;
    } else if (remote.process != 0) {
      endpoint.bound_slot = remote.process;
    } else {
      for (std::uint32_t slot = 0; slot < kMaxProcesses; ++slot) {
        const Peer* const peer = peers_.find(slot);
        if (peer == nullptr || peer->dead.load(std::memory_order_relaxed) ||
            peer->nic_address.load(std::memory_order_relaxed) != endpoint.remote_nic_address)
          continue;
        if (endpoint.bound_slot != Endpoint::kNoPeer) {
          endpoint.bound_slot = Endpoint::kNoPeer;
          return Errc::invalid_handle;
        }
        endpoint.bound_slot = slot;
      }
    }
    if (endpoint.bound_slot == Endpoint::kNoPeer) return Errc::invalid_handle;
  }
  const Errc behind =
      peers_.behind(endpoint.remote_nic_address, static_cast<wire::ProcessSlot>(endpoint.bound_slot), found);
  if (behind != Errc::ok) endpoint.bound_slot = Endpoint::kNoPeer;
  return behind;
}

Errc Initiator::name_by_number(Endpoint& endpoint, MemKey* key, std::uint64_t* address,
                               std::uint64_t* sync_address) {
  const MemKey given = *key;
  // What stands here when nothing is found is a key that no registration has.
  *key = {.process = given.process};
  Peer* peer = nullptr;
  const Errc found = find_bound_process(endpoint, given, &peer);
  if (found != Errc::ok) return found;
  key->process = peer->link.process.slot;
  key->index = given.index;
  if (peer->link.by_wire) {
    key->flags = static_cast<std::uint8_t>(kAtTarget | (given.flags & kVirtual));
    return Errc::ok;
  }
  const NumberedEntry entry =
      find_numbered(peer->link.nic, endpoint.port->domain, given.index, (given.flags & kVirtual) != 0);
  if (entry.index == kMaxRegions) return Errc::invalid_handle;
  const MrtEntry& there = peer->link.nic.region(entry.index);
  key->index = static_cast<std::uint16_t>(entry.index);
  key->generation = control::generation(entry.control);
  key->flags = static_cast<std::uint8_t>(control::flags(entry.control) & (kReadOnly | kSegmented));
  *address = address_by_number(there, entry.control, *address);
  *sync_address = address_by_number(there, entry.control, *sync_address);
  return Errc::ok;
}

Errc Initiator::post_by_number(Endpoint& endpoint, const Request& request) {
  if (!endpoint.bound) return Errc::invalid_state;
  Request named = request;
  // An operation that leads nowhere is accepted, and ends in an event.
  (void)name_by_number(endpoint, &named.remote, &named.remote_address, &named.sync_address);
  return post(endpoint, named);
}

}  // namespace orrery::nic
