// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The service thread's share: it looks after frames when no other thread does, adopts memory, and hears of
// the death of peers.
#include "emu/base/asymmetric_fence.hpp"
#include "emu/base/log.hpp"
#include "emu/nic/nic.hpp"
#include "emu/nic/state/hazard.hpp"

#include <bit>

namespace orrery::nic {

namespace {
constexpr int kIdleTicks = 3;  // periods without a poll before frames ring again
}  // namespace

bool Nic::serve() {
  ServiceState& service = view_.service();
  bool busy = poll_requests(false);
  if (outstanding_count_.load(std::memory_order_relaxed) != 0) busy = poll_responses() || busy;
  // A polling thread moves the wire along: one that takes its lock now and then only delays it.
  if (wire_.load(std::memory_order_relaxed) != nullptr && !program_polls()) poll_wire(true);
  busy = triggers_.run(TriggerUnit::Look::at_counts) || busy;
  bool owed = collective_.serve();
  owed = run_delayed() || owed;
  owed = attend_suspension() || owed;
  streak_.set_owed(owed);
  busy = busy || owed;
  adopt_wanted();
  const std::uint64_t polls = polls_.value();
  if (polls != polls_seen_) busy = true;
  polls_seen_ = polls;
  if (busy) {
    idle_ticks_ = 0;
    service.poller.store(Poller::some, std::memory_order_seq_cst);
    return true;
  }
  if (++idle_ticks_ < kIdleTicks) return true;
  // Then a barrier for all threads, then one more look: a sender either sees that we sleep and rings, or
  // stored its frame before this look. A thread that polls now may be past the frame's lane: the look waits
  // for it.
  service.poller.store(Poller::none, std::memory_order_seq_cst);
  asymmetric_fence::heavy();
  const bool joined = triggers_.run(TriggerUnit::Look::at_counts) | collective_.serve();
  if (!poll_requests(true) && !joined) return false;
  service.poller.store(Poller::some, std::memory_order_seq_cst);
  idle_ticks_ = 0;
  return true;
}

// A thread of the program has polled for a while. It takes in frames itself, so the service thread, which
// takes the core from it for 20 us and more each time, need not come as often.
void Nic::after_idle_polls() {
  polls_.yield_if_oversubscribed();
  // Time that is paced waits for no thread; and a sleeper is rung.
  if (clock_ != nullptr || view_.service().poller.load(std::memory_order_relaxed) == Poller::none) return;
  if (const std::int64_t delay = streak_.postpone(monotonic_ns())) services_.postpone_service(delay);
}

// A thread of the program is about to sleep: frames are the service thread's from now on.
void Nic::hand_frames_back() {
  if (streak_.end()) services_.postpone_service(kServicePeriodNs);
  services_.hand_wire_back();
}

// ---- a peer is gone ----

void Nic::peer_died(ProcessName process) {
  if (process.slot >= kMaxProcesses) return;
  // A later process may have its slot already.
  const std::vector<Peer*> dead = peers_.of(process);
  for (Peer* peer : dead) {
    peer->dead.store(true, std::memory_order_seq_cst);
    fail_flights(*peer, Errc::unreachable);
  }
  // Release: windows that see the count see the peer marked dead.
  if (board_ != nullptr) board_->withdrawals.fetch_add(1, std::memory_order_release);
  // What it said before it died counts.
  for (int i = 0; i < 64 && poll_requests(true); ++i) {
  }
  channels_.take_back_from_the_dead();
  record_queues_.repair([this](std::uint16_t slot, std::uint32_t generation) {
    return services_.alive({slot, generation});
  });
  triggers_.run(TriggerUnit::Look::at_counts);
  collective_.peer_died(process);
  // What it was touching when it died it touches no more. Words of the board are its successor's after this
  // look.
  std::uint64_t left[kHazardSlots] = {};
  for (std::uint32_t i = 0; i < kHazardSlots && board_ != nullptr; ++i)
    left[i] = board_->lines[process.slot].port[i].load(std::memory_order_acquire);
  if (services_.slot_alive(process.slot)) return;
  (void)any_hazard(view_, process.slot, [](std::atomic<std::uint64_t>& word) {
    word.store(0, std::memory_order_release);
    return false;
  });
  for (std::uint32_t i = 0; i < kHazardSlots; ++i) {
    if (left[i] % 2 != 0)
      board_->lines[process.slot].port[i].compare_exchange_strong(left[i], left[i] + 1,
                                                                  std::memory_order_release);
  }
}

void Nic::fail_flights(Peer& peer, Errc status) {
  const std::lock_guard lock(frames_mu_);
  if (peer.link.by_wire) {
    if (wire::HostWire* const wire = wire_.load(std::memory_order_relaxed))
      wire->drop_peer(peer.link.process.slot, peer.link.wire_address);
  }
  if (!peer.lanes_open) return;
  // What it answered before it died counts.
  while (!peer.link.by_wire && take_responses(peer) > 0) {
  }
  look_for_refusals(peer);
  peer.waiting.clear();
  for (const std::uint32_t name : outstanding_.names_for(peer)) {
    Outstanding& outstanding = *outstanding_.find(name);
    if (outstanding.status == Errc::ok) outstanding.status = status;
    end_outstanding(name, outstanding);
  }
  std::erase(lane_peers_, &peer);
  std::erase(wire_peers_, &peer);
  peer.lanes_open = false;
  if (peer.unacknowledged) count(peer.in_flight, -1);
  peer.unacknowledged = false;
}

// ---- a peer was there before ----

// Drops the answers to what a predecessor in our slot asked. Returns whether none will come any more, so that
// the response lane is ours. REQUIRES: frames_mu_ is held.
bool Nic::drain_predecessors_responses(Peer& peer) {
  // Acquire: the target answers before it counts a request as taken.
  const bool served = peer.requests.consumed() >= peer.inherited_end;
  constexpr int kWholeLanes = 64;  // no more, whatever the peer writes meanwhile
  for (int i = 0; i < kWholeLanes && peer.responses.ready() && !peer.responses.broken(); ++i)
    take_responses(peer);
  peer.inherits = !served || peer.responses.ready();
  return !peer.inherits;
}

// ---- adoption ----

void Nic::adopt_wanted() {
  if (registrations_.has_spaces()) {
    for (auto& word : extent_state(view_).wanted) {
      if (word.load(std::memory_order_relaxed) == 0) continue;
      const std::uint64_t page = word.exchange(0, std::memory_order_acquire);
      if (page != 0) adopt_extent((page - 1) * kPageBytes);
    }
  }
  for (std::uint32_t group = 0; group < kMaxRegions / 64; ++group) {
    auto& word = view_.service().adoption_wanted[group];
    if (word.load(std::memory_order_relaxed) == 0) continue;
    std::uint64_t bits = word.exchange(0, std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1) {
      adopt_region(group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }
}

// REQUIRES: service thread.
void Nic::adopt_region(std::uint32_t index) {
  if (!options_.may_adopt || registrations_.state_of(index) != RegionState::by_frame ||
      (control::flags(view_.region(index).control.load(std::memory_order_relaxed)) & kSpace) != 0)
    return;
  for (const auto& range : registrations_.ranges_of(index)) {
    const Status adopted = adopt_range(range.begin, range.end, true);
    if (!adopted.ok()) log::debug("region {} stays by frame: {}", index, errc_name(adopted.code()));
  }
  if (registrations_.state_of(index) == RegionState::direct)
    log::debug("region {} has been moved into the memory file: direct from now on", index);
}

Status Nic::adopt_range(std::uint64_t begin, std::uint64_t end, bool registered) {
  struct Guard final : HostServices::SwitchGuard {
    Nic& nic;
    const bool registered;
    Guard(Nic& n, bool r) : nic(n), registered(r) {}
    bool before_switch(std::uint64_t from, std::uint64_t to) override {
      // Peers wait no longer than a part takes to move.
      (void)nic.poll_requests(true);
      {
        const std::lock_guard lock(nic.moving_mu_);
        nic.switching_ = {from, to};
      }
      nic.switched_.notify_all();
      // The program may have released it since, and given the pages back. Looked at after the above:
      // deregister() does both the other way round.
      if (registered ? !nic.registrations_.covers_any(from, to) : nic.registrations_.extents().is_cancelled())
        return false;
      nic.registrations_.change_state(from, to, RegionState::by_frame, RegionState::moving);
      return nic.registrations_.drain_range(
          from, to,
          [this](std::uint32_t slot) {
            return nic.services_.slot_alive(static_cast<wire::ProcessSlot>(slot));
          },
          nic.options_.drain_limit_ns);
    }
  } guard(*this, registered);
  const auto set_moving = [this](RegistrationTable::Range range) {
    {
      const std::lock_guard lock(moving_mu_);
      moving_ = range;
      switching_ = {};
    }
    switched_.notify_all();
  };
  set_moving({begin, end});
  const Status adopted = services_.adopt(begin, end, guard);
  set_moving({});
  registrations_.settle_moving([this](std::uint64_t from, std::uint64_t to) {
    const auto info = services_.inspect(from, to - from);
    return info.ok() && info.value().direct;
  });
  return adopted;
}

}  // namespace orrery::nic
