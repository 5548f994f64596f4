// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The fast path of a reduction: a contribution through an edge that was used before, and the look at a tree
// that is one VCE. What stands in the slots, and which process may write it when, is as on the slow path
// (collective_engine.cpp); only what cannot have changed is not checked again. The VCE's control word says
// that nothing has: a VCE that is set up anew gets another generation.
#include "emu/base/prefetch.hpp"
#include "emu/nic/collective/collective_engine.hpp"
#include "emu/nic/collective/collective_slot.hpp"
#include "emu/nic/events/port.hpp"
#include "emu/nic/initiator/post_gate.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/thread_word.hpp"

#include <bit>

namespace orrery::nic {

// ---- joining ----

// What a join on the slow path leaves for the next one. REQUIRES: record.lock is wholly ours, and record is
// filled in.
void CollectiveEngine::prepare_short_way(Record& record, CeEdge& edge, VceState& vce, std::uint64_t control) {
  record.vce = &vce;
  record.control = control;
  record.slots[0] = vce.slots[record.lane][0];
  record.slots[1] = vce.slots[record.lane][1];
  record.children = 0;
  record.usual = false;
  record.entry = nullptr;
  // A path that is whole stays what it is.
  const bool whole = record.path->whole.load(std::memory_order_acquire);
  if (whole && record.path->count.load(std::memory_order_relaxed) == 1 &&
      rounding_of(vce) == Rounding::nearest)
    record.children = vce.children.load(std::memory_order_relaxed);
  if (edge.control != control) edge.records = CeEdge::no_records();
  edge.control = control;
  const auto index = static_cast<std::uint8_t>(&record - records_.data());
  // A child that is a VCE as well has other processes that write its slot.
  const bool alone = !ce_edge::is_vce(vce.edges[record.child].load(std::memory_order_relaxed));
  const bool possible =
      whole && alone && clock_ == nullptr && faults_ == nullptr && view_.header().strong_hazards == 0;
  edge.records[record.lane] = possible ? index : CeEdge::kNoRecord;
  if (possible) record.lock.bind();
}

bool CollectiveEngine::try_join(Port& port, CeEdge& edge, const CeShortJoin& join) {
  const auto lane = static_cast<std::uint32_t>(join.reduction % kCeLanes);
  const std::uint32_t index = edge.records[lane];
  if (index == CeEdge::kNoRecord) [[unlikely]]
    return false;
  const std::uint32_t place = thread_hazard_slot();
  if (place == kSharedHazardSlot) [[unlikely]]
    return false;
  auto& posting = port.posting[place];
  Record& record = records_[index];
  const auto held = record.lock.try_enter();
  if (held == BiasedLock::Held::no) [[unlikely]]
    return false;
  // As PostGate, which waits while the domain is suspended.
  posting.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // The record may have been used by another edge since. While it has not, no other record is this child's in
  // this lane (take_record): it alone says that nothing is under way, and which turn is next. What we wrote
  // last is not asked: the line is in the cache of its last reader, and would have to come from there.
  const std::uint64_t tag = ce_tag::make(vce_control::generation(edge.control), record.turn);
  const bool allowed = !is_suspended(view_, port.domain) && !record.armed.load(std::memory_order_relaxed) &&
                       record.path == edge.path && edge.path != nullptr && record.child == edge.child &&
                       record.lane == lane && record.control == edge.control &&
                       // Acquire: pairs with configure().
                       record.vce->control.load(std::memory_order_acquire) == edge.control;
  if (!allowed) [[unlikely]] {
    posting.store(0, std::memory_order_release);
    record.lock.leave(held);
    return false;
  }
  std::atomic_ref<std::uint64_t>(join.result[0]).store(join.pending, std::memory_order_relaxed);
  const std::uint64_t turn = ++record.turn;
  // First of all: the others wait for it.
  publish_alone(record.slots[turn & 1][edge.child], tag + 1, join.operand[0], join.operand[1], join.reduction,
                join.meta);
  record.level = 0;
  record.next = 0;
  record.any = false;
  record.usual = record.children != 0;
  record.meta = join.meta;
  record.entry = join.entry;
  record.entry_control = join.entry_control;
  record.join.result = join.result;
  record.join.value.reduction = join.reduction;
  record.join.value.operand[0] = join.operand[0];
  record.join.value.operand[1] = join.operand[1];
  record.join.exceptions_wanted = 0;
  record.awaited.store(join.result, std::memory_order_relaxed);
  record.missing.store(nullptr, std::memory_order_relaxed);
  record.peeks.store(0, std::memory_order_relaxed);
  record.service_looks.store(0, std::memory_order_relaxed);
  record.armed.store(true, std::memory_order_relaxed);
  record.lock.leave(held);
  beat_heart();
  if ((record.vce->modes.load(std::memory_order_relaxed) & kCeWakes) != 0) [[unlikely]]
    wake_owner(record.path->levels[0]);
  posting.store(0, std::memory_order_release);
  return true;
}

void CollectiveEngine::wake_owner(const CePath::Level& level) {
  if (level.owner->link.nic.service().poller.load(std::memory_order_relaxed) == Poller::none)
    services_.ring(level.owner->link.process);
}

// Of the result's registration.
MemKey CollectiveEngine::key_of(const Record& record) const {
  if (record.entry == nullptr) return record.join.key;
  return {.index = static_cast<std::uint16_t>(record.entry - &view_.region(0)),
          .generation = control::generation(record.entry_control),
          .process = self_,
          .flags = control::flags(record.entry_control)};
}

// ---- looking ----

// Whether what was missing at the last look is there, now or after a pause. (A look that follows another at
// once takes the line from the process that is about to write it.)
bool CollectiveEngine::peek(const Record& record) {
  if (!is_missing(record)) return true;
  cpu_relax();
  return !is_missing(record);
}

void CollectiveEngine::try_finish(const std::uint64_t* result) {
  const std::uint32_t used = used_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    Record& record = records_[i];
    if (record.awaited.load(std::memory_order_relaxed) != result) continue;
    // A second time, since the first look finds out what is missing.
    for (int looks = 0; looks < 2 && record.armed.load(std::memory_order_relaxed) && peek(record); ++looks) {
      const auto held = record.lock.try_enter();
      if (held == BiasedLock::Held::no) break;
      if (record.armed.load(std::memory_order_relaxed)) look_at(record, false);
      record.lock.leave(held);
    }
  }
  // A thread that has seen a result may not look again for long.
  if (waits_for_packets()) [[unlikely]]
    move_packets();
}

// A look at a tree of one VCE, from where the last one ended. done: its result is written. waits: `missing`
// says for what. unusual: follow() has to look, from where this one ended.
// REQUIRES: record.lock is ours, record.armed, record.usual.
CollectiveEngine::ShortLook CollectiveEngine::look_shortly(Record& record) {
  if (record.vce->control.load(std::memory_order_acquire) != record.control) [[unlikely]]
    return ShortLook::unusual;
  const std::uint64_t tag = ce_tag::make(vce_control::generation(record.control), record.turn);
  const CeSlot* const slots = record.slots[record.turn & 1];
  const std::uint64_t meta = record.meta;
  const std::uint64_t reduction = record.join.value.reduction;
  std::uint64_t operand[2] = {record.value.operand[0], record.value.operand[1]};
  // What the operands have come to is kept with the record.
  const auto stop_at = [&](std::uint32_t child) {
    record.next = child;
    set_ce_meta(record.value, meta);
    record.value.reduction = reduction;
    record.value.operand[0] = operand[0];
    record.value.operand[1] = operand[1];
  };
  bool any = record.any;
  for (std::uint32_t left = record.children & ~0u << record.next; left != 0; left &= left - 1) {
    const auto child = static_cast<std::uint32_t>(std::countr_zero(left));
    const CeSlot& slot = slots[child];
    const bool is_ours = child == record.child;  // and is not read back (try_join)
    if (!is_ours && !is_there(slot, tag)) {
      stop_at(child);
      record.any = any;
      // The same one is still missing: it may be that it never comes.
      if (record.missing.load(std::memory_order_relaxed) == &slot.pair[0].tag) return ShortLook::unusual;
      record.missing_tag.store(tag, std::memory_order_relaxed);
      record.missing.store(&slot.pair[0].tag, std::memory_order_relaxed);
      // The next turn's slot, while there is nothing to do: what stands there has been read by most.
      prefetch_to_write(&record.slots[(record.turn + 1) & 1][record.child]);
      return ShortLook::waits;
    }
    // Of our command, well, and of our reduction: what ce_combine() asks.
    const bool agrees = is_ours || (slot.pair[3].word.load(std::memory_order_relaxed) == meta &&
                                    slot.pair[2].word.load(std::memory_order_relaxed) == reduction);
    const std::uint64_t first =
        is_ours ? record.join.value.operand[0] : slot.pair[0].word.load(std::memory_order_relaxed);
    if (agrees && !any) {
      operand[0] = first;
      operand[1] = is_ours ? record.join.value.operand[1] : slot.pair[1].word.load(std::memory_order_relaxed);
      any = true;
    } else if (!agrees || !ce_combine_usual(meta, &operand[0], first)) [[unlikely]] {
      stop_at(child);
      record.any = any;
      return ShortLook::unusual;
    }
  }
  record.value.operand[0] = operand[0];
  // Acquire: the client may have released the memory since; one that does so right now waits for us (settle).
  if (record.entry->control.load(std::memory_order_acquire) == record.entry_control) [[likely]] {
    write_words(record.join.result, operand, ce_result::make(CeStatus::ok, 0, reduction));
  } else {
    stop_at(kCeChildren);
    finish(record, false);
  }
  record.armed.store(false, std::memory_order_relaxed);
  return ShortLook::done;
}

}  // namespace orrery::nic
