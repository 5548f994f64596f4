// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/events/event_record.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

// Queues of records: a completion queue whose slots name records of 128 bytes beside it. Any thread of any
// process produces, the owner's own threads too, all through the same ring, so that all consumers see one
// order; any thread of the owner consumes.
//
//   place:     free(serial) -> claimed(serial, process) -> free(serial + 1)
//   producer:  claims a free place by one 16-byte swap, writes the record, publishes the place's number in a
//              slot of the completion queue
//   consumer:  takes the slot, copies the record, frees the place
//
// A producer that dies before it has published leaves a place that no slot names: nothing waits for it, and
// the owner frees it when it learns of the death (repair()). One that dies after it has published leaves
// nothing. A producer that is stopped keeps its place, and no more.
namespace orrery::nic {

// A queue as a producer sees it. A value.
struct RecordQueueView {
  QueueView queue;
  RecordRing* ring = nullptr;
  RecordPlace* places = nullptr;
  std::uint64_t capacity = 0;
};

// Looks a queue up in a process's segment, and checks what it finds; nullopt when there is none.
std::optional<RecordQueueView> open_record_queue(const NicView& nic, std::uint32_t index);

// The producer: a process by slot and generation.
constexpr std::uint64_t claimer_word(std::uint16_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 16 | slot;
}

// Adds a record. Everything that the caller stored before is visible to its consumer. `keep_free`: fails
// already when no more than that many events would fit. ok; overrun: the queue is full, the event is lost
// and counted; corrupt: its words make no sense. Lock-free; any thread of any process.
Errc push_record(const RecordQueueView& queue, const EventRecord& record, std::uint64_t claimer,
                 std::uint64_t keep_free = 0);

// The owner's side. Any thread. Waits::wait_any() waits for ring(), alone or among others.
// Usage: push_record(q.view(), record, self);  EventRecord r;  bool gap;  q.take(&r, &gap);
class RecordQueue {
 public:
  // What the owner's NIC made: a completion queue that nothing else uses, and zeroed or formerly used places.
  RecordQueue(CompletionQueue& ring, RecordQueueView view, std::uint64_t depth, std::uint64_t first_serial);
  RecordQueue(const RecordQueue&) = delete;
  RecordQueue& operator=(const RecordQueue&) = delete;

  // The oldest event: ok or not_done. `gap`: events were lost between the one that was taken before and this
  // one. Does not make the NIC progress.
  Errc take(EventRecord* record, bool* gap);
  // Events lost after the newest that was taken; they are told with the next event.
  std::uint64_t lost() const;
  // Frees the places that dead processes claimed and did not publish. Returns how many.
  std::uint32_t repair(const std::function<bool(std::uint16_t slot, std::uint32_t generation)>& alive);
  // Whether a producer may still write into a place: then the places must not be used for anything else.
  bool has_claims();

  CompletionQueue& ring() { return ring_; }
  const RecordQueueView& view() const { return view_; }
  std::uint64_t next_serial();  // no place has had it

 private:
  void free(RecordPlace& place);

  CompletionQueue& ring_;
  const RecordQueueView view_;
  Lock<LockRank::record_queue> mu_;  // consumers, and repair()
  std::uint64_t lost_seen_ = 0;      // guarded by mu_
};

// All record queues of a NIC. Any thread.
class RecordQueues {
 public:
  // What it needs of its NIC. `place` and `unplace`: room in the arena that nothing but records ever uses.
  struct Hooks {
    std::function<Result<CompletionQueue*>(std::uint32_t depth)> create;
    std::function<Status(CompletionQueue*)> destroy;
    std::function<std::uint64_t(std::uint64_t bytes)> place;
    std::function<void(std::uint64_t offset, std::uint64_t bytes)> unplace;
  };
  RecordQueues(NicView view, Hooks hooks) : view_(view), hooks_(std::move(hooks)) {}
  RecordQueues(const RecordQueues&) = delete;
  RecordQueues& operator=(const RecordQueues&) = delete;

  // A queue that holds `depth` events. Errors: invalid_param (0, or over kMaxRecordDepth), no_resource,
  // no_memory.
  static constexpr std::uint32_t kMaxRecordDepth = 1u << 20;
  Result<RecordQueue*> create(std::uint32_t depth);
  // Producers find it no more. REQUIRES: no thread of the owner uses it. Errors: no_resource (something names
  // its ring).
  Status destroy(RecordQueue* queue);
  // Places that dead processes hold are free again.
  void repair(const std::function<bool(std::uint16_t slot, std::uint32_t generation)>& alive);

 private:
  const NicView view_;
  const Hooks hooks_;
  Lock<LockRank::record_queues> mu_;
  std::vector<std::unique_ptr<RecordQueue>> queues_;  // guarded by mu_
  std::uint64_t next_serial_ = 1;                     // of new places; guarded by mu_
};

}  // namespace orrery::nic
