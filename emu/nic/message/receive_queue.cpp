// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/receive_queue.hpp"

#include "emu/base/check.hpp"
#include "emu/base/double_word.hpp"

#include <bit>
#include <mutex>

namespace orrery::nic {

namespace {

constexpr std::uint64_t buffer_word(std::uint64_t serial, BufferState state) {
  return serial << 2 | static_cast<std::uint64_t>(state);
}
constexpr std::uint64_t buffer_serial(std::uint64_t word) { return word >> 2; }
constexpr BufferState buffer_state(std::uint64_t word) { return static_cast<BufferState>(word & 3); }

// A ring's entry: 50 bits of serial, and which buffer.
constexpr std::uint64_t ring_entry(std::uint32_t index, std::uint64_t serial) { return serial << 14 | index; }
constexpr std::uint32_t entry_index(std::uint64_t entry) { return entry & (kMaxReceiveBuffers - 1); }
constexpr std::uint64_t entry_serial(std::uint64_t entry) { return entry >> 14; }

constexpr std::uint64_t entries_for(std::uint64_t buffers) { return 2 * std::bit_ceil(buffers); }

}  // namespace

Result<ReceiveQueueView> open_receive_queue(const NicView& nic, const ReceiveQueueName& name) {
  auto* const state = nic.arena<ReceiveQueueState>(name.offset, 1);
  // Acquire: pairs with the owner's publication.
  if (name.nonce == 0 || state == nullptr || state->nonce.load(std::memory_order_acquire) != name.nonce)
    return Errc::invalid_handle;
  const std::uint64_t buffers = state->buffers;
  const std::uint64_t entries = state->ring_entries;
  if (buffers == 0 || buffers > kMaxReceiveBuffers || entries != entries_for(buffers))
    return Errc::invalid_handle;
  const std::uint64_t slots_at = name.offset + sizeof(ReceiveQueueState);
  auto* const slots = nic.arena<ReceiveSlot>(slots_at, buffers);
  auto* const ring = nic.arena<std::atomic<std::uint64_t>>(slots_at + buffers * sizeof(ReceiveSlot), entries);
  if (slots == nullptr || ring == nullptr) return Errc::invalid_handle;
  return ReceiveQueueView{
      .state = state,
      .slots = slots,
      .ring = ring,
      .buffers = static_cast<std::uint32_t>(buffers),
      .buffer_bytes = state->buffer_bytes,
      .slab_address = state->slab_address,
      .ring_entries = entries,
  };
}

Result<ReceiveBufferName> claim_buffer(const ReceiveQueueView& queue, std::uint64_t claimer) {
  // Every step but the last follows another sender's step: more than these are words without sense.
  const std::uint64_t most = (1u << 20) + queue.ring_entries;
  std::uint64_t head = queue.state->head.load(std::memory_order_acquire);
  for (std::uint64_t step = 0; step < most; ++step) {
    // Acquire: pairs with the owner's release; the entry at `head` is there.
    if (head >= queue.state->tail.load(std::memory_order_acquire)) return Errc::no_resource;
    const std::uint64_t entry = queue.ring[head & (queue.ring_entries - 1)].load(std::memory_order_acquire);
    const std::uint32_t index = entry_index(entry);
    const std::uint64_t serial = entry_serial(entry);
    // An entry that was read after the ring went once round names another buffer, which is as free as this
    // one if its serial is right.
    const bool mine =
        index < queue.buffers &&
        double_word_cas(&queue.slots[index].control, {buffer_word(serial, BufferState::free), 0},
                        {buffer_word(serial, BufferState::claimed), claimer});
    // Ours or stale: this entry is done with. On failure `head` becomes where it is by now.
    if (queue.state->head.compare_exchange_strong(head, head + 1, std::memory_order_acq_rel)) ++head;
    if (mine) return ReceiveBufferName{index, serial};
  }
  return Errc::corrupt;
}

Errc publish_buffer(const ReceiveQueueView& queue, const ReceiveBufferName& buffer, std::uint64_t bytes,
                    std::uint64_t user) {
  if (buffer.index >= queue.buffers) return Errc::invalid_handle;
  ReceiveSlot& slot = queue.slots[buffer.index];
  std::uint64_t word = buffer_word(buffer.serial, BufferState::claimed);
  if (slot.control.load(std::memory_order_relaxed) != word) return Errc::invalid_handle;
  slot.bytes.store(bytes, std::memory_order_relaxed);
  slot.user.store(user, std::memory_order_relaxed);
  // Release: an owner that sees it filled sees what was stored in it.
  return slot.control.compare_exchange_strong(word, buffer_word(buffer.serial, BufferState::filled),
                                              std::memory_order_release)
             ? Errc::ok
             : Errc::invalid_handle;
}

std::uint64_t free_buffers(const ReceiveQueueView& queue) {
  const std::uint64_t head = queue.state->head.load(std::memory_order_acquire);
  const std::uint64_t tail = queue.state->tail.load(std::memory_order_acquire);
  return tail > head ? tail - head : 0;
}

std::uint64_t ReceiveQueue::bytes_for(std::uint32_t buffers) {
  return sizeof(ReceiveQueueState) + buffers * sizeof(ReceiveSlot) +
         entries_for(buffers) * sizeof(std::atomic<std::uint64_t>);
}

ReceiveQueue::ReceiveQueue(NicView view, std::uint64_t offset, std::uint32_t buffers,
                           std::uint64_t slab_address, std::uint64_t buffer_bytes, std::uint64_t nonce)
    : offset_(offset), nonce_(nonce) {
  ORRERY_CHECK(buffers > 0 && buffers <= kMaxReceiveBuffers, "a receive queue of {} buffers", buffers);
  auto* const state = view.arena<ReceiveQueueState>(offset, 1);
  ORRERY_CHECK(state != nullptr, "a receive queue at {}, outside the arena", offset);
  state->buffers = buffers;
  state->buffer_bytes = buffer_bytes;
  state->slab_address = slab_address;
  state->ring_entries = entries_for(buffers);
  state->head.store(0, std::memory_order_relaxed);
  state->tail.store(0, std::memory_order_relaxed);
  // Release: a sender that finds the name finds the queue; it is empty until the buffers are free.
  state->nonce.store(nonce, std::memory_order_release);
  queue_ = open_receive_queue(view, name()).value();
  // The nonce is the high part of the serials: a sender that is stalled since an earlier queue lay here finds
  // no word that it expects.
  for (std::uint32_t i = 0; i < buffers; ++i) make_free(i, (nonce & 0xffff) << 32 | 1);
}

ReceiveQueue::~ReceiveQueue() { queue_.state->nonce.store(0, std::memory_order_seq_cst); }

// REQUIRES: the buffer is ours alone; mu_ is held, or no other thread knows the queue.
void ReceiveQueue::make_free(std::uint32_t index, std::uint64_t serial) {
  ReceiveSlot& slot = queue_.slots[index];
  slot.claimer.store(0, std::memory_order_relaxed);
  // Release: our use of the buffer happens before a sender's.
  slot.control.store(buffer_word(serial, BufferState::free), std::memory_order_release);
  // A buffer has one entry at most that is not stale, and stale ones are passed before the ring is full:
  // there are twice as many entries as buffers, and the head passes an entry when its buffer is claimed.
  const std::uint64_t tail = queue_.state->tail.load(std::memory_order_relaxed);
  queue_.ring[tail & (queue_.ring_entries - 1)].store(ring_entry(index, serial), std::memory_order_release);
  queue_.state->tail.store(tail + 1, std::memory_order_release);
}

Result<ReceivedBuffer> ReceiveQueue::take(const ReceiveBufferName& buffer) {
  if (buffer.index >= queue_.buffers) return Errc::no_match;
  ReceiveSlot& slot = queue_.slots[buffer.index];
  const std::lock_guard lock(mu_);
  // Acquire: pairs with publish_buffer().
  if (slot.control.load(std::memory_order_acquire) != buffer_word(buffer.serial, BufferState::filled))
    return Errc::no_match;
  const ReceivedBuffer received{.address = address_of(queue_, buffer),
                                .bytes = slot.bytes.load(std::memory_order_relaxed),
                                .user = slot.user.load(std::memory_order_relaxed),
                                .claimer = slot.claimer.load(std::memory_order_relaxed)};
  slot.control.store(buffer_word(buffer.serial, BufferState::taken), std::memory_order_relaxed);
  // What a sender says is not believed where it leads out of the buffer.
  if (received.bytes > queue_.buffer_bytes) {
    make_free(buffer.index, buffer.serial + 1);
    return Errc::no_match;
  }
  return received;
}

Errc ReceiveQueue::give_back(const ReceiveBufferName& buffer) {
  if (buffer.index >= queue_.buffers) return Errc::no_match;
  const std::lock_guard lock(mu_);
  if (queue_.slots[buffer.index].control.load(std::memory_order_relaxed) !=
      buffer_word(buffer.serial, BufferState::taken))
    return Errc::no_match;
  make_free(buffer.index, buffer.serial + 1);
  return Errc::ok;
}

std::uint32_t ReceiveQueue::repair(
    const std::function<bool(std::uint16_t slot, std::uint32_t generation)>& alive,
    const std::function<void(const ReceiveBufferName&)>& filled) {
  std::vector<ReceiveBufferName> untold;
  std::uint32_t freed = 0;
  {
    const std::lock_guard lock(mu_);
    for (std::uint32_t i = 0; i < queue_.buffers; ++i) {
      ReceiveSlot& slot = queue_.slots[i];
      const std::uint64_t word = slot.control.load(std::memory_order_acquire);
      const BufferState state = buffer_state(word);
      if (state != BufferState::claimed && state != BufferState::filled) continue;
      const std::uint64_t claimer = slot.claimer.load(std::memory_order_relaxed);
      if (alive(static_cast<std::uint16_t>(claimer), static_cast<std::uint32_t>(claimer >> 16))) continue;
      // The dead change it no more: looked at again.
      const std::uint64_t last = slot.control.load(std::memory_order_acquire);
      if (last != word && last != buffer_word(buffer_serial(word), BufferState::filled)) continue;
      if (buffer_state(last) == BufferState::filled) {
        untold.push_back({i, buffer_serial(last)});
        continue;
      }
      make_free(i, buffer_serial(last) + 1);
      ++freed;
    }
  }
  for (const ReceiveBufferName& buffer : untold) filled(buffer);
  return freed;
}

bool ReceiveQueue::has_claims() const {
  for (std::uint32_t i = 0; i < queue_.buffers; ++i) {
    if (buffer_state(queue_.slots[i].control.load(std::memory_order_acquire)) == BufferState::claimed)
      return true;
  }
  return false;
}

}  // namespace orrery::nic
