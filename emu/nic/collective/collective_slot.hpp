// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/double_word.hpp"
#include "emu/nic/collective/collective_combine.hpp"
#include "emu/nic/collective/collective_engine.hpp"
#include "emu/nic/collective/collective_state.hpp"

#include <atomic>
#include <cstdint>

// How the collective engine reads and writes a slot (collective_state.hpp).
namespace orrery::nic {

inline CeSlot& slot_of(VceState& vce, std::uint32_t lane, std::uint64_t turn, std::uint32_t child) {
  return vce.slots[lane][turn & 1][child];
}

inline Rounding rounding_of(const VceState& vce) {
  return static_cast<Rounding>(vce.modes.load(std::memory_order_relaxed) & kCeRounding);
}

// Whether the contribution of that tag is there.
inline bool is_there(const CeSlot& slot, std::uint64_t tag) {
  // Acquire: each tag was stored after its word, the first one after all others.
  return slot.pair[0].tag.load(std::memory_order_acquire) == tag &&
         slot.pair[1].tag.load(std::memory_order_acquire) == tag &&
         slot.pair[2].tag.load(std::memory_order_acquire) == tag &&
         slot.pair[3].tag.load(std::memory_order_acquire) == tag;
}

// The same, and what it is.
inline bool read_slot(const CeSlot& slot, std::uint64_t tag, CeValue* value) {
  if (!is_there(slot, tag)) return false;
  value->operand[0] = slot.pair[0].word.load(std::memory_order_relaxed);
  value->operand[1] = slot.pair[1].word.load(std::memory_order_relaxed);
  value->reduction = slot.pair[2].word.load(std::memory_order_relaxed);
  set_ce_meta(*value, slot.pair[3].word.load(std::memory_order_relaxed));
  return true;
}

// A contribution by the one process that may write the slot: no read-modify-write. The words in their order.
inline void publish_alone(CeSlot& slot, std::uint64_t tag, std::uint64_t first, std::uint64_t second,
                          std::uint64_t reduction, std::uint64_t meta) {
  // Four stores for eight: a waiter's read takes the line away between two of them, and it has to come back
  // for the rest.
  if (g_double_word_stores) [[likely]] {
    double_word_store(&slot.pair[3], {tag, meta});
    double_word_store(&slot.pair[2], {tag, reduction});
    double_word_store(&slot.pair[1], {tag, second});
    double_word_store(&slot.pair[0], {tag, first});
    return;
  }
  slot.pair[3].word.store(meta, std::memory_order_relaxed);
  slot.pair[2].word.store(reduction, std::memory_order_relaxed);
  slot.pair[1].word.store(second, std::memory_order_relaxed);
  slot.pair[0].word.store(first, std::memory_order_relaxed);
  // Release: a tag tells of its word, the first tag of everything.
  slot.pair[3].tag.store(tag, std::memory_order_release);
  slot.pair[2].tag.store(tag, std::memory_order_release);
  slot.pair[1].tag.store(tag, std::memory_order_release);
  slot.pair[0].tag.store(tag, std::memory_order_release);
}
inline void publish_alone(CeSlot& slot, std::uint64_t tag, const CeValue& value) {
  publish_alone(slot, tag, value.operand[0], value.operand[1], value.reduction, ce_meta(value));
}

}  // namespace orrery::nic
