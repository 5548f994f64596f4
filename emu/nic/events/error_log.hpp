// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/wait.hpp"
#include "emu/clock/clock.hpp"
#include "emu/nic/state/lock_rank.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace orrery::nic {

// One operation that failed, as subscribers to the device's errors get it.
struct ErrorEvent {
  std::uint64_t serial = 0;  // of this NIC, from 1
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC as the program reads it
  std::uint32_t domain = 0;
  std::uint32_t transaction = UINT32_MAX;  // the initiator's name for it; UINT32_MAX when it had none
  std::uint32_t nic_address = 0;           // of the target
  Errc status = Errc::ok;
  bool corrected = false;  // a retry of the link put it right: the operation did not fail
};

// The errors of one NIC, kept for subscribers: a ring of the newest ones, read by serial number, so
// that readers are independent of each other and of the writer.
// Threads: any. Only operations that failed come here. Usage: log.report(event);  log.next(after);
class ErrorLog {
 public:
  static constexpr std::uint64_t kErrorsKept = 1024;

  explicit ErrorLog(clock::Clock* clock = nullptr) : clock_(clock) {}

  void report(ErrorEvent event);
  // The number of the newest.
  std::uint64_t newest() const { return newest_.load(std::memory_order_acquire); }
  // The first event after `serial` that is still kept; nullopt when there is none.
  std::optional<ErrorEvent> next(std::uint64_t serial) const;
  // Sleeps until there is one, `stop` returns true, or the time is over.
  void wait(std::uint64_t serial, std::optional<std::int64_t> deadline_ns, const std::function<bool()>& stop);
  // Makes sleepers ask `stop` again.
  void nudge();

 private:
  clock::Clock* const clock_;
  mutable Lock<LockRank::errors> mu_;
  std::array<ErrorEvent, kErrorsKept> events_;  // guarded by mu_
  std::atomic<std::uint64_t> newest_{0};
  FutexWord signal_{0};
};

}  // namespace orrery::nic
