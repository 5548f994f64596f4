// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/suspend.hpp"

#include "emu/base/asymmetric_fence.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/events/ports.hpp"
#include "emu/nic/initiator/bte_queue.hpp"
#include "emu/nic/transport/peers.hpp"
#include "emu/nic/transport/pending.hpp"
#include "emu/nic/transport/transport.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <utility>
#include <vector>

namespace orrery::nic {

// ---- the owner ----

bool Suspension::is_quiet(std::uint16_t domain) {
  // First, and not under one lock with what follows: a thread that has left `posting` has left its frames to
  // be seen.
  if (ports_.any_posting(domain)) return false;
  if (traffic_.pending.outstanding.load(std::memory_order_acquire) != 0 || traffic_.bte.outstanding() != 0 ||
      traffic_.deferral.holds_any())
    return false;
  return traffic_.transport.all_taken_out();
}

bool Suspension::attend() {
  ServiceState& service = view_.service();
  bool busy = false;
  std::array<std::uint64_t, kMaxSuspendable / 64> all_wanted;
  for (std::uint32_t group = 0; group < all_wanted.size(); ++group)
    all_wanted[group] = service.suspended[group].load(std::memory_order_seq_cst);
  // After them: a domain that was resumed and stopped again since the last look counts as changed. What was
  // registered in between has no mark.
  const std::uint32_t changes = service.suspension_changes.load(std::memory_order_seq_cst);
  const bool anew = std::exchange(seen_, changes) != changes;
  for (std::uint32_t group = 0; group < all_wanted.size(); ++group) {
    const std::uint64_t wanted = all_wanted[group];
    if (anew) marked_[group] &= ~wanted;
    for (std::uint64_t left = wanted ^ marked_[group]; left != 0; left &= left - 1) {
      const auto bit = static_cast<std::uint32_t>(std::countr_zero(left));
      const bool on = (wanted >> bit & 1) != 0;
      const bool drained = registrations_.mark_suspended(
          static_cast<std::uint16_t>(group * 64 + bit), on,
          [this](std::uint32_t slot) { return services_.slot_alive(static_cast<wire::ProcessSlot>(slot)); },
          drain_limit_ns_);
      if (drained) marked_[group] ^= 1ull << bit;
      busy = busy || !drained;
      if (!on) service.quiet[group].fetch_and(~(1ull << bit), std::memory_order_seq_cst);
    }
    std::uint64_t loud = wanted & marked_[group] & ~service.quiet[group].load(std::memory_order_relaxed);
    if (loud == 0) continue;
    // A thread that announced itself before it could see the domain suspended is seen from here on.
    asymmetric_fence::heavy();
    for (; loud != 0; loud &= loud - 1) {
      const auto bit = static_cast<std::uint32_t>(std::countr_zero(loud));
      if (is_quiet(static_cast<std::uint16_t>(group * 64 + bit)))
        service.quiet[group].fetch_or(1ull << bit, std::memory_order_seq_cst);
      else
        busy = true;
    }
  }
  return busy;
}

// ---- the suspending process ----

void Suspension::want(const Peer& peer, std::uint32_t domain, bool on) {
  ServiceState& service = peer.link.nic.service();
  const std::uint64_t bit = 1ull << domain % 64;
  if (on) {
    // What its owner said of an earlier suspension does not count: traffic may have gone on in between.
    service.quiet[domain / 64].fetch_and(~bit, std::memory_order_seq_cst);
    service.suspended[domain / 64].fetch_or(bit, std::memory_order_seq_cst);
  } else {
    service.suspended[domain / 64].fetch_and(~bit, std::memory_order_seq_cst);
  }
  service.suspension_changes.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(service.suspension_changes, INT_MAX);
  services_.ring(peer.link.process);
}

Errc Suspension::suspend(std::span<const ProcessName> processes, std::uint32_t domain,
                         std::int64_t deadline_ns) {
  if (domain >= kMaxSuspendable) return Errc::invalid_param;
  std::vector<const Peer*> peers;
  for (const ProcessName& process : processes) {
    const auto peer = peers_.connect(process);
    if (peer.ok() && peer.value()->link.nic) peers.push_back(peer.value());
  }
  for (const Peer* peer : peers) want(*peer, domain, true);
  for (const Peer* peer : peers) {
    const ServiceState& service = peer->link.nic.service();
    while (services_.alive(peer->link.process) && !has(service.quiet, domain)) {
      if (monotonic_ns() > deadline_ns) {
        for (const Peer* one : peers) want(*one, domain, false);
        return Errc::timeout;
      }
      (void)mover_.progress(nullptr);
      yield_cpu();
    }
  }
  return Errc::ok;
}

Errc Suspension::resume(std::span<const ProcessName> processes, std::uint32_t domain) {
  if (domain >= kMaxSuspendable) return Errc::invalid_param;
  bool any = false;
  for (const ProcessName& process : processes) {
    const auto peer = peers_.connect(process);
    if (!peer.ok() || !peer.value()->link.nic) continue;
    any = is_suspended(peer.value()->link.nic, domain) || any;
    want(*peer.value(), domain, false);
  }
  return any ? Errc::ok : Errc::invalid_state;
}

}  // namespace orrery::nic
