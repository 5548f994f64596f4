// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/deferrals.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/nic/events/error_log.hpp"
#include "emu/nic/transport/endpoint.hpp"

#include <atomic>

namespace orrery::nic {

ORRERY_TIMED_PATH Begun Deferrals::defer_or_fail(Endpoint& endpoint, const Request& request) {
  if (timed_ != nullptr) {
    timed_->post(endpoint, request);
    return {Begun::Kind::accepted};
  }
  const FaultOutcome met = meet_faults(endpoint, request);
  if (met.status != Errc::ok) return Begun::ended(met.status);
  const Errc held = delays_.hold_back(request, met.delay_ns);
  if (held == Errc::not_done) return Begun::ended(Errc::ok);
  return {held == Errc::ok ? Begun::Kind::accepted : Begun::Kind::no_room};
}

ORRERY_TIMED_PATH FaultOutcome Deferrals::meet_faults(const Endpoint& endpoint, const Request& request) {
  const wire::VerbTraits& verb = wire::traits(request.op);
  const Mailbox* const box = verb.connected ? endpoint.mailbox.get() : nullptr;
  const FaultOutcome met =
      faults_->decide({.from = endpoint.port->nic_address,
                       .to = endpoint.remote_nic_address,
                       .key = verb.unit == wire::Unit::region ? request.remote : MemKey{},
                       .tries = box != nullptr && box->sends_again ? 1 + endpoint.port->max_retransmits : 1});
  endpoint.port->retransmitted.fetch_add(met.retransmits, std::memory_order_relaxed);
  if (met.link_errors != 0) {
    errors_.report({.domain = endpoint.port->domain,
                    .nic_address = endpoint.remote_nic_address,
                    .status = Errc::corrupt,
                    .corrected = true});
  }
  return met;
}

}  // namespace orrery::nic
