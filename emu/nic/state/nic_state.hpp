// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/state/request.hpp"
#include "emu/wire/ring_layout.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

// The shared-memory layout of one emulated NIC: one segment per process, created by its owner, mapped by
// every peer of the host. Offsets, never pointers; fixed-width types; one writer per cache line, or lock-free
// words whose every update is a single instruction, so that a process may die between any two instructions
// and leave nothing to repair.
//
//   0         NicHeader                    owner, version, geometry; `stage` is stored last
//   4 KiB     ServiceState                 lanes in use, whether a thread polls for frames
//   8 KiB     MrtEntry[4096]     256 KiB   registration table, owner writes, peers read
//   264 KiB   HazardLine[1024]    64 KiB   what each process slot is touching right now; that process writes
//   328 KiB   CqState[1024]      256 KiB   completion queues; rings lie in the arena
//   584 KiB   AMO unit            64 KiB   its cache (amo_unit.hpp); each unit lays out its own part
//   704 KiB   errors             256 KiB   error events and injected faults
//   960 KiB   clock               60 KiB   how the process's clock is set up
//   1020 KiB  match                4 KiB   where in the arena the match unit lies (match_state.hpp)
//   1 MiB     channel              1 MiB   receive buffers that were posted
//   2 MiB     datagrams            2 MiB   posted and finished exchanges
//   4 MiB     collective engine    4 MiB   virtual channel elements
//   8 MiB     counters          1088 KiB   successes and failures (events/counter.hpp)
//   9.0625 MiB record queues     128 KiB   where the queues' records lie (events/record_queue.hpp)
//   9.1875 MiB atomic locks        64 KiB   for atomics that no instruction does (target/atomic_unit.hpp)
//   10 MiB    extents             72 KiB   what is in the memory file of all (extent_state.hpp)
//   11 MiB    further hazards    512 KiB   of the threads that have no word in a process's line
//   12 MiB    triggers             3 MiB   operations that wait for counters (events/trigger_table.hpp)
//   16 MiB    lane pairs[n]                requests from process slot i, responses to it (emu/wire)
//   then      arena                        completion-queue rings, segment lists; only the owner allocates
//
// NicHeader carries the same list from the AMO unit on (kAreas), so that a reader finds out in one place
// whether it and the owner agree. A new unit takes a row, room below the lanes and a new version.
namespace orrery::nic {

inline constexpr std::uint64_t kNicMagic = 0x43494e595252524fULL;  // "ORRRYNIC"
inline constexpr std::uint32_t kNicVersion = 11;
inline constexpr std::uint32_t kMaxProcesses = 1024;
inline constexpr std::uint32_t kMaxQueues = 1024;
inline constexpr std::uint32_t kHazardSlots = 8;       // words of a process in a segment, in one line,
inline constexpr std::uint32_t kMoreHazardSlots = 64;  // and those of its further threads (thread_word.hpp)
inline constexpr std::uint32_t kMaxSuspendable = 256;  // domains whose traffic can be stopped
inline constexpr std::size_t kCacheLine = 64;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

enum class Stage : std::uint32_t { empty = 0, ready = 1, closed = 2 };

// What lies in a part of the segment. DO NOT CHANGE THE VALUES. Append only.
enum class AreaKind : std::uint32_t {
  none = 0,
  amo = 1,
  errors = 2,
  clock = 3,
  channels = 4,
  datagrams = 5,
  collective = 6,
  counters = 7,
  record_queues = 8,
  atomic_locks = 9,
  match = 10,
  extents = 11,
  hazards = 12,
  triggers = 13,
};

// Where a unit keeps its state, and how much of it there may be. The unit's own header says what lies there.
struct UnitArea {
  std::uint64_t offset;
  std::uint64_t bytes;
};

struct AreaRow {
  AreaKind kind;
  std::uint32_t reserved;
  std::uint64_t offset;
  std::uint64_t bytes;
};
static_assert(sizeof(AreaRow) == 24);
inline constexpr std::uint32_t kMaxAreas = 64;

struct NicHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t process_slot;
  std::uint64_t segment_bytes;
  std::uint64_t lanes_offset;
  std::uint32_t lane_count;
  std::uint32_t lane_bytes;
  std::uint64_t arena_offset;
  std::uint64_t arena_bytes;
  std::int64_t pid;
  std::uint64_t attach_word_address;  // where in the owner's memory the next word also stands: tells a peer
  std::uint64_t attach_word;          // that it can attach, and to the right process
  std::uint32_t strong_hazards;  // 1: the owner cannot membarrier(2), so hazards must be announced with a
                                 // full barrier (base/asymmetric_fence.hpp)
  std::atomic<Stage> stage;      // stored last, with release
  std::uint32_t area_count;
  alignas(kCacheLine) AreaRow areas[kMaxAreas];
};
static_assert(offsetof(NicHeader, version) == 8 && offsetof(NicHeader, segment_bytes) == 16 &&
              offsetof(NicHeader, lanes_offset) == 24 && offsetof(NicHeader, lane_count) == 32 &&
              offsetof(NicHeader, arena_offset) == 40 && offsetof(NicHeader, pid) == 56 &&
              offsetof(NicHeader, attach_word) == 72 && offsetof(NicHeader, strong_hazards) == 80 &&
              offsetof(NicHeader, stage) == 84 && offsetof(NicHeader, area_count) == 88 &&
              offsetof(NicHeader, areas) == 128 && sizeof(NicHeader) <= 4096);

// Whether a thread looks for frames that arrive. asleep: none does, so the service thread must be rung;
// attended: one polls, and ringing would be a wasted system call.
enum class Poller : std::uint32_t { none = 0, some = 1 };

struct ServiceState {
  alignas(kCacheLine) std::atomic<std::uint64_t> active_lanes[kMaxProcesses / 64];  // bit i: lane i is in use
  std::atomic<std::uint32_t> lane_changes;  // grows after each bit that is set; 0: none was
  alignas(kCacheLine) std::atomic<std::uint64_t> sources[kMaxProcesses / 64];        // bit i: i may go direct
  alignas(kCacheLine) std::atomic<Poller> poller;                                    // owner writes
  alignas(kCacheLine) std::atomic<std::uint64_t> adoption_wanted[kMaxRegions / 64];  // bit i: entry i is hot
  alignas(kCacheLine) FutexWord bell;  // changes when a sleeper on several queues should look again
  // Bit i: domain i. The suspending process writes `suspended`, and wakes; the owner says when it is quiet,
  // and a process that suspends it anew takes that back.
  alignas(kCacheLine) std::atomic<std::uint64_t> suspended[kMaxSuspendable / 64];
  FutexWord suspension_changes;
  alignas(kCacheLine) std::atomic<std::uint64_t> quiet[kMaxSuspendable / 64];
  // Bit i: process i has used a word beyond its line; set before the first use.
  alignas(kCacheLine) std::atomic<std::uint64_t> many_threads[kMaxProcesses / 64];
};
static_assert(offsetof(ServiceState, lane_changes) == 128 && offsetof(ServiceState, sources) == 192 &&
              offsetof(ServiceState, poller) == 320 && offsetof(ServiceState, adoption_wanted) == 384 &&
              offsetof(ServiceState, bell) == 896 && offsetof(ServiceState, suspended) == 960 &&
              offsetof(ServiceState, quiet) == 1024 && offsetof(ServiceState, many_threads) == 1088);
static_assert(sizeof(ServiceState) <= 4096);

// How the pages of a registration can be reached by a peer. DO NOT CHANGE THE VALUES.
enum class RegionState : std::uint8_t {
  free = 0,      // no registration: every key of an earlier one is stale
  by_frame = 1,  // through the owner, or cross-memory attach
  moving = 2,    // being adopted: through the owner only
  direct = 3,    // in the memory file: plain loads and stores
};

// One registration. `control` holds everything that says whether an access is allowed, so that one load
// decides; the other fields do not change while its generation stands.
//   63..48 generation | 47..32 domain | 31..16 queue + 1 (0 = none) | 15..8 RegionFlags | 7..0 RegionState
struct alignas(kCacheLine) MrtEntry {
  std::atomic<std::uint64_t> control;
  std::atomic<std::uint64_t> begin;     // first byte that may be touched (page aligned), or 0 when segmented
  std::atomic<std::uint64_t> end;       // one past the last
  std::atomic<std::uint64_t> segments;  // segmented: arena offset of {u64 address, u64 length}[count]
  std::atomic<std::uint32_t> segment_count;
  std::atomic<std::uint32_t> touched;  // set by the first peer that goes direct: deregistration must drain
  std::atomic<std::uint64_t> windows;  // generation << 32 | mappings by FMA windows, which cannot be drained
  std::atomic<std::uint64_t> base;     // what addresses below `begin` count from (mdh.hpp)
  std::atomic<std::uint32_t> reserved_as;  // its number among the domain's reserved entries, plus 1; or 0
  std::uint32_t reserved;
};
static_assert(sizeof(MrtEntry) == 64 && offsetof(MrtEntry, windows) == 40 && offsetof(MrtEntry, base) == 48 &&
              offsetof(MrtEntry, reserved_as) == 56 && offsetof(MrtEntry, begin) == 8 &&
              offsetof(MrtEntry, end) == 16 && offsetof(MrtEntry, segments) == 24 &&
              offsetof(MrtEntry, touched) == 36);

namespace control {
constexpr std::uint64_t make(std::uint16_t generation, std::uint16_t domain, std::uint32_t queue_plus_1,
                             std::uint8_t flags, RegionState state) {
  return static_cast<std::uint64_t>(generation) << 48 | static_cast<std::uint64_t>(domain) << 32 |
         static_cast<std::uint64_t>(queue_plus_1) << 16 | static_cast<std::uint64_t>(flags) << 8 |
         static_cast<std::uint64_t>(state);
}
constexpr std::uint16_t generation(std::uint64_t word) { return static_cast<std::uint16_t>(word >> 48); }
constexpr std::uint16_t domain(std::uint64_t word) { return static_cast<std::uint16_t>(word >> 32); }
constexpr std::uint32_t queue_plus_1(std::uint64_t word) { return static_cast<std::uint16_t>(word >> 16); }
constexpr std::uint64_t without_queue(std::uint64_t word) { return word & ~(std::uint64_t{0xffff} << 16); }
constexpr std::uint8_t flags(std::uint64_t word) { return static_cast<std::uint8_t>(word >> 8); }
constexpr RegionState state(std::uint64_t word) { return static_cast<RegionState>(word & 0xff); }
constexpr std::uint64_t with_state(std::uint64_t word, RegionState state) {
  return (word & ~std::uint64_t{0xff}) | static_cast<std::uint64_t>(state);
}
}  // namespace control

// What one process is touching in this NIC's memory right now. Slot word: 0 = nothing, else entry index + 1.
// The owner of a registration that wants it gone waits until no line names it (registration_table.cpp). Rows
// of FMA windows are announced elsewhere, to many owners at once (hazard_board.hpp).
struct alignas(kCacheLine) HazardLine {
  std::atomic<std::uint64_t> slot[kHazardSlots];
};
static_assert(sizeof(HazardLine) == 64);

// The same for its threads beyond the first six.
struct alignas(kCacheLine) MoreHazards {
  std::atomic<std::uint64_t> slot[kMoreHazardSlots];
};

// One completion queue. The ring's slots are in the arena; see completion_queue.hpp for the protocol.
struct CqState {
  alignas(kCacheLine) std::atomic<std::uint64_t> ring_offset;  // owner; 0 = not in use
  std::atomic<std::uint64_t> capacity;                         // slots, a power of two
  std::atomic<std::uint32_t> mode;                             // QueueMode
  alignas(kCacheLine) std::atomic<std::uint64_t> tail_hint;    // producers; never ahead of the true tail
  alignas(kCacheLine) std::atomic<std::uint64_t> head;         // consumer
  // Sleepers in a blocking wait: 31..16 on several queues, on the bell | 15..0 on `signal`.
  alignas(kCacheLine) std::atomic<std::uint32_t> waiters;
  FutexWord signal;                    // changes when a sleeper should look again
  std::atomic<std::uint32_t> overrun;  // events lost to a full ring, not yet reported
};
static_assert(sizeof(CqState) == 256 && offsetof(CqState, tail_hint) == 64 &&
              offsetof(CqState, head) == 128 && offsetof(CqState, waiters) == 192 &&
              offsetof(CqState, signal) == 196 && offsetof(CqState, overrun) == 200);

inline constexpr std::uint32_t kBellWaiter = 1u << 16;

// One slot of a ring: 16 bytes, written by producers with one 16-byte compare-and-swap.
//   control: 63..16 position | 15..8 status | 7..1 kind | 0 ready
struct alignas(16) CqSlot {
  std::atomic<std::uint64_t> control;
  std::atomic<std::uint64_t> data;
};
static_assert(sizeof(CqSlot) == 16);

inline constexpr std::uint64_t kServiceOffset = 4096;
inline constexpr std::uint64_t kMrtOffset = 8192;
inline constexpr std::uint64_t kHazardOffset = kMrtOffset + kMaxRegions * sizeof(MrtEntry);
inline constexpr std::uint64_t kQueueOffset = kHazardOffset + kMaxProcesses * sizeof(HazardLine);
inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr UnitArea kAmoArea{584 * kKiB, 64 * kKiB};
inline constexpr UnitArea kErrorArea{704 * kKiB, 256 * kKiB};
inline constexpr UnitArea kClockArea{960 * kKiB, 60 * kKiB};
inline constexpr UnitArea kMatchArea{1020 * kKiB, 4 * kKiB};  // where in the arena the match unit lies
inline constexpr UnitArea kChannelArea{1 * kMiB, 1 * kMiB};
inline constexpr UnitArea kDatagramArea{2 * kMiB, 2 * kMiB};
inline constexpr UnitArea kCollectiveArea{4 * kMiB, 4 * kMiB};
inline constexpr UnitArea kCounterArea{8 * kMiB, 1 * kMiB + 64 * kKiB};
inline constexpr UnitArea kRecordArea{9 * kMiB + 64 * kKiB, 128 * kKiB};
inline constexpr UnitArea kAtomicLockArea{9 * kMiB + 192 * kKiB, 64 * kKiB};
inline constexpr UnitArea kExtentArea{10 * kMiB, 72 * kKiB};
inline constexpr UnitArea kMoreHazardArea{11 * kMiB, kMaxProcesses* kMoreHazardSlots * 8};
inline constexpr UnitArea kTriggerArea{12 * kMiB, 3 * kMiB};
inline constexpr std::uint64_t kLanesOffset = 16 * kMiB;
inline constexpr AreaRow kAreas[] = {
    {AreaKind::amo, 0, kAmoArea.offset, kAmoArea.bytes},
    {AreaKind::errors, 0, kErrorArea.offset, kErrorArea.bytes},
    {AreaKind::clock, 0, kClockArea.offset, kClockArea.bytes},
    {AreaKind::match, 0, kMatchArea.offset, kMatchArea.bytes},
    {AreaKind::channels, 0, kChannelArea.offset, kChannelArea.bytes},
    {AreaKind::datagrams, 0, kDatagramArea.offset, kDatagramArea.bytes},
    {AreaKind::collective, 0, kCollectiveArea.offset, kCollectiveArea.bytes},
    {AreaKind::counters, 0, kCounterArea.offset, kCounterArea.bytes},
    {AreaKind::record_queues, 0, kRecordArea.offset, kRecordArea.bytes},
    {AreaKind::atomic_locks, 0, kAtomicLockArea.offset, kAtomicLockArea.bytes},
    {AreaKind::extents, 0, kExtentArea.offset, kExtentArea.bytes},
    {AreaKind::hazards, 0, kMoreHazardArea.offset, kMoreHazardArea.bytes},
    {AreaKind::triggers, 0, kTriggerArea.offset, kTriggerArea.bytes},
};
// In order, one behind the other, each on a cache line, all below the lanes.
constexpr bool areas_fit() {
  std::uint64_t end = kAmoArea.offset;
  for (const AreaRow& row : kAreas) {
    if (row.offset < end || row.offset % kCacheLine != 0) return false;
    end = row.offset + row.bytes;
  }
  return end <= kLanesOffset;
}
static_assert(areas_fit() && std::size(kAreas) <= kMaxAreas);
static_assert(kHazardOffset == 264 * kKiB && kQueueOffset == 328 * kKiB &&
              kQueueOffset + kMaxQueues * sizeof(CqState) == kAmoArea.offset);

// How large a segment is. Sparse: only what is touched is paid for.
struct Geometry {
  std::uint32_t lane_count = kMaxProcesses;
  std::uint32_t lane_bytes = wire::kDefaultLaneBytes;
  std::uint64_t arena_bytes = 256ull << 20;
  constexpr std::uint64_t lanes_bytes() const { return std::uint64_t{lane_count} * 2 * lane_bytes; }
  constexpr std::uint64_t segment_bytes() const { return kLanesOffset + lanes_bytes() + arena_bytes; }
};

// A mapped segment, a peer's or ours. A value: does not own the mapping.
class NicView {
 public:
  NicView() = default;

  // Lays out an empty NIC in `bytes` zeroed bytes at `base`. Owner only.
  static NicView create(void* base, const Geometry& geometry, std::uint32_t process_slot, std::int64_t pid,
                        bool strong_hazards);

  // Looks at a segment that another process laid out. Every field is checked against `bytes`, the size that
  // the descriptor really has: Errc::corrupt when anything does not fit, Errc::not_done before it is ready,
  // Errc::unsupported (logged, in one line) when it was laid out by another version of this library.
  static Result<NicView> open(void* base, std::uint64_t bytes);

  explicit operator bool() const { return base_ != nullptr; }
  NicHeader& header() const { return *at<NicHeader>(0); }
  ServiceState& service() const { return *at<ServiceState>(kServiceOffset); }
  MrtEntry& region(std::uint32_t index) const { return at<MrtEntry>(kMrtOffset)[index]; }
  // A process's lines in the segments of its peers lie at different offsets: an initiator that goes through
  // many targets would else find them all in the same few places of its first-level cache. Nor does the first
  // of them lie at the begin of a page, where the targets' own buffers mostly do.
  HazardLine& hazards(std::uint32_t process_slot) const {
    constexpr std::uint32_t kSpread = 5;
    constexpr std::uint32_t kFirst = 3;
    const std::uint32_t line = process_slot + kSpread * header().process_slot + kFirst;
    return at<HazardLine>(kHazardOffset)[line % kMaxProcesses];
  }
  MoreHazards& more_hazards(std::uint32_t process_slot) const {
    return at<MoreHazards>(kMoreHazardArea.offset)[process_slot];
  }
  CqState& queue(std::uint32_t index) const { return at<CqState>(kQueueOffset)[index]; }
  // Frames from `process_slot` to this NIC, and this NIC's answers to them.
  std::byte* request_lane(std::uint32_t process_slot) const {
    return base_ + lanes_offset_ + std::uint64_t{process_slot} * 2 * lane_bytes_;
  }
  std::byte* response_lane(std::uint32_t process_slot) const {
    return request_lane(process_slot) + lane_bytes_;
  }
  std::uint32_t lane_bytes() const { return lane_bytes_; }
  std::uint32_t lane_count() const { return lane_count_; }
  std::uint64_t arena_bytes() const { return arena_bytes_; }

  // A unit's state: `T` is laid out by the unit and is all zero in a new segment.
  template <typename T, UnitArea area>
  T& unit() const {
    static_assert(sizeof(T) <= area.bytes && area.offset % alignof(T) == 0);
    return *at<T>(area.offset);
  }

  // `count` objects of T at an arena offset, or nullptr when they do not lie in the arena.
  template <typename T>
  T* arena(std::uint64_t offset, std::uint64_t count) const {
    if (offset < arena_offset_ || offset % alignof(T) != 0) return nullptr;
    const std::uint64_t from = offset - arena_offset_;
    if (from > arena_bytes_ || count > (arena_bytes_ - from) / sizeof(T)) return nullptr;
    return at<T>(offset);
  }

 private:
  template <typename T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  std::byte* base_ = nullptr;
  std::uint64_t lanes_offset_ = 0;
  std::uint64_t arena_offset_ = 0;
  std::uint64_t arena_bytes_ = 0;
  std::uint32_t lane_bytes_ = 0;
  std::uint32_t lane_count_ = 0;
};

}  // namespace orrery::nic
