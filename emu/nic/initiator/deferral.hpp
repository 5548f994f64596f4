// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/transport/request.hpp"

namespace orrery::nic {

struct Endpoint;

// What keeps operations from being carried out when they are posted, as the initiator asks for it
// (gate/deferrals.hpp).
class Deferral {
 public:
  // A clock says when, or a fault that was asked for says whether. Ended with ok: nothing is in its way.
  // REQUIRES: there is a clock, or there are faults. The thread that uses the endpoint.
  virtual Begun defer_or_fail(Endpoint& endpoint, const Request& request) = 0;
  // Keeps a message or a credit that found no room on the wire until there is some. ok.
  virtual Errc hold(const Request& request) = 0;
  // Whether anything is kept.
  virtual bool holds_any() const = 0;

 protected:
  ~Deferral() = default;
};

}  // namespace orrery::nic
