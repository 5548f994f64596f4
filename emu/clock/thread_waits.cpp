// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/thread_waits.hpp"

#include "emu/clock/thread_start.hpp"

#include <algorithm>
#include <utility>

namespace orrery::clock {

namespace {

constexpr std::uint64_t kRound = std::uint64_t{1} << 32;
// Before a wait in a call there may be looks.
constexpr std::uint32_t kLooksOfOneAwake = 64;

}  // namespace

ThreadWaits::Place* ThreadWaits::find(const void* on) {
  for (Place& place : places_) {
    if (place.on == on) return &place;
  }
  return nullptr;
}

// Of a thread that is awake now, ThreadState::awake.
std::uint64_t ThreadWaits::round() const { return awake_.load(std::memory_order_acquire) / kRound + 1; }

// REQUIRES: mu_ is held.
void ThreadWaits::count(int more, int more_not_new) {
  not_new_.store(not_new_.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(more_not_new),
                 std::memory_order_relaxed);
  const std::uint64_t before = awake_.load(std::memory_order_relaxed);
  if (more > 0 && before % kRound == 0)
    spells_.store(spells_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  // Release: a thread that finds none awake finds what the last one did.
  awake_.store(before + static_cast<std::uint64_t>(std::int64_t{more}), std::memory_order_release);
}

void ThreadWaits::begin(const void* on) {
  sleeps_again();
  const std::uint32_t not_new = state_of_thread().is_new ? 0 : 1;
  const std::lock_guard lock(mu_);
  if (Place* const place = find(on); place != nullptr) {
    ++place->waiting;
    place->waiting_not_new += not_new;
  } else {
    places_.push_back({.on = on, .waiting = 1, .woken = 0, .waiting_not_new = not_new, .woken_not_new = 0});
  }
}

void ThreadWaits::end(const void* on) {
  ThreadState& self = state_of_thread();
  const std::uint32_t not_new = self.is_new ? 0 : 1;
  const std::lock_guard lock(mu_);
  self.awake = round();
  self.counts_as_new = self.is_new;
  self.looks = 0;
  Place* const place = find(on);
  if (place == nullptr) return count(1, static_cast<int>(not_new));
  if (place->woken != 0) {
    --place->woken;
    // Which of those that waited there was woken was not known.
    const std::uint32_t counted = place->woken_not_new != 0 ? 1 : 0;
    place->woken_not_new -= counted;
    count(0, static_cast<int>(not_new) - static_cast<int>(counted));
  } else {
    count(1, static_cast<int>(not_new));  // nothing woke it that is known here
  }
  place->waiting_not_new -= not_new;
  if (--place->waiting != 0) return;
  *place = places_.back();
  places_.pop_back();
}

void ThreadWaits::wake(const void* on, bool all) {
  const std::lock_guard lock(mu_);
  Place* const place = find(on);
  if (place == nullptr || place->waiting == place->woken) return;
  const std::uint32_t woken = all ? place->waiting - place->woken : 1;
  const std::uint32_t not_new = place->waiting_not_new != 0 ? woken : 0;
  place->woken += woken;
  place->woken_not_new += not_new;
  count(static_cast<int>(woken), static_cast<int>(not_new));
}

void ThreadWaits::sleeps_again() {
  ThreadState& self = state_of_thread();
  if (self.awake == 0) return;
  const std::lock_guard lock(mu_);
  const std::uint64_t awake = awake_.load(std::memory_order_relaxed);
  if (std::exchange(self.awake, 0) == round() && awake % kRound != 0) count(-1, self.counts_as_new ? 0 : -1);
}

void ThreadWaits::looks_in_vain() {
  ThreadState& self = state_of_thread();
  if (self.awake != 0 && ++self.looks >= kLooksOfOneAwake) sleeps_again();
}

std::uint64_t ThreadWaits::create() {
  const std::lock_guard lock(mu_);
  count(1, 0);
  return round();
}

void ThreadWaits::create_failed(std::uint64_t awake) {
  const std::lock_guard lock(mu_);
  if (awake == round()) count(-1, 0);
}

void ThreadWaits::comes_in() {
  ThreadState& self = state_of_thread();
  if (!std::exchange(self.is_new, false)) return;
  const std::lock_guard lock(mu_);
  if (self.awake == round() && std::exchange(self.counts_as_new, false)) count(0, 1);
  if (self.awake != 0 && self.awake != round()) self.given_up = self.awake;
}

bool ThreadWaits::is_late() {
  if (!any_busy_.load(std::memory_order_relaxed)) [[likely]]
    return false;
  const std::uint64_t given_up = std::exchange(state_of_thread().given_up, 0);
  if (given_up == 0) return false;
  const std::lock_guard lock(mu_);
  return std::find(busy_.begin(), busy_.end(), given_up) != busy_.end();
}

bool ThreadWaits::is_new() {
  ThreadState& self = state_of_thread();
  if (self.is_new && self.awake != 0 && self.awake != round()) self = {.given_up = self.awake};
  return self.is_new;
}

void ThreadWaits::give_up(bool busy) {
  const std::lock_guard lock(mu_);
  if (busy) {
    busy_.push_back(round());
    any_busy_.store(true, std::memory_order_relaxed);
  }
  // What was woken, and is not back, counts as if nothing had woken it.
  for (Place& place : places_) place.woken = place.woken_not_new = 0;
  not_new_.store(0, std::memory_order_relaxed);
  awake_.store(round() * kRound, std::memory_order_release);
}

}  // namespace orrery::clock
