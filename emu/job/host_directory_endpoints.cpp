// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The endpoint table of the host directory: open addressing over the key. A slot that was ever used never
// becomes `never` again, so a search ends at the first slot that is.
#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/host_directory.hpp"
#include "emu/job/process_stat.hpp"

#include <algorithm>

namespace orrery::job {

using layout::EndpointPhase;
using layout::EndpointSlot;
using layout::kMaxEndpoints;

namespace {

constexpr std::int64_t kSettleNs = 2'000'000'000;  // a stopped rival delays a publisher by this much at most
constexpr std::int64_t kSliceNs = 100'000'000;     // a publisher killed before its wake-up costs this much

std::uint64_t state_of(EndpointPhase phase, ProcessRef owner, std::uint64_t version) {
  return static_cast<std::uint64_t>(phase) | static_cast<std::uint64_t>(owner.index) << 4 |
         (version & 0xffff) << 16 | static_cast<std::uint64_t>(owner.generation) << 32;
}
EndpointPhase endpoint_phase_of(std::uint64_t state) { return static_cast<EndpointPhase>(state & 0xf); }
std::uint64_t with_phase(std::uint64_t state, EndpointPhase phase) {
  return (state & ~0xfull) | static_cast<std::uint64_t>(phase);
}
std::uint64_t version_of(std::uint64_t state) { return state >> 16 & 0xffff; }
ProcessRef owner_of(std::uint64_t state) {
  return {static_cast<std::uint32_t>(state >> 4 & 0xfff), static_cast<std::uint32_t>(state >> 32)};
}

std::uint64_t where_word(const EndpointKey& key) {
  return static_cast<std::uint64_t>(key.domain) << 32 | key.nic_address;
}
std::uint32_t home_of(const EndpointKey& key) {
  // Fibonacci hashing: neighbouring instances and addresses spread over the table.
  const std::uint64_t mixed = (where_word(key) * 31 + key.instance) * 0x9e3779b97f4a7c15ull;
  return static_cast<std::uint32_t>(mixed >> 32) % kMaxEndpoints;
}

}  // namespace

bool HostDirectory::owner_is_live(std::uint64_t state) const { return is_live(owner_of(state)); }

void HostDirectory::bury_if_gone(std::uint64_t endpoint_state) {
  const ProcessRef owner = owner_of(endpoint_state);
  if (!is_live(owner)) return;
  if (is_gone(processes()[owner.index].state.load(std::memory_order_acquire), owner.index)) mark_dead(owner);
}

bool HostDirectory::holds_key(const EndpointSlot& slot, const EndpointKey& key) const {
  return slot.domain_and_address.load(std::memory_order_relaxed) == where_word(key) &&
         slot.instance.load(std::memory_order_relaxed) == key.instance;
}

Result<EndpointRef> HostDirectory::publish_endpoint(ProcessRef self, const EndpointKey& key,
                                                    std::uint32_t nic_index) {
  if (!is_live(self)) return Errc::unreachable;
  const std::uint32_t home = home_of(key);
  for (std::uint32_t i = 0; i < kMaxEndpoints; ++i) {
    const std::uint32_t index = (home + i) % kMaxEndpoints;
    EndpointSlot& slot = endpoints()[index];
    std::uint64_t state = slot.state.load(std::memory_order_acquire);
    const EndpointPhase phase = endpoint_phase_of(state);
    const bool usable =
        phase == EndpointPhase::never || phase == EndpointPhase::withdrawn || !owner_is_live(state);
    const std::uint64_t claimed = state_of(EndpointPhase::claimed, self, version_of(state) + 1);
    if (!usable || !slot.state.compare_exchange_strong(state, claimed, std::memory_order_acq_rel)) continue;

    slot.domain_and_address.store(where_word(key), std::memory_order_relaxed);
    slot.instance.store(key.instance, std::memory_order_relaxed);
    slot.nic_index.store(nic_index, std::memory_order_relaxed);
    const Errc settled = settle_duplicates(index, claimed, key);
    if (settled != Errc::ok) {
      slot.state.store(with_phase(claimed, EndpointPhase::withdrawn), std::memory_order_release);
      return settled;
    }
    const std::uint64_t live = with_phase(claimed, EndpointPhase::live);
    slot.state.store(live, std::memory_order_seq_cst);
    announce_change();
    return EndpointRef{index, live};
  }
  log::error("no place for another endpoint: the processes of a job have at most {} on a host",
             kMaxEndpoints);
  return Errc::no_resource;
}

// Makes sure that at most one slot of a key becomes live. Each process first says `tentative` and then looks
// at the others (store, then load, both seq_cst: of two rivals at least one sees the other). Then:
//   case (1) another is live: we lose;
//   case (2) a tentative one stands before us in the probe order: we step back and wait for its decision;
//   case (3) a tentative one stands behind us: it will step back, we wait until it has.
Errc HostDirectory::settle_duplicates(std::uint32_t mine, std::uint64_t claimed, const EndpointKey& key) {
  const std::uint64_t tentative = with_phase(claimed, EndpointPhase::tentative);
  const std::uint32_t home = home_of(key);
  const std::uint32_t my_place = (mine + kMaxEndpoints - home) % kMaxEndpoints;
  const std::int64_t deadline = monotonic_ns() + kSettleNs;
  while (true) {
    endpoints()[mine].state.store(tentative, std::memory_order_seq_cst);
    bool wait = false;
    bool step_back = false;
    for (std::uint32_t i = 0; i < kMaxEndpoints; ++i) {
      const EndpointSlot& other = endpoints()[(home + i) % kMaxEndpoints];
      const std::uint64_t state = other.state.load(std::memory_order_seq_cst);
      const EndpointPhase phase = endpoint_phase_of(state);
      if (phase == EndpointPhase::never) break;
      if (i == my_place || (phase != EndpointPhase::live && phase != EndpointPhase::tentative)) continue;
      if (!holds_key(other, key)) continue;
      bury_if_gone(state);
      if (!owner_is_live(state)) continue;
      if (phase == EndpointPhase::live) return Errc::invalid_state;  // case (1)
      wait = true;                                                   // case (3)
      step_back = step_back || i < my_place;                         // case (2)
    }
    if (!wait) return Errc::ok;
    if (step_back) endpoints()[mine].state.store(claimed, std::memory_order_seq_cst);
    if (monotonic_ns() > deadline) {
      log::error("NIC address {} instance {} is being published by a process that does not go on",
                 key.nic_address, key.instance);
      return Errc::timeout;
    }
    yield_cpu();
  }
}

void HostDirectory::withdraw_endpoint(EndpointRef endpoint) {
  if (endpoint.index >= kMaxEndpoints) return;
  std::uint64_t state = endpoint.state;
  // Fails when it was withdrawn already: the version in the word has moved on.
  if (endpoints()[endpoint.index].state.compare_exchange_strong(
          state, with_phase(state, EndpointPhase::withdrawn), std::memory_order_acq_rel)) {
    announce_change();
  }
}

Result<Endpoint> HostDirectory::find_endpoint(const EndpointKey& key) const {
  const std::uint32_t home = home_of(key);
  Errc reason = Errc::no_match;
  for (std::uint32_t i = 0; i < kMaxEndpoints; ++i) {
    const EndpointSlot& slot = endpoints()[(home + i) % kMaxEndpoints];
    const std::uint64_t state = slot.state.load(std::memory_order_acquire);
    if (endpoint_phase_of(state) == EndpointPhase::never) break;
    if (endpoint_phase_of(state) != EndpointPhase::live || !holds_key(slot, key)) continue;
    // Acquire: the state must not be loaded again before the fields.
    const std::uint32_t nic_index = slot.nic_index.load(std::memory_order_acquire);
    if (slot.state.load(std::memory_order_relaxed) != state) continue;  // withdrawn while we read
    if (owner_is_live(state)) return Endpoint{key, owner_of(state), nic_index};
    reason = Errc::unreachable;
  }
  return reason;
}

std::vector<Endpoint> HostDirectory::endpoints_at(DomainId domain, std::uint32_t nic_address) const {
  std::vector<Endpoint> found;
  for (std::uint32_t i = 0; i < kMaxEndpoints; ++i) {
    const EndpointSlot& slot = endpoints()[i];
    const std::uint64_t state = slot.state.load(std::memory_order_acquire);
    if (endpoint_phase_of(state) != EndpointPhase::live) continue;
    const EndpointKey key{domain, nic_address, slot.instance.load(std::memory_order_acquire)};
    if (!holds_key(slot, key)) continue;
    // Acquire: the state must not be loaded again before the fields.
    const std::uint32_t nic_index = slot.nic_index.load(std::memory_order_acquire);
    if (slot.state.load(std::memory_order_relaxed) != state || !owner_is_live(state)) continue;
    found.push_back({key, owner_of(state), nic_index});
  }
  return found;
}

Result<Endpoint> HostDirectory::wait_endpoint(ProcessRef self, const EndpointKey& key,
                                              std::int64_t deadline_ns) {
  while (true) {
    const std::uint32_t seen = header().change_count.load(std::memory_order_acquire);
    auto found = find_endpoint(key);
    if (found.code() != Errc::no_match) return found;
    const std::int64_t now = monotonic_ns();
    if (now >= deadline_ns) break;
    note_wait(self, WaitPlace::attach);
    futex_wait(header().change_count, seen, std::min(deadline_ns, now + kSliceNs));
    note_wait(self, WaitPlace::nowhere);
  }
  log::error("no process attached at NIC address {} instance {} in time; {}", key.nic_address, key.instance,
             who_is_missing(key.domain));
  return Errc::timeout;
}

std::vector<ProcessRef> HostDirectory::processes_in(DomainId domain) const {
  std::vector<bool> seen(kMaxProcesses, false);
  for (std::uint32_t index = 0; index < kMaxEndpoints; ++index) {
    const std::uint64_t state = endpoints()[index].state.load(std::memory_order_acquire);
    const std::uint64_t where = endpoints()[index].domain_and_address.load(std::memory_order_relaxed);
    if (endpoint_phase_of(state) == EndpointPhase::live && where >> 32 == domain && owner_is_live(state))
      seen[owner_of(state).index] = true;
  }
  std::vector<ProcessRef> found;
  for (const ProcessRef process : live_processes()) {
    if (seen[process.index]) found.push_back(process);
  }
  return found;
}

std::string HostDirectory::who_is_missing(DomainId domain) const {
  constexpr std::size_t kMostNamed = 8;
  std::vector<bool> attached(kMaxProcesses, false);
  for (std::uint32_t index = 0; index < kMaxEndpoints; ++index) {
    const std::uint64_t state = endpoints()[index].state.load(std::memory_order_acquire);
    const std::uint64_t where = endpoints()[index].domain_and_address.load(std::memory_order_relaxed);
    if (endpoint_phase_of(state) == EndpointPhase::live && where >> 32 == domain && owner_is_live(state)) {
      attached[owner_of(state).index] = true;
    }
  }
  std::vector<std::string> missing;
  std::vector<bool> joined(pe_count(), false);
  for (const ProcessRef process : live_processes()) {
    const auto info = info_of(process);
    if (!info.ok()) continue;
    const auto rank = info.value().rank;
    if (rank >= 0 && static_cast<std::uint32_t>(rank) < joined.size()) {
      joined[static_cast<std::size_t>(rank)] = true;
    }
    if (attached[process.index]) continue;
    const pid_t pid = info.value().pid;
    const auto state = process_state_name(process_stat(pid).state);
    missing.push_back(rank >= 0 ? fmt::format("PE {} (pid {}, {})", rank, pid, state)
                                : fmt::format("pid {} ({})", pid, state));
  }
  for (std::size_t pe = 0; pe < joined.size(); ++pe) {
    if (!joined[pe]) missing.push_back(fmt::format("PE {} (never joined, or died)", pe));
  }
  if (missing.empty()) return fmt::format("every process has attached to domain {}", domain);
  std::string text = fmt::format("not attached to domain {}: ", domain);
  for (std::size_t i = 0; i < std::min(missing.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", ") + missing[i];
  }
  if (missing.size() > kMostNamed) text += fmt::format(" and {} more", missing.size() - kMostNamed);
  return text;
}

}  // namespace orrery::job
