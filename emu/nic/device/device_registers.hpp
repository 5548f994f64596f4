// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/lock_rank.hpp"

#include <cstdint>
#include <mutex>

// Registers of a NIC that privileged calls set and that nothing here acts on: an emulated link takes what it
// is given, and no request of one host is ever outstanding so long that it would have to time out. They keep
// what was written, so that a caller that sets them reads it back.
namespace orrery::nic {

// Balanced injection: how much of the link a NIC may fill, as a share and as entries of its outstanding
// request buffer.
struct InjectionLimit {
  std::uint16_t percent = 100;
  std::uint16_t aot_percent = 100;  // of the second kind of traffic that has a share of its own
  std::uint16_t entries = 992;
  std::uint16_t flags = 0;  // as they were given
};

// Threads: any.
class DeviceRegisters {
 public:
  InjectionLimit injection() const {
    const std::lock_guard lock(mu_);
    return injection_;
  }
  // How often it was set.
  std::uint16_t injection_changes() const {
    const std::lock_guard lock(mu_);
    return injection_changes_;
  }
  void set_injection(const InjectionLimit& limit) {
    const std::lock_guard lock(mu_);
    injection_ = limit;
    ++injection_changes_;
  }
  // Sets after how many clock ticks a request counts as lost; returns what it was.
  std::uint64_t exchange_request_timeout(std::uint64_t ticks) {
    const std::lock_guard lock(mu_);
    const std::uint64_t before = request_timeout_;
    request_timeout_ = ticks;
    return before;
  }

 private:
  mutable Lock<LockRank::device> mu_;
  InjectionLimit injection_;             // guarded by mu_
  std::uint16_t injection_changes_ = 0;  // guarded by mu_
  std::uint64_t request_timeout_ = 0;    // guarded by mu_; 0: none is set
};

}  // namespace orrery::nic
