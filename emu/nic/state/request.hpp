// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/wire/verb.hpp"

#include <cstdint>

// The words between an API layer and a NIC, in requests and in answers: keys, operations,
// flags, events. They are neutral: uGNI's posts, DMAPP's implicit operations, Portals' matched puts and CCI's
// sends are all built from them, and each API maps them to its own words. What is asked for as a whole is a
// Request (transport/request.hpp).
namespace orrery::nic {

// Names memory that a process registered with its NIC. A value: it may be copied to any process, and means
// the same there. (uGNI carries it in gni_mem_handle_t.)
struct MemKey {
  std::uint64_t page = 0;        // first page of the registration: virtual address >> 12
  std::uint32_t page_count = 0;  // up to 2^28 pages
  std::uint16_t index = 0;       // registration-table entry, 12 bits: 4,096 handles is a real limit
  std::uint16_t generation = 0;  // 14 bits, never 0 in a key that names one registration
  std::uint16_t process = 0;     // slot of the process on its host, 10 bits
  std::uint8_t flags = 0;        // RegionFlags

  constexpr bool valid() const;
  // Whether it names an entry of the registration table by its number alone (mdh.hpp), and with that whatever
  // is registered there. A client that does not have the registration's key knows no more.
  constexpr bool is_number() const;
  friend constexpr bool operator==(const MemKey&, const MemKey&) = default;
};

inline constexpr std::uint32_t kMaxRegions = 4096;
// Completion queues are at most this deep: the names of their transactions have 24 bits in an event.
inline constexpr std::uint32_t kMaxQueueDepth = (1u << 24) - 1;
inline constexpr std::uint32_t kMaxGeneration = (1u << 14) - 1;
inline constexpr std::uint64_t kPageBytes = 4096;

// Properties of a registration. DO NOT CHANGE THE VALUES: they are in shared memory and in keys.
enum RegionFlags : std::uint8_t {
  kReadOnly = 1,   // no remote write, no AMO
  kSegmented = 2,  // addressed by offsets from 0 in a list of segments
  kSuspended = 4,  // its domain's traffic is stopped: nothing is granted; in the entry alone, not in keys
  // In keys alone: `index` is the number of an entry, or with kVirtual of a reserved entry of the domain, and
  // whatever is registered there is meant. `process` is a hint. With kAtTarget the target looks for it.
  kByNumber = 8,
  kVirtual = 16,
  kAtTarget = 32,
  // In entries and keys: the whole address space, mapped or not (memory/extent_map.hpp). No pages in the key.
  kSpace = 64,
};

// The addresses that such a registration reaches over: all of user space.
inline constexpr std::uint64_t kSpaceBytes = std::uint64_t{1} << 47;

constexpr bool MemKey::is_number() const { return (flags & kByNumber) != 0; }
constexpr bool MemKey::valid() const { return generation != 0 || (flags & kAtTarget) != 0; }

// What an API may ask for is what travels: put, get, amo, cq_write, send; message and credit are the
// mailboxes'. emu/wire/verb.hpp has a row of facts for each.
using Op = wire::Verb;

// How an operation is carried out and what it reports. One bit each.
enum RequestFlags : std::uint32_t {
  kLocalEvent = 1,      // an event in the initiator's queue when the source may be reused / the data is there
  kGlobalEvent = 2,     // an event in the initiator's queue when the target has it all
  kRemoteEvent = 4,     // an event in the target's queue
  kInOrder = 8,         // after everything that this process has on its way to the target's process
  kFence = 16,          // block transfers only: after every earlier one is complete everywhere, before every
                        // later one; so are their events
  kBlockTransfer = 32,  // by the BTE: may return before the source has been read
  kSyncFlag = 64,       // after the data, store `sync_value` at `sync_address` of the same region
  kLocalOffset = 256,   // `local` is segmented and `local_address` an offset in it: carried out by the BTE
  kResponseFlag = 512,  // a get or fetching AMO: behind what came, store the low 4 bytes of `sync_value`
  kLaunched = 1024,     // by FMA Launch: one wide store of the processor
};

enum class EventKind : std::uint8_t {
  none = 0,
  post = 1,      // initiator: a posted operation. data = transaction (24 bits) | kGlobal | user value << 32
  remote = 2,    // target: a peer's put, get or AMO. data = the sender's 32-bit remote value
  cq_write = 3,  // target: a peer's event write. data = 48 bits
  message_sent = 4,     // data = message id (32 bits) | transaction << 32
  message_arrived = 5,  // data = the sender's 32-bit remote value
  overrun = 6,          // this queue lost events here
  received = 7,         // target: a send filled a buffer. data = channel << 32 | buffer (channel.hpp)
  queued_sent = 8,      // a send to a shared queue was taken; data as of message_sent
  record = 9,           // a record lies beside the queue. data = serial << 32 | place (record_queue.hpp)
  collective = 16,      // a VCE's reduction ended: CeStatus << 48 | reduction (32 bits) << 14 | ce_id
};

// What kind of event tells a target's queue of an operation.
constexpr EventKind event_kind(Op op) {
  return op == Op::message ? EventKind::message_arrived : EventKind::remote;
}

// One completion-queue entry, before an API gives it its own shape.
struct Event {
  EventKind kind = EventKind::none;
  Errc status = Errc::ok;
  std::uint64_t data = 0;

  // Parts of a `post` event.
  static constexpr std::uint64_t kGlobal = 1u << 24;  // the target has it all; else: the source may be reused
  constexpr std::uint32_t transaction() const { return static_cast<std::uint32_t>(data) & 0xff'ffff; }
  constexpr bool global() const { return (data & kGlobal) != 0; }
  constexpr std::uint32_t user_value() const { return static_cast<std::uint32_t>(data >> 32); }
  static constexpr Event posted(std::uint32_t transaction, bool global, std::uint32_t user_value,
                                Errc status) {
    return {EventKind::post, status,
            transaction | (global ? kGlobal : 0) | static_cast<std::uint64_t>(user_value) << 32};
  }
  // Of a message: the thread that takes the event collects its transaction.
  static constexpr Event message_sent(std::uint32_t transaction, std::uint32_t id, Errc status) {
    return {EventKind::message_sent, status, id | static_cast<std::uint64_t>(transaction) << 32};
  }
};

}  // namespace orrery::nic
