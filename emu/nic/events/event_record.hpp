// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

// Events that do not fit into a slot of a completion queue: room for all that an API tells of a matched
// operation, or of a buffer that a message filled. The API lays down what the numbers mean.
namespace orrery::nic {

struct EventRecord {
  std::uint8_t kind = 0;
  Errc status = Errc::ok;
  std::uint8_t list = 0;       // of a match: which list the entry was in
  std::uint8_t operation = 0;  // of an atomic operation
  std::uint8_t type = 0;       // of its operands
  std::uint8_t fail_type = 0;
  std::uint16_t source = 0;       // slot of the initiator's process
  std::uint32_t index = 0;        // of the table entry that was addressed
  std::uint32_t uid = 0;          // of the initiator
  std::uint64_t initiator = 0;    // as the API names processes
  std::uint64_t start = 0;        // where the bytes are, in the owner's memory
  std::uint64_t user = 0;         // pointer of the owner's
  std::uint64_t header_data = 0;  // out of band, from the initiator
  std::uint64_t match_bits = 0;
  std::uint64_t requested = 0;  // bytes
  std::uint64_t delivered = 0;  // bytes
  std::uint64_t offset = 0;     // in the target's entry
  std::uint64_t extra[3] = {};
  friend bool operator==(const EventRecord&, const EventRecord&) = default;
};
static_assert(sizeof(EventRecord) == 104);

// A record's place. A producer claims it: one 16-byte swap changes `control` and `claimer` together. To free
// it takes two stores, `control` last, while the place is the claimer's or the owner's alone.
struct alignas(kCacheLine) RecordPlace {
  std::atomic<std::uint64_t> control;  // serial << 1 | claimed
  std::atomic<std::uint64_t> claimer;  // generation << 16 | process slot, while claimed
  std::uint64_t lost_before;           // events that the queue had lost in all when this one was written
  EventRecord record;
};
static_assert(sizeof(RecordPlace) == 128 && offsetof(RecordPlace, record) == 24);

// The records of one queue; the owner writes all but `hint` and `lost`.
struct alignas(kCacheLine) RecordRing {
  std::atomic<std::uint64_t> offset;                    // of the places in the arena; 0: the queue has none
  std::atomic<std::uint64_t> capacity;                  // places, a power of two
  std::atomic<std::uint64_t> depth;                     // events that the queue holds at most
  alignas(kCacheLine) std::atomic<std::uint64_t> hint;  // producers: where a free place probably is
  std::atomic<std::uint64_t> lost;                      // producers: events that found the queue full
};
static_assert(sizeof(RecordRing) == 128 && kMaxQueues * sizeof(RecordRing) <= kRecordArea.bytes);

struct RecordTable {
  RecordRing rings[kMaxQueues];  // by the index of their completion queue
};

inline RecordTable& records_of(const NicView& nic) { return nic.unit<RecordTable, kRecordArea>(); }

}  // namespace orrery::nic
