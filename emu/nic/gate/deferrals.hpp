// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/gate/delays.hpp"
#include "emu/nic/gate/fault.hpp"
#include "emu/nic/gate/timed.hpp"
#include "emu/nic/initiator/deferral.hpp"

namespace orrery::nic {

// All that defers operations of a NIC: its clock, its faults, and what is held back.
// Threads: any; defer_or_fail(): the thread that uses the endpoint.
class Deferrals final : public Deferral {
 public:
  // `timed`: null without a clock; `faults`: null where nothing fails by itself.
  Deferrals(TimedOps* timed, FaultUnit* faults, ErrorLog& errors, Delays& delays)
      : timed_(timed), faults_(faults), errors_(errors), delays_(delays) {}

  Begun defer_or_fail(Endpoint& endpoint, const Request& request) override;
  Errc hold(const Request& request) override { return delays_.hold(request); }
  bool holds_any() const override { return delays_.any(); }

 private:
  FaultOutcome meet_faults(const Endpoint& endpoint, const Request& request);

  TimedOps* const timed_;
  FaultUnit* const faults_;
  ErrorLog& errors_;
  Delays& delays_;
};

}  // namespace orrery::nic
