// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The collective engine's owner side: VCEs of ours, their members, and what is told when a member dies.
#include "emu/nic/collective/collective_engine.hpp"

#include "emu/base/asymmetric_fence.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/events/port.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

namespace {

constexpr std::uint32_t broken_word(std::uint16_t generation, CeStatus why) {
  return std::uint32_t{generation} << 16 | static_cast<std::uint32_t>(why);
}

}  // namespace

CollectiveEngine::CollectiveEngine(const Needs& needs)
    : services_(needs.services),
      pending_(needs.pending),
      view_(needs.pending.view),
      self_(needs.self),
      clock_(needs.services.clock()),
      peers_(needs.peers),
      ports_(needs.ports),
      transport_(needs.transport),
      regions_(needs.regions),
      mover_(needs.mover),
      faults_(needs.faults),
      by_packets_(needs.by_packets) {}
CollectiveEngine::~CollectiveEngine() = default;

VceState& CollectiveEngine::own(std::uint32_t vce) const { return collective_state(view_).vces[vce]; }

Result<std::uint32_t> CollectiveEngine::create(const Port& port) {
  know_self(port);
  const std::lock_guard lock(mu_);
  // In turn, so that a stale number names no VCE for as long as possible.
  for (std::uint32_t i = 1; i <= kVces; ++i) {
    const std::uint32_t vce = (last_vce_ + i) % kVces;
    if (owned_[vce].used) continue;
    last_vce_ = vce;
    owned_[vce] = Owned{.used = true, .port = &port};
    VceState& state = own(vce);
    auto generation = static_cast<std::uint16_t>(
        vce_control::generation(state.control.load(std::memory_order_relaxed)) + 1);
    if (generation == 0) generation = 1;
    state.modes.store(0, std::memory_order_relaxed);
    state.children.store(0, std::memory_order_relaxed);
    state.parent.store(0, std::memory_order_relaxed);
    state.broken.store(0, std::memory_order_relaxed);
    state.new_claims.store(0, std::memory_order_relaxed);
    for (auto& claim : state.claims) claim.store(0, std::memory_order_relaxed);
    // Release: a process that finds the VCE finds it empty.
    state.control.store(vce_control::make(generation, port.domain, VceStage::created),
                        std::memory_order_release);
    owned_count_.fetch_add(1, std::memory_order_relaxed);
    return vce;
  }
  return Errc::no_resource;
}

Errc CollectiveEngine::configure(std::uint32_t vce, std::span<const CeEdge* const> children,
                                 const CeEdge* parent, CompletionQueue* queue, std::uint32_t modes) {
  std::uint32_t mask = 0;
  for (const CeEdge* child : children) {
    if (!child->set || child->child >= kCeChildren || (mask >> child->child & 1) != 0)
      return Errc::invalid_param;
    mask |= 1u << child->child;
  }
  if (mask == 0) return Errc::invalid_param;
  std::uint64_t up = 0;
  Peer* up_owner = nullptr;
  if (parent != nullptr) {
    if (!parent->set || !parent->is_vce || parent->child >= kCeChildren) return Errc::invalid_param;
    Peer* owner = nullptr;
    const auto slot = static_cast<wire::ProcessSlot>(parent->id >> 4);
    const Errc found = peers_.behind(parent->nic_address, slot, &owner);
    if (found != Errc::ok) return found;
    up = ce_edge::make(true, slot, parent->id & (kVces - 1), parent->child, parent->nic_address);
    if (!is_mapped(*owner)) {
      up_owner = owner;
    } else {
      VceState& above = collective_state(owner->link.nic).vces[parent->id & (kVces - 1)];
      const std::uint64_t control = above.control.load(std::memory_order_acquire);
      if (vce_control::stage(control) == VceStage::free) return Errc::invalid_param;
      claim({owner, &above, vce_control::generation(control), 0}, parent->child);
    }
  }

  VceState& state = own(vce);
  CePath* path = nullptr;
  {
    const std::lock_guard lock(mu_);
    Owned& owned = owned_[vce];
    std::uint64_t control = state.control.load(std::memory_order_relaxed);
    if (vce_control::stage(control) == VceStage::configured) {
      // Again: what is left of the last time must not be taken for the new tree's.
      auto generation = static_cast<std::uint16_t>(vce_control::generation(control) + 1);
      if (generation == 0) generation = 1;
      control = vce_control::make(generation, vce_control::domain(control), VceStage::created);
      state.control.store(control, std::memory_order_release);
      state.broken.store(0, std::memory_order_relaxed);
    }
    if (queue != nullptr) {
      queue->references.fetch_add(1, std::memory_order_relaxed);
      queue->become_destination();
    }
    if (owned.queue != nullptr) owned.queue->references.fetch_sub(1, std::memory_order_relaxed);
    owned.queue = queue;
    owned.modes = queue == nullptr ? modes & kCeRounding : modes;
    owned.told_parent = false;
    owned.seen = {};
    owned.sent_up = {};
    owned.up_owner = up_owner;
    up_by_packet_.fetch_and(~(1u << vce), std::memory_order_relaxed);
    if (up_owner != nullptr) {
      up_by_packet_.fetch_or(1u << vce, std::memory_order_relaxed);
      pending_.ask_for_polls(Pending::kMoves);
      owned.up_id = parent->id;
      owned.up_child = parent->child;
    }
    for (const CeEdge* child : children) {
      state.edges[child->child].store(
          ce_edge::make(child->is_vce, child->id >> 4, child->id & (kVces - 1), 0, child->nic_address),
          std::memory_order_relaxed);
    }
    // Some may have contributed by packet already.
    const std::uint32_t acts =
        waiter_count_.load(std::memory_order_relaxed) != 0 ? std::uint32_t{kCeOwnerActs} : 0;
    state.modes.store(owned.modes | acts | (up_owner != nullptr ? std::uint32_t{kCeUpByPacket} : 0),
                      std::memory_order_relaxed);
    state.children.store(mask, std::memory_order_relaxed);
    state.parent.store(up, std::memory_order_relaxed);
    // Release: a process that sees this sees everything above.
    state.control.store(vce_control::make(vce_control::generation(control), vce_control::domain(control),
                                          VceStage::configured),
                        std::memory_order_release);
  }
  Errc error = Errc::ok;
  path = find_path({.set = true,
                    .is_vce = true,
                    .nic_address = owned_[vce].port->nic_address,
                    .id = ce_id(self_, vce),
                    .child = 0},
                   &error);
  {
    const std::lock_guard lock(mu_);
    owned_[vce].path = path;
  }
  if (up_owner != nullptr) {
    CeEdge edge = *parent;
    edge.owner = up_owner;
    introduce(*owned_[vce].port, edge);
  }
  return error;
}

void CollectiveEngine::destroy(std::uint32_t vce) {
  const std::lock_guard lock(mu_);
  Owned& owned = owned_[vce];
  if (!owned.used) return;
  if (owned.queue != nullptr) owned.queue->references.fetch_sub(1, std::memory_order_relaxed);
  owned = Owned{};
  up_by_packet_.fetch_and(~(1u << vce), std::memory_order_relaxed);
  VceState& state = own(vce);
  const std::uint64_t control = state.control.load(std::memory_order_relaxed);
  state.control.store(
      vce_control::make(vce_control::generation(control), vce_control::domain(control), VceStage::free),
      std::memory_order_release);
  owned_count_.fetch_sub(1, std::memory_order_relaxed);
}

// No reduction can complete here any more. The first reason stays.
void CollectiveEngine::break_tree(const CePath::Level& level, CeStatus why) {
  std::uint32_t found = level.vce->broken.load(std::memory_order_acquire);
  while (found >> 16 != level.generation || found == 0) {
    if (level.vce->broken.compare_exchange_weak(found, broken_word(level.generation, why),
                                                std::memory_order_acq_rel))
      return;
  }
}

// What the queue of a VCE of ours should hear. REQUIRES: mu_ is held.
void CollectiveEngine::observe(std::uint32_t vce, Owned& owned) {
  VceState& state = own(vce);
  const auto tell = [&](std::uint64_t reduction, CeStatus status) {
    const bool wanted = (owned.modes & (status == CeStatus::ok ? kCeOnComplete : kCeOnError)) != 0;
    if (!wanted) return;
    const std::uint64_t data =
        static_cast<std::uint64_t>(status) << 48 | (reduction & 0xffff'ffff) << 14 | ce_id(self_, vce);
    (void)push_event(owned.queue->view(), {EventKind::collective, Errc::ok, data});
  };
  const std::uint32_t children = state.children.load(std::memory_order_relaxed);
  const auto first = static_cast<std::uint32_t>(std::countr_zero(children)) % kCeChildren;
  const std::uint16_t generation = vce_control::generation(state.control.load(std::memory_order_relaxed));
  for (std::uint32_t lane = 0; lane < kCeLanes; ++lane) {
    for (;;) {
      const std::uint64_t turn = owned.seen[lane] + 1;
      std::uint64_t newest = 0;
      for (const auto& slots : state.slots[lane]) {
        newest = std::max(newest,
                          ce_tag::turn(slots[first].pair[0].tag.load(std::memory_order_acquire), generation));
      }
      if (newest < turn) break;
      if (newest > turn + 1) {
        // Its slots have been used again, so it was complete; what it came to we missed.
        tell(state.slots[lane][newest & 1][first].pair[2].word.load(std::memory_order_relaxed), CeStatus::ok);
        owned.seen[lane] = turn;
        continue;
      }
      Record record;
      record.path = owned.path;
      record.turn = turn;
      record.lane = lane;
      const std::uint64_t reduction =
          state.slots[lane][turn & 1][first].pair[2].word.load(std::memory_order_relaxed);
      if (!follow(record, true)) {
        const auto why = trouble(record);
        if (!why) break;
        if (!follow(record, true)) record.value.status = *why;
      }
      tell(reduction, record.value.status);
      owned.seen[lane] = turn;
    }
  }
}

// Watches processes that claimed a child; tells the parent what is broken; raises events for what is new.
// Returns whether a reduction is under way at a VCE with a queue.
bool CollectiveEngine::attend() {
  const std::unique_lock lock(mu_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  bool busy = false;
  for (std::uint32_t vce = 0; vce < kVces; ++vce) {
    Owned& owned = owned_[vce];
    if (!owned.used) continue;
    VceState& state = own(vce);
    const std::uint16_t generation = vce_control::generation(state.control.load(std::memory_order_relaxed));
    const CePath::Level here{nullptr, &state, generation, 0};
    if (state.new_claims.load(std::memory_order_relaxed) != 0) {
      std::uint32_t bits = state.new_claims.exchange(0, std::memory_order_acq_rel);
      for (; bits != 0; bits &= bits - 1) {
        const ProcessName process =
            ce_claim::process(state.claims[std::countr_zero(bits)].load(std::memory_order_acquire));
        if (process.slot == self_) continue;
        services_.watch(process);
        if (!services_.alive(process)) break_tree(here, CeStatus::unreachable);
      }
    }
    if (owned.path == nullptr) continue;
    if (owned.up_owner != nullptr && owned.up_owner->dead.load(std::memory_order_acquire))
      break_tree(here, CeStatus::unreachable);
    const std::uint32_t broken = state.broken.load(std::memory_order_acquire);
    const bool is_broken = broken != 0 && broken >> 16 == generation;
    if (owned.up_owner != nullptr)
      busy = send_up(vce, owned, is_broken ? static_cast<CeStatus>(broken & 0xff) : CeStatus::ok) || busy;
    if (is_broken && !owned.told_parent && owned.up_owner == nullptr) {
      owned.told_parent = true;
      if (owned.path->count.load(std::memory_order_acquire) > 1) {
        const CePath::Level& parent = owned.path->levels[1];
        break_tree(parent, static_cast<CeStatus>(broken & 0xff));
        services_.ring(parent.owner->link.process);
      }
    }
    if ((owned.modes & (kCeOnComplete | kCeOnError)) != 0 && !counts_time()) {
      observe(vce, owned);
      const std::uint32_t children = state.children.load(std::memory_order_relaxed);
      for (std::uint32_t lane = 0; lane < kCeLanes && !busy; ++lane) {
        for (std::uint32_t left = children; left != 0 && !busy; left &= left - 1) {
          const std::uint64_t turn = owned.seen[lane] + 1;
          const std::uint64_t tag =
              state.slots[lane][turn & 1][std::countr_zero(left)].pair[0].tag.load(std::memory_order_relaxed);
          busy = ce_tag::turn(tag, generation) >= turn;
        }
      }
    }
  }
  return busy;
}

bool CollectiveEngine::counts_time() const { return clock_ != nullptr && clock_->is_virtual(); }

void CollectiveEngine::progress_in_turn() {
  if (active()) progress();
  if (owned_count_.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(mu_);
  for (std::uint32_t vce = 0; vce < kVces; ++vce) {
    Owned& owned = owned_[vce];
    if (owned.used && owned.path != nullptr && (owned.modes & (kCeOnComplete | kCeOnError)) != 0)
      observe(vce, owned);
  }
}

bool CollectiveEngine::serve() {
  bool busy = handle_packets(true);
  // Before our own results: the slots of a reduction that we are part of stand until we have ours.
  if (owned_count_.load(std::memory_order_relaxed) != 0) busy = attend() || busy;
  // Under virtual time results come where the program looks or joins (timed.cpp), at its place in the order
  // of time: a look of this thread would come between.
  if (!counts_time()) look(true);
  // What has just been sent up may have been the last.
  busy = handle_packets(true) || busy;
  return busy;
}

bool CollectiveEngine::heartbeat() {
  // Beats without anything due before the heart stops: a program that reduces now and then does not start it
  // every time.
  constexpr std::uint32_t kIdleBeats = 500;
  in_beat_.store(true, std::memory_order_relaxed);
  (void)serve();
  in_beat_.store(false, std::memory_order_relaxed);
  const auto due = [&] {
    const std::uint32_t used = used_.load(std::memory_order_seq_cst);
    return std::any_of(records_.begin(), records_.begin() + used,
                       [](const Record& r) { return r.armed.load(std::memory_order_seq_cst); });
  };
  if (due()) {
    idle_beats_ = 0;
    return true;
  }
  if (++idle_beats_ < kIdleBeats) return true;
  idle_beats_ = 0;
  return false;
}

void CollectiveEngine::heart_stopped() {
  heartbeat_on_.store(false, std::memory_order_seq_cst);
  // A thread may have joined in between: it sees that the heart stopped, or we see what it armed.
  asymmetric_fence::heavy();
  const std::uint32_t used = used_.load(std::memory_order_seq_cst);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (!records_[i].armed.load(std::memory_order_seq_cst)) continue;
    if (!heartbeat_on_.exchange(true, std::memory_order_seq_cst)) services_.start_heartbeat();
    return;
  }
}

void CollectiveEngine::peer_died(ProcessName process) {
  (void)handle_packets(true);
  if (owned_count_.load(std::memory_order_relaxed) == 0) return;
  {
    const std::lock_guard lock(mu_);
    for (std::uint32_t vce = 0; vce < kVces; ++vce) {
      if (!owned_[vce].used) continue;
      VceState& state = own(vce);
      const std::uint16_t generation = vce_control::generation(state.control.load(std::memory_order_relaxed));
      for (const auto& claim : state.claims) {
        const std::uint64_t word = claim.load(std::memory_order_acquire);
        if (word != 0 && ce_claim::process(word) == process)
          break_tree({nullptr, &state, generation, 0}, CeStatus::unreachable);
      }
    }
  }
  (void)attend();
}

}  // namespace orrery::nic
