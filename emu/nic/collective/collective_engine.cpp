// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/collective/collective_engine.hpp"

#include "emu/base/asymmetric_fence.hpp"
#include "emu/base/double_word.hpp"
#include "emu/nic/collective/collective_slot.hpp"
#include "emu/nic/events/port.hpp"
#include "emu/nic/memory/regions.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

// ---- slots ----

// Any number of processes may write the same contribution of a VCE. They write the same words, and one that
// comes late finds a tag that it does not replace.
void CollectiveEngine::publish(CeSlot& slot, std::uint16_t generation, std::uint64_t turn,
                               const CeValue& value) {
  const std::uint64_t tag = ce_tag::make(generation, turn);
  const std::uint64_t words[4] = {value.operand[0], value.operand[1], value.reduction, ce_meta(value)};
  for (int i = 3; i >= 0; --i) {
    CePair& pair = slot.pair[i];
    for (;;) {
      const std::uint64_t found = pair.tag.load(std::memory_order_acquire);
      if (ce_tag::turn(found, generation) >= turn) break;
      const DoubleWord expected{found, pair.word.load(std::memory_order_relaxed)};
      if (double_word_cas(&pair, expected, {tag, words[i]})) break;
    }
  }
}

// ---- following a reduction up its tree ----

// Returns whether it is over; then record.value is what it came to.
bool CollectiveEngine::follow(Record& record, bool service) {
  CePath& path = *record.path;
  record.missing.store(nullptr, std::memory_order_relaxed);
  for (;;) {
    if (record.level == path.count.load(std::memory_order_acquire)) {
      if (!service) extend(path);
      if (path.by_packet.load(std::memory_order_acquire)) {
        const CePath::Level& top = path.levels[record.level - 1];
        const CeSlot& result = top.vce->results[record.lane][record.turn & 1];
        const std::uint64_t tag = ce_tag::make(top.generation, record.turn);
        if (read_slot(result, tag, &record.value)) return true;
        record.missing_tag.store(tag, std::memory_order_relaxed);
        record.missing.store(&result.pair[0].tag, std::memory_order_relaxed);
        return false;
      }
      if (path.whole.load(std::memory_order_acquire) &&
          record.level == path.count.load(std::memory_order_acquire))
        return true;
      if (record.level == path.count.load(std::memory_order_acquire)) return false;
      // The parent was set up after we had come this far.
      const CePath::Level& up = path.levels[record.level];
      publish(slot_of(*up.vce, record.lane, record.turn, up.child_below), up.generation, record.turn,
              record.value);
      record.any = false;
      record.next = 0;
    }
    const CePath::Level& level = path.levels[record.level];
    VceState& vce = *level.vce;
    const std::uint64_t control = vce.control.load(std::memory_order_acquire);
    if (vce_control::generation(control) != level.generation || vce_control::stage(control) == VceStage::free)
        [[unlikely]] {
      record.value.status = CeStatus::unexpected;
      return true;
    }
    if (vce_control::stage(control) != VceStage::configured) return false;
    const std::uint64_t tag = ce_tag::make(level.generation, record.turn);
    std::uint32_t left = vce.children.load(std::memory_order_relaxed);
    left &= record.next < 32 ? ~0u << record.next : 0;
    for (; left != 0; left &= left - 1) {
      const auto child = static_cast<std::uint32_t>(std::countr_zero(left));
      CeValue value;
      if (!read_slot(slot_of(vce, record.lane, record.turn, child), tag, &value)) {
        record.next = child;
        record.missing_tag.store(tag, std::memory_order_relaxed);
        record.missing.store(&slot_of(vce, record.lane, record.turn, child).pair[0].tag,
                             std::memory_order_relaxed);
        return false;
      }
      record.value = record.any ? ce_combine(record.value, value, rounding_of(vce)) : value;
      record.any = true;
    }
    record.next = kCeChildren;
    const std::uint32_t up = record.level + 1;
    if (up == path.count.load(std::memory_order_acquire)) {
      if (path.whole.load(std::memory_order_acquire)) return true;
      record.level = up;
      continue;
    }
    const CePath::Level& parent = path.levels[up];
    publish(slot_of(*parent.vce, record.lane, record.turn, parent.child_below), parent.generation,
            record.turn, record.value);
    record.level = up;
    record.next = 0;
    record.any = false;
  }
}

// Why a reduction that is not complete will never be, if that is known.
std::optional<CeStatus> CollectiveEngine::trouble(const Record& record) {
  const CePath& path = *record.path;
  const std::uint32_t count = path.count.load(std::memory_order_acquire);
  for (std::uint32_t i = std::min(record.level, count - 1); i < count; ++i) {
    const CePath::Level& level = path.levels[i];
    const std::uint32_t broken = level.vce->broken.load(std::memory_order_acquire);
    if (broken != 0 && broken >> 16 == level.generation) return static_cast<CeStatus>(broken & 0xff);
    if (level.owner->dead.load(std::memory_order_relaxed)) return CeStatus::unreachable;
  }
  return std::nullopt;
}

void CollectiveEngine::finish(Record& record, bool service) {
  // The client may have released the memory since; one that does so right now waits for us (settle).
  if (regions_.check_local(record.port->domain, key_of(record),
                           reinterpret_cast<std::uint64_t>(record.join.result), 3 * sizeof(std::uint64_t),
                           true) != Errc::ok)
    return;
  if (!service) return write_result(record.join, record.value);
  // It may have unmapped the memory without a word.
  (void)services_.guarded(
      [](void* argument) {
        auto* r = static_cast<Record*>(argument);
        write_result(r->join, r->value);
        return Errc::ok;
      },
      &record);
}

void CollectiveEngine::settle() {
  const std::uint32_t used = used_.load(std::memory_order_seq_cst);
  bool fenced = false;
  for (std::uint32_t i = 0; i < used; ++i) {
    const BiasedLock& lock = records_[i].lock;
    // Its thread has taken it by now, for us to see, or finds the registration gone.
    if (!fenced && lock.is_foreign()) fenced = asymmetric_fence::heavy();
    while (lock.taken()) cpu_relax();
  }
}

void CollectiveEngine::look(bool service) {
  // How often a record is looked at for nothing before trouble is looked for.
  constexpr std::uint32_t kPeeks = 32;
  const std::uint32_t used = used_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    Record& record = records_[i];
    if (!record.armed.load(std::memory_order_relaxed)) continue;
    // Another thread's is left to that thread while it comes.
    const bool foreign = record.lock.is_foreign();
    if (service) {
      const std::uint32_t looks = record.service_looks.load(std::memory_order_relaxed);
      record.service_looks.store(looks + 1, std::memory_order_relaxed);
      if (foreign && looks == 0 && !in_beat_.load(std::memory_order_relaxed)) continue;
      if (!record.lock.try_lock()) continue;
      if (record.armed.load(std::memory_order_relaxed)) look_at(record, true);
      record.lock.unlock();
      continue;
    }
    const bool missing = is_missing(record);
    if (missing && foreign) continue;
    if (missing || foreign) {
      const std::uint32_t peeks = record.peeks.load(std::memory_order_relaxed) + 1;
      record.peeks.store(peeks, std::memory_order_relaxed);
      if (peeks % kPeeks != 0) continue;
    }
    const auto held = record.lock.try_enter();
    if (held == BiasedLock::Held::no) continue;
    if (record.armed.load(std::memory_order_relaxed)) look_at(record, false);
    record.lock.leave(held);
  }
}

// REQUIRES: record.lock is ours.
void CollectiveEngine::look_at(Record& record, bool service) {
  if (record.path == nullptr) {
    // Its release comes as a packet, unless its sender is gone.
    if (!record.owner->dead.load(std::memory_order_acquire)) return;
    record.value.status = CeStatus::unreachable;
    finish(record, service);
    record.armed.store(false, std::memory_order_relaxed);
    return;
  }
  if (!service && record.usual && look_shortly(record) != ShortLook::unusual) return;
  bool over = follow(record, service);
  if (!over) {
    if (const auto why = trouble(record)) {
      // Everything that the dead contributed was there before they were seen dead.
      if (!follow(record, service)) record.value.status = *why;
      over = true;
    }
  }
  if (!over) return;
  finish(record, service);
  record.armed.store(false, std::memory_order_relaxed);
}

// ---- joining ----

void CollectiveEngine::note_used(std::uint32_t index) {
  std::uint32_t seen = used_.load(std::memory_order_relaxed);
  if (seen > index) return;
  while (seen <= index && !used_.compare_exchange_weak(seen, index + 1, std::memory_order_seq_cst)) {
  }
  pending_.ask_for_polls(Pending::kMoves);
}

void CollectiveEngine::start_heart() {
  if (!heartbeat_on_.exchange(true, std::memory_order_seq_cst)) services_.start_heartbeat();
}

Errc CollectiveEngine::join(const Port& port, CeEdge& edge, const CeJoin& join) {
  const auto refuse = [&](CeStatus why, Errc code) {
    CeValue value = join.value;
    value.status = why;
    write_result(join, value);
    return code;
  };
  const auto current = [&] {
    const CePath::Level& first = edge.path->levels[0];
    const std::uint64_t word = first.vce->control.load(std::memory_order_acquire);
    return vce_control::generation(word) == first.generation && vce_control::stage(word) != VceStage::free;
  };
  if (edge.owner != nullptr) return join_by_packet(port, edge, join);
  if (edge.path == nullptr || !current()) [[unlikely]] {
    Errc error = Errc::ok;
    know_self(port);
    if (find_owner(edge, &error)) return join_by_packet(port, edge, join);
    edge.path = find_path(edge, &error);
    if (edge.path == nullptr)
      return refuse(error == Errc::invalid_handle ? CeStatus::unexpected : CeStatus::unreachable, error);
  }
  // Ours to do while we may block: a service thread makes no connections.
  if (!edge.path->whole.load(std::memory_order_acquire)) [[unlikely]]
    extend(*edge.path);
  const CePath::Level& level = edge.path->levels[0];
  VceState& vce = *level.vce;
  const std::uint64_t control = vce.control.load(std::memory_order_acquire);
  if (vce_control::domain(control) != port.domain) [[unlikely]]
    return refuse(CeStatus::protection, Errc::permission);
  if (edge.child >= kCeChildren || (vce_control::stage(control) == VceStage::configured &&
                                    (vce.children.load(std::memory_order_relaxed) >> edge.child & 1) == 0))
      [[unlikely]] {
    return refuse(CeStatus::child_invalid, Errc::invalid_param);
  }
  const std::uint64_t me = me_.load(std::memory_order_relaxed);
  if (vce.claims[edge.child].load(std::memory_order_relaxed) != me) [[unlikely]] {
    claim(level, edge.child);
    if (vce.claims[edge.child].load(std::memory_order_relaxed) != me)
      return refuse(CeStatus::duplicate, Errc::duplicate);
  }
  const auto lane = static_cast<std::uint32_t>(join.value.reduction % kCeLanes);
  std::uint32_t index = 0;
  const Errc taken = take_record(
      [&](const Record& one) {
        return one.path != nullptr && one.path->levels[0].vce == &vce && one.child == edge.child &&
               one.lane == lane;
      },
      join.value.reduction, &index);
  if (taken == Errc::invalid_state) return refuse(CeStatus::duplicate, Errc::duplicate);
  if (taken != Errc::ok) return taken;
  Record* const record = &records_[index];

  const std::uint64_t last =
      std::max(ce_tag::turn(slot_of(vce, lane, 0, edge.child).pair[0].tag.load(std::memory_order_relaxed),
                            level.generation),
               ce_tag::turn(slot_of(vce, lane, 1, edge.child).pair[0].tag.load(std::memory_order_relaxed),
                            level.generation));
  record->port = &port;
  record->path = edge.path;
  record->owner = nullptr;
  record->turn = last + 1;
  record->lane = lane;
  record->child = edge.child;
  record->level = 0;
  record->next = 0;
  record->any = false;
  record->join = join;
  record->awaited.store(join.result, std::memory_order_relaxed);
  prepare_short_way(*record, edge, vce, control);
  std::atomic_ref<std::uint64_t>(join.result[0]).store(join.pending, std::memory_order_relaxed);
  publish_alone(slot_of(vce, lane, record->turn, edge.child), ce_tag::make(level.generation, record->turn),
                ce_normal(join.value));
  record->missing.store(nullptr, std::memory_order_relaxed);
  record->peeks.store(0, std::memory_order_relaxed);
  record->service_looks.store(0, std::memory_order_relaxed);
  record->armed.store(true, std::memory_order_relaxed);
  record->lock.unlock();
  note_used(index);
  beat_heart();
  if ((vce.modes.load(std::memory_order_relaxed) & kCeWakes) != 0) wake_owner(level);
  return Errc::ok;
}

void CollectiveEngine::forget(const Port& port) {
  for (std::uint32_t i = 0; i < used_.load(std::memory_order_acquire); ++i) {
    Record& record = records_[i];
    record.lock.lock();
    if (record.armed.load(std::memory_order_relaxed) && record.port == &port)
      record.armed.store(false, std::memory_order_relaxed);
    record.lock.unlock();
  }
  for (std::uint32_t vce = 0; vce < kVces; ++vce) {
    const bool ours = [&] {
      const std::lock_guard lock(mu_);
      return owned_[vce].used && owned_[vce].port == &port;
    }();
    if (ours) destroy(vce);
  }
}

// ---- paths ----

void CollectiveEngine::claim(const CePath::Level& level, std::uint32_t child) {
  if (child >= kCeChildren) return;
  const std::uint64_t mine = me_.load(std::memory_order_relaxed);
  if (mine == 0 || level.vce->claims[child].load(std::memory_order_acquire) == mine) return;
  // Its owner watches the process that joins.
  if (claim_for(*level.vce, child, ce_claim::process(mine))) services_.ring(level.owner->link.process);
}

// The child is that process from now on, or was already. False: another one, which lives.
bool CollectiveEngine::claim_for(VceState& vce, std::uint32_t child, ProcessName process) {
  auto& word = vce.claims[child];
  const std::uint64_t wanted = ce_claim::make(process);
  std::uint64_t found = word.load(std::memory_order_acquire);
  if (found == wanted) return true;
  if (found != 0 && services_.alive(ce_claim::process(found))) return false;
  if (!word.compare_exchange_strong(found, wanted, std::memory_order_acq_rel)) return found == wanted;
  vce.new_claims.fetch_or(1u << child, std::memory_order_acq_rel);
  return true;
}

// Whether the edge leads to a VCE that is reached by packets; then its owner is known.
bool CollectiveEngine::find_owner(CeEdge& edge, Errc* error) {
  Peer* owner = nullptr;
  *error = peers_.behind(edge.nic_address, static_cast<wire::ProcessSlot>(edge.id >> 4), &owner);
  if (*error != Errc::ok || is_mapped(*owner)) return false;
  edge.owner = owner;
  return true;
}

// Null: `error` says why. invalid_handle: there is no such VCE.
CePath* CollectiveEngine::find_path(const CeEdge& edge, Errc* error) {
  Peer* owner = nullptr;
  *error = peers_.behind(edge.nic_address, static_cast<wire::ProcessSlot>(edge.id >> 4), &owner);
  if (*error != Errc::ok) return nullptr;
  VceState& vce = collective_state(owner->link.nic).vces[edge.id & (kVces - 1)];
  const std::uint64_t control = vce.control.load(std::memory_order_acquire);
  if (vce_control::stage(control) == VceStage::free) {
    *error = Errc::invalid_handle;
    return nullptr;
  }
  CePath* path = nullptr;
  {
    const std::lock_guard lock(mu_);
    for (const auto& known : paths_) {
      const CePath::Level& first = known->levels[0];
      if (first.vce == &vce && first.owner == owner && first.generation == vce_control::generation(control))
        path = known.get();
    }
    if (path == nullptr) {
      paths_.push_back(std::make_unique<CePath>());
      path = paths_.back().get();
      path->levels[0] = {owner, &vce, vce_control::generation(control), 0};
      path->count.store(1, std::memory_order_release);
    }
  }
  extend(*path);
  return path;
}

// Finds as many more levels as there are by now.
void CollectiveEngine::extend(CePath& path) {
  while (!path.whole.load(std::memory_order_acquire)) {
    const std::uint32_t count = path.count.load(std::memory_order_acquire);
    VceState& top = *path.levels[count - 1].vce;
    if (vce_control::stage(top.control.load(std::memory_order_acquire)) != VceStage::configured) return;
    if ((top.modes.load(std::memory_order_relaxed) & kCeUpByPacket) != 0)
      return path.by_packet.store(true, std::memory_order_release);
    const std::uint64_t parent = top.parent.load(std::memory_order_relaxed);
    if (!ce_edge::valid(parent)) {
      path.whole.store(true, std::memory_order_release);
      return;
    }
    Peer* owner = nullptr;
    const bool too_deep = count == CePath::kMaxDepth;
    if (!too_deep && peers_.behind(ce_edge::address(parent), ce_edge::slot(parent), &owner) != Errc::ok) {
      // Its owner is gone, and nothing below can complete.
      return break_tree(path.levels[count - 1], CeStatus::unreachable);
    }
    // A tree that bites its own tail.
    if (too_deep) return break_tree(path.levels[count - 1], CeStatus::unexpected);
    VceState& vce = collective_state(owner->link.nic).vces[ce_edge::vce(parent)];
    const std::uint64_t control = vce.control.load(std::memory_order_acquire);
    if (vce_control::stage(control) != VceStage::configured) return;
    const std::lock_guard lock(mu_);
    if (path.count.load(std::memory_order_relaxed) != count) continue;  // another thread was here
    path.levels[count] = {owner, &vce, vce_control::generation(control),
                          ce_edge::child(parent) % kCeChildren};
    path.count.store(count + 1, std::memory_order_release);
  }
}

void CollectiveEngine::know_self(const Port& port) {
  if (me_.load(std::memory_order_relaxed) != 0) return;
  const auto self = services_.find_process(port.nic_address, self_);
  if (self.ok()) me_.store(ce_claim::make(self.value()), std::memory_order_relaxed);
}

void CollectiveEngine::attach(const Port& port, CeEdge& edge, std::optional<std::uint32_t> instance) {
  // A parent names its children on endpoints that are bound to them: that claims nothing, whatever number
  // stands there. A leaf's own endpoint is bound to the engine's owner. In one process its first join is soon
  // enough.
  bool known = true;
  if (instance) {
    if (edge.id >> 4 == self_) return;
    const auto bound = services_.find_port(port.domain, edge.nic_address, *instance);
    if (bound.ok() && bound.value().slot != edge.id >> 4) return;
    known = bound.ok();
  }
  Errc error = Errc::ok;
  know_self(port);
  if (find_owner(edge, &error)) return introduce(port, edge, instance);
  edge.path = find_path(edge, &error);
  if (edge.path != nullptr && known) claim(edge.path->levels[0], edge.child);
}

}  // namespace orrery::nic
