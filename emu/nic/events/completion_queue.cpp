// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/completion_queue.hpp"

#include "emu/base/check.hpp"
#include "emu/base/timed_path.hpp"

#include <bit>
#include <climits>

namespace orrery::nic {

std::optional<QueueView> open_queue(const NicView& nic, std::uint32_t index) {
  if (index >= kMaxQueues) return std::nullopt;
  CqState& state = nic.queue(index);
  const std::uint64_t offset = state.ring_offset.load(std::memory_order_acquire);
  const std::uint64_t capacity = state.capacity.load(std::memory_order_relaxed);
  if (offset == 0 || !std::has_single_bit(capacity)) return std::nullopt;
  auto* slots = nic.arena<CqSlot>(offset, capacity);
  if (slots == nullptr) return std::nullopt;
  return QueueView{&state, slots, capacity, &nic.service().bell};
}

namespace {

// More events than producers and a consumer can exchange while one producer looks for a place.
constexpr std::uint64_t kMaxSteps = 1u << 20;

void wake(FutexWord& word) {
  word.fetch_add(1, std::memory_order_release);
  futex_wake(word, INT_MAX);
}

void wake_consumers(const QueueView& queue, std::uint32_t waiters) {
  if (waiters % kBellWaiter != 0) wake(queue.state->signal);
  if (waiters >= kBellWaiter) wake(*queue.bell);
}

Errc ring_is_full(const QueueView& queue) {
  CqState& state = *queue.state;
  if ((state.mode.load(std::memory_order_relaxed) & kUnmanaged) != 0) return Errc::ok;
  // One report per lost event, up to what the word can count.
  std::uint32_t lost = state.overrun.load(std::memory_order_relaxed);
  while (lost != UINT32_MAX &&
         !state.overrun.compare_exchange_weak(lost, lost + 1, std::memory_order_seq_cst)) {
  }
  if (const std::uint32_t waiters = state.waiters.load(std::memory_order_seq_cst))
    wake_consumers(queue, waiters);
  return Errc::overrun;
}

// Seeks a free slot for an event from position `*at` on. Empty: the event is in the slot of `*at`. Otherwise
// it is in none, and the producer's outcome is: ok (an unmanaged queue was full), overrun (another was),
// corrupt.
[[gnu::noinline]] std::optional<Errc> push_further(const QueueView& queue, const Event& event,
                                                   std::uint64_t* at) {
  CqState& state = *queue.state;
  std::uint64_t position = *at;
  std::uint64_t steps = 0;
  for (;;) {
    CqSlot& slot = queue.slots[position & (queue.capacity - 1)];
    const std::uint64_t word = slot.control.load(std::memory_order_acquire);
    const std::uint64_t found = slot_word::position(word);
    // case (1): free and ours to try
    if (word == slot_word::free(position)) [[likely]] {
      const DoubleWord expected{word, slot.data.load(std::memory_order_relaxed)};
      *at = position;
      if (double_word_cas(&slot, expected, {slot_word::ready(position, event), event.data}))
        return std::nullopt;
      continue;  // another producer took it, or wrote it: look again
    }
    // Every further step but those of one lap follows another producer's event: a producer that takes this
    // many looks at words that make no sense.
    if (++steps > kMaxSteps + queue.capacity) [[unlikely]]
      return Errc::corrupt;
    // case (2): filled in this lap, the next one may be free
    if (found == position) {
      ++position;
      continue;
    }
    // case (3): the hint is a lap or more behind: the consumer's head is a position that was reached
    if (found > position) {
      const std::uint64_t head = state.head.load(std::memory_order_relaxed);
      position = head > position ? head : position + 1;
      continue;
    }
    // case (4): still holds the previous lap's event, not consumed: full
    return ring_is_full(queue);
  }
}

}  // namespace

ORRERY_TIMED_PATH Errc push_event(const QueueView& queue, const Event& event) {
  CqState& state = *queue.state;
  std::uint64_t position = state.tail_hint.load(std::memory_order_relaxed);
  // The usual slot is free with no data in it, so it is swapped without a look: its line, which the consumer
  // polls, comes over once, for writing, and not once for the look and once more for the swap.
  CqSlot& slot = queue.slots[position & (queue.capacity - 1)];
  if (!double_word_cas(&slot, {slot_word::free(position), 0},
                       {slot_word::ready(position, event), event.data})) [[unlikely]] {
    const std::optional<Errc> lost = push_further(queue, event, &position);
    if (lost) return *lost;
  }
  // Only a hint: a producer that dies here costs its successors one more step.
  state.tail_hint.store(position + 1, std::memory_order_relaxed);
  // The swap above is a full barrier, so this load cannot pass it: either the consumer, which announces
  // itself before it looks at the ring, finds the event, or we find the consumer.
  if (const std::uint32_t waiters = state.waiters.load(std::memory_order_seq_cst)) [[unlikely]]
    wake_consumers(queue, waiters);
  return Errc::ok;
}

CompletionQueue::CompletionQueue(std::uint32_t index, QueueView view, std::uint32_t depth)
    : index_(index), depth_(depth), view_(view), head_(view.state->head.load(std::memory_order_relaxed)) {
  ORRERY_CHECK(depth > 0, "a queue of depth 0");
}

void CompletionQueue::become_source() {
  if (!records_.empty()) return;
  records_.resize(depth_);
  // Two events per transaction (local and global) and nothing else is raised inline.
  const std::uint64_t events = std::bit_ceil(std::uint64_t{depth_} * 2);
  inline_events_ = std::make_unique<InlineEvent[]>(events);
  inline_mask_ = events - 1;
}

Errc CompletionQueue::test() const {
  if (inline_head_.load(std::memory_order_relaxed) != inline_tail_.load(std::memory_order_acquire))
    return Errc::ok;
  const std::uint64_t head = view_.state->head.load(std::memory_order_relaxed);
  const std::uint64_t word = view_.slots[head & (view_.capacity - 1)].control.load(std::memory_order_acquire);
  if (slot_word::is_ready(word)) return Errc::ok;
  return view_.state->overrun.load(std::memory_order_relaxed) != 0 ? Errc::overrun : Errc::not_done;
}

}  // namespace orrery::nic
