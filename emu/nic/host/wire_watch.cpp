// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/host/wire_watch.hpp"

#include <algorithm>

namespace orrery::nic {

bool WireWatch::start() {
  const std::lock_guard lock(mu_);
  if (state_.load(std::memory_order_relaxed) == State::watched) return true;
  if (!system_.watch(true)) return false;
  state_.store(State::watched, std::memory_order_relaxed);
  return true;
}

void WireWatch::stop() {
  const std::lock_guard lock(mu_);
  if (state_.load(std::memory_order_relaxed) == State::watched) (void)system_.watch(false);
  state_.store(State::by_tick, std::memory_order_relaxed);
}

void WireWatch::take_off(std::uint64_t polls) {
  const std::lock_guard lock(mu_);
  if (state_.load(std::memory_order_relaxed) != State::watched) return;
  if (distrust_ > 0) {
    --distrust_;
    return;
  }
  // The timer first. One that is set for earlier has not been taken by timer_fired() yet, and what follows
  // that finds the state below.
  const std::int64_t until = system_.now_ns() + kAwayNs;
  if (!set_timer_locked(until) || !system_.watch(false)) return;
  polls_at_off_ = polls;
  trusted_until_ = until;
  state_.store(State::by_program, std::memory_order_relaxed);
}

bool WireWatch::hand_back() {
  if (state_.load(std::memory_order_relaxed) != State::by_program) return false;
  const std::lock_guard lock(mu_);
  if (state_.load(std::memory_order_relaxed) != State::by_program) return false;
  distrust_ = kDistrust;
  return true;
}

bool WireWatch::set_timer(std::int64_t at_ns) {
  const std::lock_guard lock(mu_);
  return set_timer_locked(at_ns);
}

// REQUIRES: mu_ is held.
bool WireWatch::set_timer_locked(std::int64_t at_ns) {
  if (timer_at_ != 0 && timer_at_ <= at_ns) return true;
  const std::int64_t at = std::max<std::int64_t>(at_ns, 1);
  if (!system_.set_timer(at)) return false;
  timer_at_ = at;
  return true;
}

void WireWatch::timer_fired(std::uint64_t polls) {
  const std::lock_guard lock(mu_);
  timer_at_ = 0;
  // It may have been set for earlier by another thread, and then says nothing.
  if (state_.load(std::memory_order_relaxed) == State::by_program && polls == polls_at_off_ &&
      system_.now_ns() >= trusted_until_)
    distrust_ = kDistrust;
}

}  // namespace orrery::nic
