// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/error_log.hpp"

#include <algorithm>
#include <climits>

namespace orrery::nic {

void ErrorLog::report(ErrorEvent event) {
  {
    const std::lock_guard lock(mu_);
    event.serial = newest_.load(std::memory_order_relaxed) + 1;
    event.time_ns = clock_ == nullptr ? monotonic_ns() : clock_->program_ns();
    events_[event.serial % kErrorsKept] = event;
    newest_.store(event.serial, std::memory_order_release);
  }
  nudge();
}

std::optional<ErrorEvent> ErrorLog::next(std::uint64_t serial) const {
  const std::lock_guard lock(mu_);
  const std::uint64_t newest = newest_.load(std::memory_order_relaxed);
  if (serial >= newest) return std::nullopt;
  const std::uint64_t oldest = newest > kErrorsKept ? newest - kErrorsKept + 1 : 1;
  return events_[std::max(serial + 1, oldest) % kErrorsKept];
}

void ErrorLog::wait(std::uint64_t serial, std::optional<std::int64_t> deadline_ns,
                    const std::function<bool()>& stop) {
  for (;;) {
    const std::uint32_t seen = signal_.load(std::memory_order_acquire);
    if (newest() > serial || stop()) return;
    if (!futex_wait(signal_, seen, deadline_ns)) return;
  }
}

void ErrorLog::nudge() {
  signal_.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(signal_, INT_MAX);
}

}  // namespace orrery::nic
