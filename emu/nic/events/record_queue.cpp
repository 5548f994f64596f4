// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/record_queue.hpp"

#include "emu/base/double_word.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

namespace {

constexpr std::uint64_t free_word(std::uint64_t serial) { return serial << 1; }
constexpr std::uint64_t claimed_word(std::uint64_t serial) { return serial << 1 | 1; }
constexpr bool is_claimed(std::uint64_t word) { return (word & 1) != 0; }
constexpr std::uint64_t serial_of(std::uint64_t word) { return word >> 1; }

// What a slot says: the place and the low half of its serial, so that a slot that makes no sense is told.
constexpr std::uint64_t slot_data(std::uint64_t place, std::uint64_t serial) {
  return (serial & 0xffff'ffff) << 32 | place;
}
// The place that a slot names; null: none that was claimed for it.
RecordPlace* named_place(const RecordQueueView& view, std::uint64_t data) {
  const std::uint64_t index = data & 0xffff'ffff;
  if (index >= view.capacity) return nullptr;
  RecordPlace& place = view.places[index];
  const std::uint64_t word = place.control.load(std::memory_order_relaxed);
  return is_claimed(word) && (serial_of(word) & 0xffff'ffff) == data >> 32 ? &place : nullptr;
}

Errc lose(const RecordQueueView& view) {
  view.ring->lost.fetch_add(1, std::memory_order_relaxed);
  return Errc::overrun;
}

}  // namespace

std::optional<RecordQueueView> open_record_queue(const NicView& nic, std::uint32_t index) {
  const std::optional<QueueView> queue = open_queue(nic, index);
  if (!queue) return std::nullopt;
  RecordRing& ring = records_of(nic).rings[index];
  // Acquire: pairs with the owner's publication of the places.
  const std::uint64_t offset = ring.offset.load(std::memory_order_acquire);
  const std::uint64_t capacity = ring.capacity.load(std::memory_order_relaxed);
  if (offset == 0 || !std::has_single_bit(capacity) || capacity > UINT32_MAX) return std::nullopt;
  auto* const places = nic.arena<RecordPlace>(offset, capacity);
  if (places == nullptr) return std::nullopt;
  return RecordQueueView{*queue, &ring, places, capacity};
}

Errc push_record(const RecordQueueView& view, const EventRecord& record, std::uint64_t claimer,
                 std::uint64_t keep_free) {
  // Behind what is true at most: the ring's own capacity is the last word.
  const std::uint64_t tail = view.queue.state->tail_hint.load(std::memory_order_relaxed);
  const std::uint64_t head = view.queue.state->head.load(std::memory_order_relaxed);
  const std::uint64_t depth = view.ring->depth.load(std::memory_order_relaxed);
  if (tail > head && tail - head + keep_free >= depth) return lose(view);
  // Places are freed in about the order in which they are claimed: the first look finds one.
  const std::uint64_t hint = view.ring->hint.load(std::memory_order_relaxed);
  for (std::uint64_t i = 0; i < view.capacity; ++i) {
    const std::uint64_t index = (hint + i) & (view.capacity - 1);
    RecordPlace& place = view.places[index];
    // Acquire: pairs with the consumer that freed it; its reading is over.
    const std::uint64_t word = place.control.load(std::memory_order_acquire);
    if (is_claimed(word)) continue;
    const std::uint64_t serial = serial_of(word);
    if (!double_word_cas(&place.control, {word, 0}, {claimed_word(serial), claimer})) continue;
    view.ring->hint.store(index + 1, std::memory_order_relaxed);
    place.record = record;
    place.lost_before = view.ring->lost.load(std::memory_order_relaxed);
    const Errc pushed = push_event(view.queue, {EventKind::record, record.status, slot_data(index, serial)});
    if (pushed == Errc::ok) return Errc::ok;
    place.claimer.store(0, std::memory_order_relaxed);
    place.control.store(free_word(serial + 1), std::memory_order_release);
    return pushed == Errc::overrun ? lose(view) : pushed;
  }
  return lose(view);
}

RecordQueue::RecordQueue(CompletionQueue& ring, RecordQueueView view, std::uint64_t depth,
                         std::uint64_t first_serial)
    : ring_(ring), view_(view) {
  for (std::uint64_t i = 0; i < view_.capacity; ++i) {
    view_.places[i].claimer.store(0, std::memory_order_relaxed);
    view_.places[i].control.store(free_word(first_serial), std::memory_order_relaxed);
  }
  view_.ring->depth.store(depth, std::memory_order_relaxed);
  view_.ring->hint.store(0, std::memory_order_relaxed);
  view_.ring->lost.store(0, std::memory_order_relaxed);
}

// REQUIRES: mu_ is held; no slot names the place.
void RecordQueue::free(RecordPlace& place) {
  const std::uint64_t serial = serial_of(place.control.load(std::memory_order_relaxed));
  place.claimer.store(0, std::memory_order_relaxed);
  // Release: our reading of the record happens before a producer writes the next one.
  place.control.store(free_word(serial + 1), std::memory_order_release);
}

Errc RecordQueue::take(EventRecord* record, bool* gap) {
  if (ring_.test() == Errc::not_done) return Errc::not_done;
  const std::lock_guard lock(mu_);
  Event event;
  for (;;) {
    const Errc found = ring_.take(&event);
    if (found == Errc::not_done) return found;
    if (found != Errc::ok) continue;  // a slot that was not to be had: lost() counts it
    RecordPlace* const place = event.kind == EventKind::record ? named_place(view_, event.data) : nullptr;
    if (place == nullptr) continue;
    *record = place->record;
    *gap = place->lost_before != lost_seen_;
    lost_seen_ = place->lost_before;
    free(*place);
    return Errc::ok;
  }
}

std::uint64_t RecordQueue::lost() const {
  return view_.ring->lost.load(std::memory_order_relaxed) - lost_seen_;
}

std::uint32_t RecordQueue::repair(
    const std::function<bool(std::uint16_t slot, std::uint32_t generation)>& alive) {
  const std::lock_guard lock(mu_);
  std::uint32_t repaired = 0;
  for (std::uint64_t i = 0; i < view_.capacity; ++i) {
    RecordPlace& place = view_.places[i];
    const std::uint64_t word = place.control.load(std::memory_order_acquire);
    const std::uint64_t claimer = place.claimer.load(std::memory_order_relaxed);
    if (!is_claimed(word) ||
        alive(static_cast<std::uint16_t>(claimer), static_cast<std::uint32_t>(claimer >> 16)))
      continue;
    // No consumer is taking anything now, and a dead producer publishes nothing more.
    bool published = false;
    for (std::uint64_t s = 0; s < view_.queue.capacity && !published; ++s) {
      const CqSlot& slot = view_.queue.slots[s];
      published = slot_word::is_ready(slot.control.load(std::memory_order_acquire)) &&
                  slot.data.load(std::memory_order_relaxed) == slot_data(i, serial_of(word));
    }
    if (published) continue;
    free(place);
    ++repaired;
  }
  return repaired;
}

bool RecordQueue::has_claims() {
  const std::lock_guard lock(mu_);
  for (std::uint64_t i = 0; i < view_.capacity; ++i) {
    if (is_claimed(view_.places[i].control.load(std::memory_order_acquire))) return true;
  }
  return false;
}

std::uint64_t RecordQueue::next_serial() {
  const std::lock_guard lock(mu_);
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < view_.capacity; ++i)
    last = std::max(last, serial_of(view_.places[i].control.load(std::memory_order_relaxed)));
  return last + 2;
}

Result<RecordQueue*> RecordQueues::create(std::uint32_t depth) {
  if (depth == 0 || depth > kMaxRecordDepth) return Errc::invalid_param;
  // As many again as the ring holds: for producers that are between claim and publication.
  const std::uint64_t capacity = 2 * std::bit_ceil(std::uint64_t{std::max(depth, 4u)});
  const std::uint64_t bytes = capacity * sizeof(RecordPlace);
  const std::lock_guard lock(mu_);
  const std::uint64_t offset = hooks_.place(bytes);
  auto* const places = offset == 0 ? nullptr : view_.arena<RecordPlace>(offset, capacity);
  if (places == nullptr) return Errc::no_memory;
  const Result<CompletionQueue*> made = hooks_.create(depth);
  if (!made.ok()) {
    hooks_.unplace(offset, bytes);
    return made.code();
  }
  CompletionQueue& queue = *made.value();
  queue.become_destination();
  RecordRing& ring = records_of(view_).rings[queue.index()];
  queues_.push_back(std::make_unique<RecordQueue>(
      queue, RecordQueueView{queue.view(), &ring, places, capacity}, depth, next_serial_));
  ring.capacity.store(capacity, std::memory_order_relaxed);
  // Release: a process that finds the places finds them ready.
  ring.offset.store(offset, std::memory_order_release);
  return queues_.back().get();
}

Status RecordQueues::destroy(RecordQueue* queue) {
  const std::lock_guard lock(mu_);
  RecordRing& ring = *queue->view().ring;
  const std::uint64_t offset = ring.offset.exchange(0, std::memory_order_seq_cst);
  // Events that were not taken give their places back.
  EventRecord dropped;
  bool gap = false;
  while (queue->take(&dropped, &gap) == Errc::ok) {
  }
  const Status destroyed = hooks_.destroy(&queue->ring());
  if (!destroyed.ok()) {
    ring.offset.store(offset, std::memory_order_release);
    return destroyed;
  }
  // A producer that found the places before, and has not claimed one yet, finds no serial that it expects.
  next_serial_ = std::max(next_serial_, queue->next_serial());
  // One that holds a place may write into it yet: its room stays as it is, for ever.
  if (!queue->has_claims()) hooks_.unplace(offset, queue->view().capacity * sizeof(RecordPlace));
  std::erase_if(queues_, [&](const auto& q) { return q.get() == queue; });
  return {};
}

void RecordQueues::repair(const std::function<bool(std::uint16_t slot, std::uint32_t generation)>& alive) {
  const std::lock_guard lock(mu_);
  for (const auto& queue : queues_) queue->repair(alive);
}

}  // namespace orrery::nic
