// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/state/arena.hpp"
#include "emu/nic/state/lock_rank.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace orrery::nic {

// The completion queues of a NIC: makes them in the segment, and ends them.
// Threads: any; a lock of its own, held over `let_go` of destroy(). Queues themselves: completion_queue.hpp.
// Invariant: positions only go on: a producer that was stalled at a ring finds no word there that it expects,
// whichever queue has the ring by then.
// Usage: auto queue = queues.create(128, 0);  queues.destroy(queue.value(), let_go);
class EventQueues {
 public:
  EventQueues(const NicView& view, Arena& arena) : view_(view), arena_(arena) {}

  // Errors: invalid_param (depth 0 or over kMaxQueueDepth), no_resource (1,024 queues), no_memory (arena used
  // up).
  Result<CompletionQueue*> create(std::uint32_t depth, std::uint32_t mode);
  // `let_go`: stops all producers that raise events by the queue's number. False: one may still raise
  // an event, so that ring and number stay as they are for ever. Errors: no_resource (an endpoint, a channel,
  // a collective engine or an operation names the queue), and then `let_go` is not called.
  Status destroy(CompletionQueue* queue, const std::function<bool(std::uint32_t index)>& let_go);
  std::uint32_t count();

 private:
  const NicView view_;
  Arena& arena_;
  Lock<LockRank::queues> mu_;
  // Guarded by mu_.
  std::array<std::unique_ptr<CompletionQueue>, kMaxQueues> queues_;
  std::uint64_t next_position_ = 0;  // of new queues
};

}  // namespace orrery::nic
