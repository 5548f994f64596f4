// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/events/counter.hpp"
#include "emu/nic/gate/triggered.hpp"
#include "emu/nic/initiator/initiator.hpp"
#include "emu/nic/initiator/router.hpp"
#include "emu/nic/state/address_map.hpp"
#include "emu/nic/state/host_services.hpp"
#include "emu/nic/transport/peers.hpp"
#include "emu/nic/transport/pending.hpp"

#include <cstdint>

namespace orrery::nic {

// Counters that trigger operations: puts that wait for one, and additions of this process, to its own and to
// those of its peers. What an addition triggers is carried out by the process that adds, where the memory of
// both ends is mapped here; the rest is the owner's.
// Threads: any.
// Usage: triggered.post_put(counter, 3, endpoint, request, done, {1, 0});
//        triggered.add(counter, {1, 0}, false);
class Triggered {
 public:
  // `anywhere`: puts of others may be carried out here (no clock, no faults).
  Triggered(HostServices& services, Pending& pending, wire::ProcessSlot self, PeerTable& peers,
            Router& router, Initiator& initiator, bool anywhere);
  Triggered(const Triggered&) = delete;
  Triggered& operator=(const Triggered&) = delete;

  TriggerUnit& unit() { return unit_; }
  // Adds to a counter of ours, and runs what that triggers unless `within` a call of the NIC's (a Listener):
  // the next progress does then. Any thread. Errors: invalid_handle.
  Errc add(CounterName name, CounterValue by, bool within);
  // The same for a process of this host: what that triggers is carried out here where memory allows, else by
  // its owner. Errors: unsupported (its NIC is not mapped here), those of connecting.
  Errc add(ProcessName owner, CounterName name, CounterValue by);
  // A put that waits for a counter; its end adds `by` to `counter`, or a failure. Others can carry it out if
  // it has no flags and `local` names the source. REQUIRES: the endpoint lives until then. Errors:
  // TriggerUnit::post()'s, invalid_param (it asks for local events).
  Status post_put(CounterName trigger, std::uint64_t threshold, Endpoint& endpoint, const Request& request,
                  CounterName counter, CounterValue by);

 private:
  Errc put_for(Peer& owner, const TriggerRecord& record, bool* unknown);
  Errc put_of_ours(const TriggerRecord& record);

  HostServices& services_;
  Pending& pending_;
  const NicView view_;
  const wire::ProcessSlot self_;
  PeerTable& peers_;
  Router& router_;
  Initiator& initiator_;
  const bool anywhere_;
  IdentityMap identity_;
  TriggerUnit unit_;
};

}  // namespace orrery::nic
