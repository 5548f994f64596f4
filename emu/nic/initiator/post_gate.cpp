// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/initiator/post_gate.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/events/port.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/thread_word.hpp"

namespace orrery::nic {

namespace {

// A sleeper looks again at least this often: the process that resumed its domain may have died before it woke
// any. (One that dies with a domain suspended leaves it so: any other may resume it.)
constexpr std::int64_t kGateLookNs = 50'000'000;

}  // namespace

// As with hazards (hazard.hpp): the suspending process pays for the barrier, where the kernel has one.
inline void PostGate::enter(bool strong) {
  if (place_ == kSharedHazardSlot) [[unlikely]] {
    port_.others_posting.fetch_add(1, std::memory_order_seq_cst);
  } else if (strong) [[unlikely]] {
    port_.posting[place_].exchange(1, std::memory_order_seq_cst);
  } else {
    port_.posting[place_].store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

// Release: a thread that sees it cleared sees what was posted.
inline void PostGate::leave() {
  if (place_ == kSharedHazardSlot) [[unlikely]]
    port_.others_posting.fetch_sub(1, std::memory_order_release);
  else
    port_.posting[place_].store(0, std::memory_order_release);
}

ORRERY_TIMED_PATH PostGate::PostGate(const NicView& nic, Port& port)
    : port_(port), place_(thread_hazard_slot()) {
  const bool strong = nic.header().strong_hazards != 0;
  for (;;) {
    enter(strong);
    if (!is_suspended(nic, port_.domain)) [[likely]]
      return;
    leave();
    FutexWord& changes = nic.service().suspension_changes;
    const std::uint32_t seen = changes.load(std::memory_order_acquire);
    if (is_suspended(nic, port_.domain)) futex_wait(changes, seen, monotonic_ns() + kGateLookNs);
  }
}

ORRERY_TIMED_PATH PostGate::~PostGate() { leave(); }

}  // namespace orrery::nic
