// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/queues.hpp"

#include "emu/base/bury.hpp"
#include "emu/base/check.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

Result<CompletionQueue*> EventQueues::create(std::uint32_t depth, std::uint32_t mode) {
  if (depth == 0 || depth > kMaxQueueDepth) return Errc::invalid_param;
  const std::uint64_t capacity = std::bit_ceil(std::uint64_t{depth});
  const std::uint64_t offset = arena_.take(capacity * sizeof(CqSlot), Arena::Use::ring);
  if (offset == 0) return Errc::no_memory;
  const std::lock_guard lock(mu_);
  const auto free = std::find(queues_.begin(), queues_.end(), nullptr);
  if (free == queues_.end()) {
    arena_.give_back(offset, capacity * sizeof(CqSlot), Arena::Use::ring);
    return Errc::no_resource;
  }
  const auto index = static_cast<std::uint32_t>(free - queues_.begin());
  CqState& state = view_.queue(index);
  // Positions go on from where any queue stopped whose ring this may have been: a producer that was stalled
  // there since finds no word that it expects.
  const std::uint64_t start = (next_position_ + capacity - 1) / capacity * capacity;
  auto* slots = view_.arena<CqSlot>(offset, capacity);
  ORRERY_CHECK(slots != nullptr, "ring at {} of {} slots", offset, capacity);
  for (std::uint64_t i = 0; i < capacity; ++i) {
    slots[i].data.store(0, std::memory_order_relaxed);
    slots[i].control.store(slot_word::free(start + i), std::memory_order_relaxed);
  }
  state.capacity.store(capacity, std::memory_order_relaxed);
  state.mode.store(mode, std::memory_order_relaxed);
  state.tail_hint.store(start, std::memory_order_relaxed);
  state.head.store(start, std::memory_order_relaxed);
  state.overrun.store(0, std::memory_order_relaxed);
  // Release: a process that finds the ring finds it ready.
  state.ring_offset.store(offset, std::memory_order_release);
  *free = std::make_unique<CompletionQueue>(index, QueueView{&state, slots, capacity, &view_.service().bell},
                                            depth);
  return free->get();
}

Status EventQueues::destroy(CompletionQueue* queue, const std::function<bool(std::uint32_t index)>& let_go) {
  const std::lock_guard lock(mu_);
  // Acquire: what an operation that released its reference did before.
  if (queue->references.load(std::memory_order_acquire) != 0) return Errc::no_resource;
  if (!let_go(queue->index())) return {};
  CqState& state = *queue->view().state;
  const std::uint64_t offset = state.ring_offset.exchange(0, std::memory_order_relaxed);
  // Whatever tail_hint says, no producer can have filled more than one lap beyond what we consumed.
  next_position_ =
      std::max(next_position_, state.head.load(std::memory_order_relaxed) + 2 * queue->view().capacity);
  const std::uint64_t bytes = queue->view().capacity * sizeof(CqSlot);
  bury(std::move(queues_[queue->index()]));  // a thread of the program may be looking at it
  arena_.give_back(offset, bytes, Arena::Use::ring);
  return {};
}

std::uint32_t EventQueues::count() {
  const std::lock_guard lock(mu_);
  const auto free = std::count(queues_.begin(), queues_.end(), nullptr);
  return kMaxQueues - static_cast<std::uint32_t>(free);
}

}  // namespace orrery::nic
