// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/events/port.hpp"
#include "emu/nic/state/lock_rank.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace orrery::nic {

// The ports of a NIC. Threads: any; a lock of its own, under which only a port's on_error is called.
class Ports {
 public:
  // `errors` outlives the ports.
  explicit Ports(ErrorLog& errors) : errors_(errors) {}

  // The port has the first word of a hazard line that no other one has; ports beyond them share one.
  Port* open(std::uint16_t domain, std::uint32_t nic_address, std::uint32_t instance);
  void close(Port* port);
  std::uint32_t count();
  // Whether one of them is that instance of the domain.
  bool has(std::uint16_t domain, std::uint32_t instance);
  // An error that no port's operation met: the error log is told, and any port of the domain that asked to
  // hear of errors, but not the ports of our own queues.
  void tell_of_error(const ErrorEvent& event);
  // Whether a thread is on the general path of an operation through a port of that domain (PostGate).
  bool any_posting(std::uint16_t domain);

 private:
  ErrorLog& errors_;
  Lock<LockRank::ports> mu_;
  std::vector<std::unique_ptr<Port>> ports_;  // guarded by mu_
};

}  // namespace orrery::nic
