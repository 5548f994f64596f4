// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

// Receive queues: up to 16,384 buffers of one size, in one slab of the owner's registered memory. Senders in
// any process take the buffer that has been free for longest, in constant time; the owner gives buffers back
// in any order. All of it lies in the arena of the owner's segment, at an offset that senders are told.
//
//   buffer:   free(serial) -> claimed(serial, process) -> filled(serial, process) -> taken(serial)
//             -> free(serial + 1)
//   ring:     the free buffers, {buffer, serial} in the order in which they became free, from head to tail
//
//
// A sender claims the buffer that the ring's head names, by one 16-byte swap of the buffer's words; then it
// moves the head on. An entry whose buffer is not free with that serial is stale, and a sender that meets it
// moves the head past it: so a sender that dies between the two leaves nothing to do. One that dies while it
// fills a buffer leaves its name there: the owner makes it free again. One that dies after it has filled a
// buffer, before it has told the owner, leaves its name too: the owner tells itself, once more perhaps, and
// take() knows by the serial which of two tells of nothing.
namespace orrery::nic {

inline constexpr std::uint32_t kMaxReceiveBuffers = 16'384;

enum class BufferState : std::uint8_t { free = 0, claimed = 1, filled = 2, taken = 3 };

// The two words change together where a process other than the owner may be at them.
struct alignas(16) ReceiveSlot {
  std::atomic<std::uint64_t> control;  // serial << 2 | BufferState
  std::atomic<std::uint64_t> claimer;  // generation << 16 | process slot, while claimed or filled
  std::atomic<std::uint64_t> bytes;    // that the sender stored
  std::atomic<std::uint64_t> user;     // what the sender says beside them
};
static_assert(sizeof(ReceiveSlot) == 32);

struct ReceiveQueueState {
  std::atomic<std::uint64_t> nonce;  // of the queue that lies here; 0: none. The owner writes
  std::uint64_t buffers;             // count; constant with those that follow
  std::uint64_t buffer_bytes;
  std::uint64_t slab_address;                            // in the owner's memory
  std::uint64_t ring_entries;                            // a power of two, at least twice the buffers
  alignas(kCacheLine) std::atomic<std::uint64_t> head;   // senders
  alignas(kCacheLine) std::atomic<std::uint64_t> tail;   // owner
  alignas(kCacheLine) std::atomic<std::uint64_t> first;  // of the slots, and of the ring behind them
};
static_assert(sizeof(ReceiveQueueState) == 256);

// Where a queue is: senders get it from its owner.
struct ReceiveQueueName {
  std::uint64_t offset = 0;  // of its state in the arena
  std::uint64_t nonce = 0;   // never 0 in a valid name
};

// A queue as senders and the owner see it. A value.
struct ReceiveQueueView {
  ReceiveQueueState* state = nullptr;
  ReceiveSlot* slots = nullptr;
  std::atomic<std::uint64_t>* ring = nullptr;
  std::uint32_t buffers = 0;
  std::uint64_t buffer_bytes = 0;
  std::uint64_t slab_address = 0;
  std::uint64_t ring_entries = 0;
};

// Looks a queue up in a process's segment, and checks what it finds. Errors: invalid_handle.
Result<ReceiveQueueView> open_receive_queue(const NicView& nic, const ReceiveQueueName& name);

// One claim: which buffer, and in which of its lives.
struct ReceiveBufferName {
  std::uint32_t index = 0;
  std::uint64_t serial = 0;
  friend constexpr bool operator==(const ReceiveBufferName&, const ReceiveBufferName&) = default;
};

// Takes a free buffer for this process (`claimer`: generation << 16 | slot). The caller then stores up to
// buffer_bytes at address_of(), and publishes or abandons it. Errors: no_resource (none is free: receive not
// ready), corrupt (the ring's words make no sense). Lock-free; any thread of any process.
Result<ReceiveBufferName> claim_buffer(const ReceiveQueueView& queue, std::uint64_t claimer);
inline std::uint64_t address_of(const ReceiveQueueView& queue, const ReceiveBufferName& buffer) {
  return queue.slab_address + buffer.index * queue.buffer_bytes;
}
// The buffer is filled: what the caller stored before is visible to the owner that takes it. The caller then
// tells the owner of its name, by an event. Errors: invalid_handle (it is not this claim's any more).
Errc publish_buffer(const ReceiveQueueView& queue, const ReceiveBufferName& buffer, std::uint64_t bytes,
                    std::uint64_t user);
// Buffers that are free: how many sends would be taken. Any thread of any process.
std::uint64_t free_buffers(const ReceiveQueueView& queue);

// What came.
struct ReceivedBuffer {
  std::uint64_t address = 0;  // in the owner's memory
  std::uint64_t bytes = 0;
  std::uint64_t user = 0;
  std::uint64_t claimer = 0;
};

// The owner's side. Any thread.
// Usage: ReceiveQueue queue(view, offset, 16'384, slab, 8192, nonce);  auto got = queue.take(name_in_event);
//        ... queue.give_back(name_in_event);
class ReceiveQueue {
 public:
  // What a queue takes up in the arena (Arena::take). REQUIRES: 0 < buffers <= kMaxReceiveBuffers.
  static std::uint64_t bytes_for(std::uint32_t buffers);
  // All buffers are free. `nonce`: not 0, of no queue that lay at this offset before. REQUIRES: the block is
  // of bytes_for(buffers) bytes and was used by nothing but receive queues.
  ReceiveQueue(NicView view, std::uint64_t offset, std::uint32_t buffers, std::uint64_t slab_address,
               std::uint64_t buffer_bytes, std::uint64_t nonce);
  // Its name is refused from now on.
  ~ReceiveQueue();
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  ReceiveQueueName name() const { return {offset_, nonce_}; }
  const ReceiveQueueView& view() const { return queue_; }

  // What an event tells of: the buffer is the caller's until it gives it back. Errors: no_match (it was taken
  // already: two events may tell of a send whose sender died; or it never was filled).
  Result<ReceivedBuffer> take(const ReceiveBufferName& buffer);
  // Free again, in any order. Errors: no_match (it is not the caller's).
  Errc give_back(const ReceiveBufferName& buffer);
  // Claims of the dead: what they were filling is free again; what they had filled is told to `filled`, once
  // more perhaps. Returns how many became free.
  std::uint32_t repair(const std::function<bool(std::uint16_t slot, std::uint32_t generation)>& alive,
                       const std::function<void(const ReceiveBufferName&)>& filled);
  // Whether a sender holds a buffer: then neither slab nor block may be used for anything else.
  bool has_claims() const;

 private:
  void make_free(std::uint32_t index, std::uint64_t serial);

  const std::uint64_t offset_;
  const std::uint64_t nonce_;
  ReceiveQueueView queue_;
  Lock<LockRank::receive_queue> mu_;
};

}  // namespace orrery::nic
