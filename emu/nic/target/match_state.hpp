// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/wait.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <pthread.h>

// The shared-memory layout of one process's match unit: portal tables, match lists, unexpected headers, event
// queues, counters and triggered operations of its interfaces. It lies in the arena of the owner's NIC
// segment; every peer that maps the segment applies the rules of match_unit.hpp to it. Offsets and indexes,
// no pointers.
//
//   0              Header       geometry, lock, journal, free lists
//   tables         Interface[4] each with PortalEntry[kMaxPortals]
//   buckets        Bucket[kBuckets]        exact entries and headers, by (interface, portal, list, bits)
//   entries        Entry[]                 index 0 is never used: 0 means none
//   headers        Unexpected[]
//   queues         EventQueue[]            rings lie at offsets of their own
//   counters       Counter[]
//   triggers       Trigger[]
//   descriptors    Descriptor[]            Portals 3: one for each entry, else none
//   accesses       Access[]                Portals 3
//   flights        Flight[]                messages whose bytes are being moved
//   rings          EventSlot[]             blocks that the owner hands out
//
// One robust lock guards everything that is not an atomic. Each change of a word under it is noted in the
// journal first, and the journal is emptied when the change is whole: the thread that takes the lock of a
// process which died takes back what the journal holds (match_journal.hpp). So a change happens wholly or not
// at all.
namespace orrery::nic::match {

inline constexpr std::uint64_t kMagic = 0x484354414d52524fULL;  // "ORRMATCH"
inline constexpr std::uint32_t kVersion = 8;
inline constexpr std::uint32_t kInterfaces = 4;  // matching or not x logical or physical
inline constexpr std::uint32_t kMaxPortals = 512;
inline constexpr std::uint32_t kBuckets = 1u << 16;
inline constexpr std::uint32_t kJournal = 512;
inline constexpr std::uint32_t kMaxSwapBytes = 32;
inline constexpr std::size_t kApart = 128;  // bytes between what different processes write often

enum List : std::uint8_t { kPriority = 0, kOverflow = 1 };
enum class Move : std::uint8_t { get = 0, put = 1, atomic = 2, fetch_atomic = 3 };

// Options of an entry. DO NOT CHANGE THE VALUES: they are in shared memory, and lib/portals4 asserts that
// they are the interface's.
enum EntryOptions : std::uint32_t {
  kIovec = 1u << 0,
  kOpPut = 1u << 1,
  kOpGet = 1u << 2,
  kUseOnce = 1u << 3,
  kNoUnexpectedHeader = 1u << 4,
  kNoLinkEvent = 1u << 6,
  kNoCommEvent = 1u << 7,
  kNoFlowControlEvent = 1u << 8,
  kNoSuccessEvent = 1u << 9,
  kNoOverflowEvent = 1u << 10,
  kNoUnlinkEvent = 1u << 11,
  kCountComm = 1u << 12,
  kCountOverflow = 1u << 13,
  kCountBytes = 1u << 14,
  kManageLocal = 1u << 15,
  kNoTruncate = 1u << 16,
  kMayAlign = 1u << 17,
  kUnexpectedByLength = 1u << 18,  // unexpected messages move the local offset by what was asked for
  kAckDisable = 1u << 19,
  kClassic = 1u << 20,  // an entry of Portals 3 (match_classic.hpp)
};
// Options of an interface besides the API's own.
inline constexpr std::uint32_t kClassicInterface = 1u << 16;
enum PortalOptions : std::uint32_t {
  kOnlyUseOnce = 1u << 0,
  kOnlyTruncate = 1u << 1,
  kFlowControl = 1u << 2,
  kAllocDisabled = 1u << 3,
};
enum PortalState : std::uint32_t {
  kAllocated = 1u << 0,
  kStopUntold = 1u << 1,  // flow control stopped it, and its queue had no room for that event yet
};
// How an operation ended at the target.
enum Fail : std::uint8_t {
  kDelivered = 0,
  kUndeliverable = 1,
  kDropped = 2,
  kPortalDisabled = 3,
  kPermissionViolation = 4,
  kOperationViolation = 5,
  kNoMatch = 6,
  kSegv = 7,
};
enum EventType : std::uint8_t {
  kEventGet = 0,  // + 2 x Move; + 1: from the overflow list
  kEventPut = 2,
  kEventAtomic = 4,
  kEventFetchAtomic = 6,
  kEventReply = 8,
  kEventSend = 9,
  kEventAck = 10,
  kEventPortalDisabled = 11,
  kEventLink = 12,
  kEventAutoUnlink = 13,
  kEventAutoFree = 14,
  kEventSearch = 15,
};

struct ProcessId {
  std::uint32_t nid = 0;  // of a logical interface: the rank
  std::uint32_t pid = 0;
  friend constexpr bool operator==(const ProcessId&, const ProcessId&) = default;
};
inline constexpr std::uint32_t kAny = UINT32_MAX;
inline constexpr std::uint32_t kPidAny = 0xffff;

// An event as it is raised and taken.
struct EventRecord {
  std::uint64_t start;
  std::uint64_t user;
  std::uint64_t header_data;
  std::uint64_t match_bits;
  std::uint64_t asked;  // bytes
  std::uint64_t moved;
  std::uint64_t remote_offset;
  ProcessId initiator;
  std::uint32_t uid;
  std::uint32_t portal;
  std::uint8_t type;
  std::uint8_t list;
  std::uint8_t fail;
  std::uint8_t operation;
  std::uint8_t datatype;
  // Portals 3: the descriptor as it was.
  std::uint32_t descriptor;  // 28..17 generation | 16..0 index
  std::uint32_t link;
  std::uint32_t jid;
  std::uint32_t options;
  std::int32_t threshold;
  std::uint64_t length;
  std::uint64_t max_size;
  friend bool operator==(const EventRecord&, const EventRecord&) = default;
};

// An event in its queue: one line that moves between the processes; the second only where the first does not
// hold all (match_events.cpp).
struct alignas(64) EventSlot {
  std::uint64_t line[7];
  std::uint64_t published;  // its position in the queue plus one, once it may be taken
  std::uint64_t rest[8];
};
static_assert(sizeof(EventSlot) == 128);

// What matching an entry with a header reads. Links are entry indexes.
struct alignas(64) Entry {
  std::uint64_t match_bits;
  std::uint64_t ignore_bits;
  std::uint64_t stamp;  // order in its list: grows with every entry that is linked
  ProcessId source;
  std::uint32_t options;
  std::uint32_t next;  // in its bucket, or in the portal's wildcard list
  std::uint64_t start;
  std::uint64_t length;  // bytes; kIovec: the sum of its pieces
  std::uint64_t local_offset;
  std::uint64_t min_free;
  std::uint64_t user;
  std::uint32_t pieces;  // kIovec: how many {address, bytes} lie at `start` of the owner's memory
  std::uint32_t previous;
  std::uint32_t uid;
  std::uint32_t counter;     // index, 0: none
  std::uint32_t in_flight;   // accepted messages whose bytes are not there yet
  std::uint32_t held;        // unexpected headers that name it
  std::uint32_t generation;  // of the handle
  std::uint32_t free_next;
  std::uint16_t portal;
  std::uint8_t interface;
  std::uint8_t list;
  std::uint8_t state;  // EntryState
  std::uint8_t exact;  // in a bucket
};
static_assert(sizeof(Entry) == 128);
enum EntryState : std::uint8_t { kFree = 0, kLinked = 1, kUnlinked = 2, kClosing = 3 };

// Portals 3: the memory descriptor of the entry of the same index, or one that is bound to none (its entry is
// kUnlinked then). Memory, length and local offset stand in the entry.
struct alignas(64) Descriptor {
  std::uint64_t user;
  std::uint64_t max_size;
  std::uint64_t given_length;  // as the program gave it: bytes, or pieces
  std::int32_t threshold;      // operations that it still takes part in; negative: any number
  std::uint32_t options;       // the interface's
  std::uint32_t queue;         // index, 0: none
  std::uint32_t queue_handle;
  std::uint32_t generation;  // of its handle
  std::uint8_t attached;
  std::uint8_t unlinks;        // with its last operation
  std::uint8_t entry_unlinks;  // and the entry with it
  std::uint8_t bound;          // to no entry
  std::uint8_t full;           // less than max_size is left
};
static_assert(sizeof(Descriptor) == 64);

// Portals 3: which processes may use which portal, as an initiator names it by its index.
struct alignas(32) Access {
  std::uint32_t allows;
  ProcessId source;
  std::uint32_t uid, jid;
  std::uint32_t portal;  // kAny: all
};

// A message that came before its entry: its bytes are in an overflow entry.
struct alignas(64) Unexpected {
  std::uint64_t match_bits;
  std::uint64_t stamp;
  std::uint64_t start;  // where its bytes are
  std::uint64_t header_data;
  std::uint64_t asked;
  std::uint64_t moved;
  std::uint64_t remote_offset;
  ProcessId initiator;
  std::uint32_t uid;
  std::uint32_t entry;                         // of the overflow list
  std::uint32_t next, previous;                // in the portal, by arrival
  std::uint32_t bucket_next, bucket_previous;  // of the same bits, by arrival
  std::uint32_t free_next;
  std::uint32_t generation;
  std::uint16_t portal;
  std::uint8_t interface;
  std::uint8_t type;  // of the event when an entry takes it
  std::uint8_t operation, datatype;
  std::uint8_t arriving;  // its bytes are in flight
  std::uint8_t claimed;   // an entry took it meanwhile: its event comes with the bytes
  std::uint64_t claim_user;
  std::uint32_t claim_counter;
  std::uint32_t claim_options;
};
static_assert(sizeof(Unexpected) == 128);

struct alignas(64) PortalEntry {
  std::uint32_t allocated;  // PortalState, 0: it is not
  std::uint32_t enabled;
  std::uint32_t options;
  std::uint32_t queue;                        // index, 0: none
  std::uint32_t wild_first[2], wild_last[2];  // entries with wildcards, by list
  std::uint32_t exact_count[2], count[2];     // entries in its lists
  std::uint32_t header_first, header_last, header_count;
  std::uint32_t in_flight;
};
static_assert(sizeof(PortalEntry) == 64);

struct alignas(64) Interface {
  std::uint32_t open;  // stored last
  std::uint32_t options;
  std::uint32_t pid;
  std::uint32_t nid;
  std::uint32_t uid;
  std::uint32_t portals;  // usable ones
  std::uint32_t max_list;
  std::uint32_t max_entries, entries;  // how many there may be, and are
  std::uint32_t max_headers, headers;
  std::uint32_t max_triggers, triggers;
  std::uint32_t rank;
  std::int64_t status[4];  // dropped, permission violations, operation violations
};

struct alignas(16) Bucket {
  std::uint32_t first[2], last[2];  // exact entries of any list | unexpected headers
};

// Positions count events from `base` on, which no earlier queue of the same ring reached, so that what an
// earlier one left in a record does not count as published.
struct alignas(kApart) EventQueue {
  std::uint64_t ring;      // offset of as many EventSlots as the next power of two
  std::uint64_t capacity;  // events
  std::uint32_t generation;
  std::uint32_t used;
  std::uint32_t free_next;
  std::uint32_t reserved_slots;  // kept for events that must not be lost
  std::uint32_t interface;
  std::uint32_t untold;                // Portals 3.3: messages under way that have raised no event yet
  std::uint64_t floor;                 // events before it are lost; seldom written, so beside what never is
  alignas(kApart) std::uint64_t tail;  // behind the last event that was put in: the producers'
  std::uint64_t known_head;            // what they last saw of `head`
  alignas(kApart) std::uint64_t head;  // behind the last event that was taken: the owner's, without the lock
};
static_assert(sizeof(EventQueue) == 3 * kApart);

// What messages change stands apart from what the owner's threads poll: a message then stores to the line
// that is polled, and reads nothing of it, which would fetch it once more. Two lines apart: processors fetch
// the line beside one that they miss.
struct alignas(kApart) Counter {
  std::uint64_t success;
  std::uint64_t failure;
  std::uint32_t generation;
  std::uint32_t used;
  std::uint32_t free_next;
  std::uint32_t interface;
  std::uint32_t first;  // triggers, by threshold
  std::uint32_t last;
  std::uint64_t watched;  // the test of a thread that sleeps for it; 0: none, or it came true
  std::uint64_t seen_success, seen_failure;  // what the counter was when the test came true; both 0: not yet
  // For the owner's threads, without the lock.
  alignas(kApart) std::uint64_t shown_success;
  std::uint64_t shown_failure;
  std::uint32_t shown_interface;  // plus one; 0: not in use
};
static_assert(sizeof(Counter) == 2 * kApart);

// The memory of the initiator that an operation reads or writes, as it was bound.
struct Binding {
  std::uint64_t start;
  std::uint64_t length;  // bytes, of all pieces
  std::uint32_t pieces;  // 0: one, at `start`
  std::uint32_t options;
  std::uint32_t queue;
  std::uint32_t queue_generation;
  std::uint32_t counter;
  std::uint32_t counter_generation;
};

enum class OpKind : std::uint8_t { put, get, atomic, fetch_atomic, swap, counter_add, counter_set };

// One operation of an initiator: executed at once, or kept as a trigger.
struct Operation {
  OpKind kind;
  std::uint8_t ack;
  std::uint8_t operation;
  std::uint8_t datatype;
  std::uint8_t interface;
  std::uint32_t portal;
  ProcessId target;  // physical
  ProcessId target_rank;
  std::uint64_t length;
  std::uint64_t match_bits;
  std::uint64_t remote_offset;
  std::uint64_t user;
  std::uint64_t header_data;
  Binding source;  // what leaves
  Binding result;  // what comes back
  std::uint64_t source_offset;
  std::uint64_t result_offset;
  std::uint8_t operand[kMaxSwapBytes];
  std::uint32_t counter;  // of counter_add and counter_set
  std::uint32_t counter_generation;
  std::uint64_t success;
  std::uint64_t failure;
};

struct alignas(64) Trigger {
  std::uint64_t threshold;
  std::uint32_t next;  // of its counter, or in the list of those that are due
  std::uint32_t free_next;
  std::uint32_t used;
  std::uint32_t interface;
  Operation operation;
};

struct JournalLine {
  std::uint32_t offset;
  std::uint32_t bytes;
  std::uint64_t before;
};

inline constexpr std::uint64_t kFlightBytes = 192;  // of a Flight (match_unit.hpp)

// A pool: items that were freed, and those that never were used.
struct Pool {
  std::uint32_t free_first;
  std::uint32_t fresh;     // the first that never was used
  std::uint32_t capacity;  // items; index 0 is one of them
  std::uint32_t in_use;
};

// How many of each there may be.
struct Shape {
  std::uint32_t entries = 131072;
  std::uint32_t headers = 131072;
  std::uint32_t queues = 2048;
  std::uint32_t counters = 4096;
  std::uint32_t triggers = 32768;
  std::uint64_t ring_bytes = 64u << 20;
  std::uint32_t descriptors = 0;  // as many as entries, or none
  std::uint32_t accesses = 0;
  std::uint32_t flights = 1024;  // a message without one is not ended when its mover dies
};

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t untold_stops;  // portals with kStopUntold
  std::uint64_t bytes;
  std::uint64_t interfaces, portals, buckets, entries, headers, queues, counters, triggers, rings,
      descriptors, accesses,
      flights;  // offsets
  Pool entry_pool, header_pool, queue_pool, counter_pool, trigger_pool, flight_pool;
  std::uint64_t ring_bytes;
  std::uint32_t descriptor_count, access_count;
  std::uint64_t stamp;
  std::uint32_t due_first, due_last;  // triggers whose counter reached their threshold
  alignas(64) pthread_mutex_t lock;
  pthread_mutex_t atomics;    // held for one atomic operation on the owner's memory
  pthread_mutex_t executing;  // held by the thread that carries out the triggers that are due
  std::uint32_t journal_used;
  JournalLine journal[kJournal];
  alignas(64) FutexWord bell;  // changes when a sleeper should look again
  std::atomic<std::uint32_t> sleepers;
  std::atomic<std::uint32_t> aborts;
  std::atomic<std::uint32_t> ready;  // stored last
};

constexpr std::uint64_t bytes_of(const Shape& shape) {
  return sizeof(Header) + kInterfaces * (sizeof(Interface) + kMaxPortals * sizeof(PortalEntry)) +
         std::uint64_t{kBuckets} * sizeof(Bucket) + shape.entries * sizeof(Entry) +
         shape.headers * sizeof(Unexpected) + shape.queues * sizeof(EventQueue) +
         shape.counters * sizeof(Counter) + shape.triggers * sizeof(Trigger) + shape.ring_bytes +
         shape.descriptors * sizeof(Descriptor) + shape.accesses * sizeof(Access) +
         shape.flights * kFlightBytes + 4096;
}

// A mapped match unit. A value: does not own the mapping.
class View {
 public:
  View() = default;
  // Lays out an empty unit in zeroed bytes. REQUIRES: base aligned to 64, bytes >= bytes_of(shape).
  static View create(void* base, const Shape& shape);
  // Looks at one that its owner laid out. Errors: not_done (not yet), corrupt (an offset or size does not
  // fit).
  static Result<View> open(void* base, std::uint64_t bytes);

  explicit operator bool() const { return base_ != nullptr; }
  Header& header() const { return *at<Header>(0); }
  Interface& interface(std::uint32_t i) const { return at<Interface>(header().interfaces)[i]; }
  PortalEntry& portal(std::uint32_t interface, std::uint32_t i) const {
    return at<PortalEntry>(header().portals)[interface * kMaxPortals + i];
  }
  Bucket& bucket(std::uint32_t i) const { return at<Bucket>(header().buckets)[i]; }
  Entry& entry(std::uint32_t i) const { return at<Entry>(header().entries)[i]; }
  Unexpected& unexpected(std::uint32_t i) const { return at<Unexpected>(header().headers)[i]; }
  EventQueue& queue(std::uint32_t i) const { return at<EventQueue>(header().queues)[i]; }
  Counter& counter(std::uint32_t i) const { return at<Counter>(header().counters)[i]; }
  Descriptor& descriptor(std::uint32_t i) const { return at<Descriptor>(header().descriptors)[i]; }
  Access& access(std::uint32_t i) const { return at<Access>(header().accesses)[i]; }
  Trigger& trigger(std::uint32_t i) const { return at<Trigger>(header().triggers)[i]; }
  EventSlot& slot(const EventQueue& queue, std::uint64_t position) const {
    return at<EventSlot>(queue.ring)[position & (std::bit_ceil(queue.capacity) - 1)];
  }
  std::byte* base() const { return base_; }

 private:
  template <typename T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  std::byte* base_ = nullptr;
};

}  // namespace orrery::nic::match
