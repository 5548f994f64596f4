// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/double_word.hpp"
#include "emu/base/prefetch.hpp"
#include "emu/base/status.hpp"
#include "emu/nic/state/nic_state.hpp"
#include "emu/nic/state/request.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

// Completion queues. The shared ring takes events from any number of producers in any process; its owner
// consumes. Protocol, with `position` counting slots since the queue was made and never wrapping:
//
//   free(p)  = {p, not ready} + 0  ready(p) = {p, ready, kind, status} + data
//   producer: finds the first p whose slot holds free(p) and swaps in ready(p) and its data with ONE 16-byte
//             compare-and-swap. There is no claimed-but-unpublished state, so a producer that dies or is
//             stopped anywhere leaves the queue intact: nothing to repair, no process to wait for.
//   consumer: reads ready(head), then stores free(head + capacity).
//   The 0 saves the producer a look at the slot; nothing depends on it.
//
// `tail_hint` is where producers start looking. It may be stale, never ahead of the true tail.
namespace orrery::nic {

enum QueueMode : std::uint32_t {
  kUnmanaged = 1,  // a sink: overwritten silently, never polled, never makes a sender fail
};

// A queue as a producer sees it. A value.
struct QueueView {
  CqState* state = nullptr;
  CqSlot* slots = nullptr;
  std::uint64_t capacity = 0;
  FutexWord* bell = nullptr;  // of the queue's process
};

// Looks a queue up in a segment and checks what it finds there; nullopt when there is no such queue.
std::optional<QueueView> open_queue(const NicView& nic, std::uint32_t index);

// Adds an event. ok, or overrun when the ring is full (the queue's overrun word counts it and the event is
// lost), or corrupt when the ring's words make no sense. Lock-free; any thread of any process. Everything the
// caller stored before is visible to the thread that takes the event. Wakes a blocked consumer.
Errc push_event(const QueueView& queue, const Event& event);

// Fetches, for writing, the slot where the next event probably goes. A hint, for a producer about to push.
inline void prefetch_event_slot(const QueueView& queue) {
  const std::uint64_t position = queue.state->tail_hint.load(std::memory_order_relaxed);
  prefetch_to_write(&queue.slots[position & (queue.capacity - 1)]);
}

// A finished operation, as its initiator collects it.
struct Finished {
  void* context = nullptr;
  Errc status = Errc::ok;
};

// The owner's side of one queue: the shared ring, and a private ring for events that its own process raises
// while it posts, which needs no atomic read-modify-write at all.
//
// Threads: one at a time for everything but test() and the blocking waits' sleep; push_event from anywhere.
// Invariants: (1) transactions live from open_post() to completed(); (2) an event of kind `post` names
// a live transaction; (3) head counts consumed slots of the shared ring.
// Usage: Event e;  while (queue.take(&e) == Errc::not_done) {}
class CompletionQueue {
 public:
  CompletionQueue(std::uint32_t index, QueueView view, std::uint32_t depth);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // Takes the next event of either ring: ok; not_done when both are empty; overrun when both are
  // empty and events were lost, once for each that was (`event` says kind overrun). Does not make the NIC
  // progress.
  Errc take(Event* event);

  // Whether take() would return something. Any thread; consumes nothing.
  Errc test() const;

  // Whether nothing waits in the shared ring.
  bool shared_is_empty() const;

  // Makes this a source queue: one whose owner's posts raise events here. Endpoints call it when they are
  // created; until then no room for transactions is spent. REQUIRES: called before open_post.
  void become_source();

  // Lets fewer operations be open at a time than `depth`. REQUIRES: called before become_source.
  void limit_transactions(std::uint32_t limit) { limit_ = limit; }

  // A name for an operation that will raise an event here; kNone when as many are open as may be.
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t open_post(void* context);
  // The operation never started: gives its name back.
  void abandon_transaction(std::uint32_t transaction);
  // What the operation is called by the caller, from its event; its last event frees the name.
  Result<Finished> completed(std::uint32_t transaction, Errc status);
  // The same for callers that know the status: false when no such operation is open.
  bool collect(std::uint32_t transaction, void** context);

  // Raises an event from the thread that owns the queue, right now.
  void raise_inline(const Event& event);

  // Whether its owner's posts raise events here.
  bool is_source() const { return inline_mask_ != 0; }
  // Others may raise events here too, from now on.
  void become_destination() { destination_.store(true, std::memory_order_relaxed); }
  bool is_destination() const { return destination_.load(std::memory_order_relaxed); }
  std::uint32_t index() const { return index_; }
  std::uint32_t depth() const { return depth_; }  // slots asked for
  const QueueView& view() const { return view_; }
  std::uint32_t posts_open() const { return open_; }

  // Endpoints, channels and collective engines that name this queue, and operations under way whose events
  // come here, which need not be its endpoint's queue any more; it may only be destroyed at zero.
  // Registrations that name it are not counted: they go on without it.
  std::atomic<std::uint32_t> references{0};
  // Expected events per transaction: operations that raise two (local and global) use two.
  void expect_events(std::uint32_t transaction, std::uint8_t count) { records_[transaction].events = count; }

 private:
  struct Record {
    void* context = nullptr;
    std::uint32_t next_free = kNone;
    std::uint8_t events = 0;  // still to be collected; 0 = free
  };

  const std::uint32_t index_;
  const std::uint32_t depth_;
  std::uint32_t limit_ = depth_;  // transactions
  const QueueView view_;
  std::uint64_t head_ = 0;  // shadow of view_.state->head

  // Private ring: single producer and consumer, the same thread; indices are atomic only for test().
  // Two whole words an event: what is written as words and read as words is forwarded from store to load.
  struct InlineEvent {
    std::uint64_t word;  // as slot_word::ready(0, event)
    std::uint64_t data;
  };
  std::unique_ptr<InlineEvent[]> inline_events_;
  std::uint64_t inline_mask_ = 0;
  std::atomic<std::uint64_t> inline_head_{0};
  std::atomic<std::uint64_t> inline_tail_{0};

  std::atomic<bool> destination_{false};
  std::vector<Record> records_;
  std::uint32_t free_ = kNone;
  std::uint32_t fresh_ = 0;  // records_[fresh_..] were never used
  std::uint32_t open_ = 0;
};

namespace slot_word {
constexpr std::uint64_t free(std::uint64_t position) { return position << 16; }
constexpr std::uint64_t ready(std::uint64_t position, const Event& e) {
  return position << 16 | static_cast<std::uint64_t>(e.status) << 8 |
         static_cast<std::uint64_t>(e.kind) << 1 | 1;
}
constexpr bool is_ready(std::uint64_t word) { return (word & 1) != 0; }
constexpr std::uint64_t position(std::uint64_t word) { return word >> 16; }
// Kind and status in one piece: a load of both would wait until two stores of a byte, and all
// stores before them, a put's bytes among them, had reached the cache.
constexpr Event event(std::uint64_t word, std::uint64_t data) {
  static_assert(offsetof(Event, kind) == 0 && offsetof(Event, status) == 1 && offsetof(Event, data) == 8 &&
                std::endian::native == std::endian::little);
  return std::bit_cast<Event>(std::array<std::uint64_t, 2>{(word & 0xff00) | (word >> 1 & 0x7f), data});
}
}  // namespace slot_word

inline bool CompletionQueue::shared_is_empty() const {
  return view_.slots[head_ & (view_.capacity - 1)].control.load(std::memory_order_acquire) ==
             slot_word::free(head_) &&
         view_.state->overrun.load(std::memory_order_relaxed) == 0;
}

[[gnu::always_inline]] inline Errc CompletionQueue::take(Event* event) {
  const std::uint64_t inline_head = inline_head_.load(std::memory_order_relaxed);
  if (inline_head != inline_tail_.load(std::memory_order_relaxed)) {
    const InlineEvent& raised = inline_events_[inline_head & inline_mask_];
    *event = slot_word::event(raised.word, raised.data);
    inline_head_.store(inline_head + 1, std::memory_order_relaxed);
    return Errc::ok;
  }
  CqSlot& slot = view_.slots[head_ & (view_.capacity - 1)];
  // Acquire: pairs with the producer's swap; what it stored before the event is visible after this.
  const std::uint64_t word = slot.control.load(std::memory_order_acquire);
  if (word == slot_word::free(head_)) [[likely]] {
    if (view_.state->overrun.load(std::memory_order_relaxed) == 0) [[likely]]
      return Errc::not_done;
    // Only this thread takes off it, so it cannot fall below zero.
    view_.state->overrun.fetch_sub(1, std::memory_order_relaxed);
    *event = {EventKind::overrun, Errc::overrun, 0};
    return Errc::overrun;
  }
  *event = slot_word::event(word, slot.data.load(std::memory_order_relaxed));
  slot.data.store(0, std::memory_order_relaxed);
  // Release: our use of `data` happens before a producer reuses the slot.
  slot.control.store(slot_word::free(head_ + view_.capacity), std::memory_order_release);
  ++head_;
  view_.state->head.store(head_, std::memory_order_relaxed);
  return Errc::ok;
}

[[gnu::always_inline]] inline void CompletionQueue::raise_inline(const Event& event) {
  const std::uint64_t tail = inline_tail_.load(std::memory_order_relaxed);
  inline_events_[tail & inline_mask_] = {slot_word::ready(0, event), event.data};
  // Release: a thread in test() that sees the count may not look at the event, but the count must not lie.
  inline_tail_.store(tail + 1, std::memory_order_release);
}

[[gnu::always_inline]] inline std::uint32_t CompletionQueue::open_post(void* context) {
  std::uint32_t index = free_;
  if (index != kNone) {
    free_ = records_[index].next_free;
  } else {
    if (fresh_ == limit_) return kNone;
    index = fresh_++;
  }
  records_[index] = {context, kNone, 1};
  ++open_;
  return index;
}

inline void CompletionQueue::abandon_transaction(std::uint32_t transaction) {
  records_[transaction].events = 0;
  records_[transaction].next_free = free_;
  free_ = transaction;
  --open_;
}

[[gnu::always_inline]] inline bool CompletionQueue::collect(std::uint32_t transaction, void** context) {
  if (transaction >= fresh_) [[unlikely]]
    return false;
  Record& record = records_[transaction];
  if (record.events == 0) [[unlikely]]
    return false;
  *context = record.context;
  if (--record.events == 0) {
    record.next_free = free_;
    free_ = transaction;
    --open_;
  }
  return true;
}

inline Result<Finished> CompletionQueue::completed(std::uint32_t transaction, Errc status) {
  Finished finished{nullptr, status};
  if (!collect(transaction, &finished.context)) return Errc::no_match;
  return finished;
}

}  // namespace orrery::nic
