// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/initiator/deferral.hpp"
#include "emu/nic/initiator/post_gate.hpp"
#include "emu/nic/memory/registration_table.hpp"
#include "emu/nic/state/host_services.hpp"
#include "emu/nic/state/mover.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace orrery::nic {

class BteQueue;
struct Peer;
class PeerTable;
struct Pending;
class Ports;
class Transport;

// Stopping the traffic of a domain, on both sides: the process that asks for it, and the owner of a NIC that
// is asked. A thread of a suspended domain waits at its next operation (PostGate).
// Threads: suspend(), resume(): any that has nothing under way. attend(): the service thread.
class Suspension {
 public:
  // What has to be over before the NIC is quiet.
  struct Traffic {
    const Pending& pending;
    Transport& transport;
    const BteQueue& bte;
    const Deferral& deferral;
  };
  Suspension(HostServices& services, NicView view, PeerTable& peers, Ports& ports,
             RegistrationTable& registrations, const Traffic& traffic, std::int64_t drain_limit_ns,
             Mover& mover)
      : services_(services),
        view_(view),
        peers_(peers),
        ports_(ports),
        registrations_(registrations),
        traffic_(traffic),
        drain_limit_ns_(drain_limit_ns),
        mover_(mover) {}
  Suspension(const Suspension&) = delete;
  Suspension& operator=(const Suspension&) = delete;

  // Stops the traffic of a domain in the NICs of these processes: each starts nothing new, and all that it
  // had started ends. Their programs run on until their next operation, which waits. ok: all of them are
  // quiet; timeout: some are not, and all go on as if nothing had been; invalid_param: no such domain.
  // Blocks, at most until the deadline.
  Errc suspend(std::span<const ProcessName> processes, std::uint32_t domain, std::int64_t deadline_ns);
  // Resumes them. Errors: invalid_state (none of them was suspended), invalid_param. Does not block.
  Errc resume(std::span<const ProcessName> processes, std::uint32_t domain);
  // Suspends here what others want suspended, and resumes what they resume. Returns whether something is not
  // quiet yet.
  bool attend();

 private:
  bool is_quiet(std::uint16_t domain);
  void want(const Peer& peer, std::uint32_t domain, bool on);

  HostServices& services_;
  const NicView view_;
  PeerTable& peers_;
  Ports& ports_;
  RegistrationTable& registrations_;
  const Traffic traffic_;
  const std::int64_t drain_limit_ns_;
  Mover& mover_;
  std::array<std::uint64_t, kMaxSuspendable / 64> marked_{};  // domains in suspension; service thread
  std::uint32_t seen_ = 0;  // suspension_changes that marked_ is of; service thread
};

}  // namespace orrery::nic
