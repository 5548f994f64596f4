// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/events/counter.hpp"
#include "emu/nic/state/request.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pthread.h>

// Operations that wait for counts, in their owner's segment: each counter has a list of records by threshold.
// Any process that maps the segment may carry them out, under one robust lock that it only tries for:
//
//   adder:   counts, and sees in the counter's line that a threshold is reached; takes the lock; carries out
//            what is due; lets go; looks whether `fired` has grown meanwhile
//   adder that finds the lock taken: makes `fired` grow; the holder looks again
//
// The holder says in `current` which record it carries out, and in the record how far it is. A thread that
// inherits the lock of a dead process goes on there:
//
//   waits     a put's bytes may have been stored, or some of them: they are stored again
//   counting  `due` is what the counter's triggered part becomes: only holders of the lock change that part,
//             so storing it again changes nothing
//   counted   the record leaves its list, if it is still there, and is free
//
// So a count is made once. Bytes of a put may be stored a second time before its end is counted.
namespace orrery::nic {

inline constexpr std::uint32_t kMaxTriggers = 16'000;

enum class TriggerKind : std::uint32_t {
  own = 0,  // something that only the owner can do
  add = 1,  // adds `value` to `counter`
  set = 2,  // gives `counter` the counts `value`
  put = 3,  // stores bytes of the owner's memory in a peer's, then adds `value` to `counter`
};
enum class TriggerPhase : std::uint32_t { waits = 0, counting = 1, counted = 2 };

// Written under the lock. Links are index plus one; 0: none.
struct alignas(kCacheLine) TriggerRecord {
  std::uint64_t threshold;
  std::uint32_t next;
  TriggerKind kind;
  CounterName trigger;
  CounterName counter;  // of the owner's; not valid: none
  CounterValue value;
  std::uint64_t source, target, length;
  MemKey source_key, target_key;
  std::uint32_t target_generation;  // of the process of target_key
  std::uint16_t domain;
  std::uint16_t reserved;
  std::atomic<TriggerPhase> phase;
  CounterValue due;
};
static_assert(sizeof(TriggerRecord) == 192);

struct TriggerTable {
  alignas(kCacheLine) pthread_mutex_t lock;  // robust, of all processes
  std::atomic<std::uint32_t> ready;          // the owner has set it up
  // Written under the lock.
  alignas(kCacheLine) std::atomic<std::uint32_t> current;  // record that is carried out, plus one
  std::atomic<std::uint32_t> fresh;                        // records [fresh, kMaxTriggers) were never used
  // Records that wait << 32 | first of the free ones: both change at once.
  std::atomic<std::uint64_t> pending_and_free;
  std::atomic<std::uint32_t> counters_end;  // counters from here on never had a trigger
  std::atomic<std::uint32_t> owner_acts;    // the owner does something of its own: its order comes first
  alignas(kCacheLine) TriggerRecord records[kMaxTriggers];
};
static_assert(offsetof(TriggerTable, current) == 64 && offsetof(TriggerTable, records) == 128);
static_assert(sizeof(TriggerTable) <= kTriggerArea.bytes);

inline TriggerTable& triggers_of(const NicView& nic) { return nic.unit<TriggerTable, kTriggerArea>(); }

namespace trigger {

// Owner: once, before any other process can see the segment's counters.
void set_up(const NicView& nic);

// The lock, for the lifetime. Not recursive.
class Holder {
 public:
  enum class Wait : std::uint8_t {
    no,          // only if it is free
    a_while,     // 100 ms: a holder that is stopped has it for longer
    until_free,  // until its holder goes on, or dies
  };
  Holder(const NicView& nic, Wait wait);
  ~Holder();
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  explicit operator bool() const { return held_; }
  // Its last holder died. What it was at has been ended, or is begun again by a look at all counters.
  bool inherited() const { return inherited_; }

 private:
  const NicView nic_;
  TriggerTable& table_;
  bool held_ = false;
  bool inherited_ = false;
};

// The process that carries out.
class Carrier {
 public:
  // Stores the bytes of a put. not_done: it cannot be done from here. Else it has ended so.
  // The lock is held: neither blocks nor maps.
  virtual Errc put(const TriggerRecord& record) = 0;
  virtual bool is_owner() const { return false; }

 protected:
  ~Carrier() = default;
};

// What came of a look.
struct Looked {
  bool any = false;         // something was carried out
  bool left = false;        // something is due that only the owner can do
  std::uint32_t own = 0;    // owner: that record, plus one; the look ends with it
  std::uint32_t steps = 0;  // no more than there can be records, whatever the lists say
};

inline constexpr std::uint32_t kAllCounters = UINT32_MAX;

// Carries out what is due: of one counter and of those that it raises in turn, or of all.
// REQUIRES: the lock is held.
Looked look(const NicView& nic, Carrier& carrier, std::uint32_t counter);
// Takes a record off its list, and frees it. REQUIRES: the lock is held; it is the first of its list.
void take_off(const NicView& nic, std::uint32_t record);
// Says in a counter's line at which sum its first record is due. REQUIRES: the lock is held.
void announce_next(const NicView& nic, CounterState& state);

// Carries out what is due of a peer's. Whether something is left for the owner, which is to be rung then.
// Neither blocks nor waits. Any thread of any process.
bool fire(const NicView& nic, Carrier& carrier, std::uint32_t counter);

}  // namespace trigger

}  // namespace orrery::nic
