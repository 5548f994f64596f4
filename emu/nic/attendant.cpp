// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/attendant.hpp"

#include "emu/base/asymmetric_fence.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/state/hazard.hpp"

#include <utility>
#include <vector>

namespace orrery::nic {

namespace {
constexpr int kIdleTicks = 3;  // periods without a poll before frames ring again
// How often a program that polls the wire looks at the time; each poll is at least a system call.
constexpr std::uint64_t kPollsPerLook = 8;
}  // namespace

void Attendant::look_after(Row unit) {
  const auto note = [](auto& list, auto& call) {
    if (call) list.push_back(std::move(call));
  };
  note(polls_, unit.poll);
  note(turns_, unit.in_turn);
  note(serves_, unit.serve);
  note(last_looks_, unit.last_look);
  note(deaths_, unit.peer_died);
}

void Attendant::take_turn() {
  for (const auto& take_turn : turns_) take_turn();
}

void Attendant::move_in_turn() {
  (void)move_along();
  take_turn();
}

bool Attendant::progress(const void* source) {
  const bool any = move_along();
  if (clock_ == nullptr) [[likely]]
    return any;
  // A look in vain: the frames first, then time.
  if (is_runtime_thread()) return true;
  clock_->idle(source);
  // What has come meanwhile is there for the look that waited for it.
  if (clock_->is_virtual()) take_turn();
  return true;
}

Errc Attendant::progress_and_take(CompletionQueue& queue, Event* event) {
  if (!progress(&queue)) return Errc::not_done;
  const Errc found = queue.take(event);
  if (clock_ != nullptr && found != Errc::not_done) [[unlikely]]
    clock_->found();
  return found;
}

bool Attendant::move_along() {
  count_idle_poll();
  bool any = false;
  if (pending_.has_outstanding()) {
    transport_.poll_responses();
    any = true;
  }
  if (transport_.has_wire()) [[unlikely]] {
    transport_.poll_wire(false);
    if (pending_.polls.value() % kPollsPerLook == 0) {
      if (const std::int64_t delay = streak_.postpone(monotonic_ns())) services_.postpone_service(delay);
    }
    any = true;
  }
  if (pending_.has_lanes()) any = transport_.poll_requests(false) || any;
  for (const auto& poll : polls_) any = poll() || any;
  return any;
}

// ---- the service thread ----

bool Attendant::serve() {
  ServiceState& service = view_.service();
  bool busy = transport_.poll_requests(false);
  if (pending_.has_outstanding()) busy = transport_.poll_responses() || busy;
  // A polling thread moves the wire along: one that takes its lock now and then only delays it.
  if (transport_.has_wire() && !program_polls()) transport_.poll_wire(true);
  bool owed = false;
  for (const auto& serve_unit : serves_) {
    const Share share = serve_unit();
    busy = busy || share != Share::idle;
    owed = owed || share == Share::owed;
  }
  streak_.set_owed(owed);
  const std::uint64_t polls = pending_.polls.value();
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
  const bool found = look_once_more();
  if (!transport_.poll_requests(true) && !found) return false;
  service.poller.store(Poller::some, std::memory_order_seq_cst);
  idle_ticks_ = 0;
  return true;
}

bool Attendant::look_once_more() {
  bool found = false;
  for (const auto& look : last_looks_) found = look() || found;
  return found;
}

// A thread of the program has polled for a while. It takes in frames itself, so the service thread, which
// takes the core from it for 20 us and more each time, need not come as often.
void Attendant::after_idle_polls() {
  // In virtual time the other PEs sleep while this one has the turn.
  if (clock_ == nullptr || !clock_->is_virtual()) pending_.polls.yield_if_oversubscribed();
  // Time that is paced waits for no thread; and a sleeper is rung.
  if (clock_ != nullptr || view_.service().poller.load(std::memory_order_relaxed) == Poller::none) return;
  if (const std::int64_t delay = streak_.postpone(monotonic_ns())) services_.postpone_service(delay);
}

// A thread of the program is about to sleep: frames are the service thread's from now on.
void Attendant::hand_frames_back() {
  if (streak_.end()) services_.postpone_service(kServicePeriodNs);
  services_.hand_wire_back();
}

// ---- a peer is gone ----

void Attendant::peer_died(ProcessName process) {
  if (process.slot >= kMaxProcesses) return;
  // A later process may have its slot already.
  const std::vector<Peer*> dead = peers_.of(process);
  for (Peer* peer : dead) {
    peer->dead.store(true, std::memory_order_seq_cst);
    transport_.fail(*peer, Errc::unreachable);
  }
  // Release: windows that see the count see the peer marked dead.
  if (board_ != nullptr) board_->withdrawals.fetch_add(1, std::memory_order_release);
  // What it said before it died counts.
  for (int i = 0; i < 64 && transport_.poll_requests(true); ++i) {
  }
  for (const auto& tell : deaths_) tell(process);
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

bool Attendant::serve_wire() {
  // A program that polls may be at it now: waiting for it would take its core.
  transport_.poll_wire(!program_polls());
  return look_once_more();
}

}  // namespace orrery::nic
