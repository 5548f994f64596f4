// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/patient_wait.hpp"
#include "lib/common/match_node.hpp"

#include <atomic>
#include <cstdint>
#include <optional>

namespace orrery::common {

// A look in vain under a clock: lets the time pass that it takes.
inline void look_in_vain(MatchNode& node, const void* source) {
  if (node.clock() != nullptr) node.runtime().nic().attendant().progress(source);
}

// Waits until done() is true (true), or `timeout_ms` have passed (none: for ever). Spins, yields, then sleeps
// on the match unit's bell; in virtual time it waits in it. before_long() runs once, before it gives
// the core away for the first time. Any thread.
template <typename Done, typename BeforeLong>
bool wait_for_match(MatchNode& node, std::optional<std::uint32_t> timeout_ms, Done done,
                    BeforeLong before_long) {
  constexpr std::int64_t kNsPerMs = 1'000'000;
  if (clock::Clock* const clock = node.clock(); clock != nullptr && clock->is_virtual()) {
    std::optional<Picos> deadline;
    if (timeout_ms) deadline = clock->now() + Picos{std::int64_t{*timeout_ms} * kNsPerMs * 1000};
    for (;;) {
      if (done()) return true;
      if (deadline && clock->now() >= *deadline) return false;
      (void)clock->wait(deadline);
    }
  }
  std::optional<std::int64_t> deadline;
  if (timeout_ms) deadline = monotonic_ns() + std::int64_t{*timeout_ms} * kNsPerMs;
  nic::match::Header& header = node.own().header();
  const WaitBudget budget = node.runtime().wait_budget();
  if (spin_then_yield({budget.spins, 0}, done)) return true;
  before_long();
  for (;;) {
    if (look_before_sleep(budget, done, deadline)) return true;
    header.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t bell = header.bell.load(std::memory_order_seq_cst);
    bool found = done();
    bool late = false;
    if (!found) late = !futex_wait(header.bell, bell, deadline);
    header.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (found) return true;
    if (late) return done();
  }
}

template <typename Done>
bool wait_for_match(MatchNode& node, std::optional<std::uint32_t> timeout_ms, Done done) {
  return wait_for_match(node, timeout_ms, done, [] {});
}

}  // namespace orrery::common
