// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/thread_waits.hpp"

#include <utility>

namespace orrery::clock {

namespace {

constexpr std::uint64_t kRound = std::uint64_t{1} << 32;
// The round in which the calling thread counts as awake, and 1; 0: it does not.
// initial-exec: no call to reach it.
__attribute__((tls_model("initial-exec"))) thread_local constinit std::uint64_t t_awake = 0;

}  // namespace

ThreadWaits::Place* ThreadWaits::find(const void* on) {
  for (Place& place : places_) {
    if (place.on == on) return &place;
  }
  return nullptr;
}

// REQUIRES: mu_ is held.
void ThreadWaits::count(int more) {
  awake_.store(awake_.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(std::int64_t{more}),
               std::memory_order_release);
}

void ThreadWaits::begin(const void* on) {
  sleeps_again();
  const std::lock_guard lock(mu_);
  if (Place* const place = find(on); place != nullptr)
    ++place->waiting;
  else
    places_.push_back({.on = on, .waiting = 1, .woken = 0});
}

void ThreadWaits::end(const void* on) {
  const std::lock_guard lock(mu_);
  t_awake = awake_.load(std::memory_order_relaxed) / kRound + 1;
  Place* const place = find(on);
  if (place == nullptr) return count(1);
  if (place->woken != 0)
    --place->woken;
  else
    count(1);  // nothing woke it that is known here
  if (--place->waiting != 0) return;
  *place = places_.back();
  places_.pop_back();
}

void ThreadWaits::wake(const void* on, bool all) {
  const std::lock_guard lock(mu_);
  Place* const place = find(on);
  if (place == nullptr || place->waiting == place->woken) return;
  const std::uint32_t woken = all ? place->waiting - place->woken : 1;
  place->woken += woken;
  count(static_cast<int>(woken));
}

void ThreadWaits::sleeps_again() {
  if (t_awake == 0) return;
  const std::lock_guard lock(mu_);
  const std::uint64_t awake = awake_.load(std::memory_order_relaxed);
  if (std::exchange(t_awake, 0) == awake / kRound + 1 && awake % kRound != 0) count(-1);
}

void ThreadWaits::give_up() {
  const std::lock_guard lock(mu_);
  // What was woken, and is not back, counts as if nothing had woken it.
  for (Place& place : places_) place.woken = 0;
  awake_.store((awake_.load(std::memory_order_relaxed) / kRound + 1) * kRound, std::memory_order_release);
}

}  // namespace orrery::clock
