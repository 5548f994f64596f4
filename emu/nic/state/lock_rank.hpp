// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/lock_order.hpp"
#include "emu/base/short_lock.hpp"

#include <mutex>

namespace orrery::nic {

// The locks of a NIC in the order in which a thread may wait for them while it holds others: downwards. A new
// lock takes a row here. (The locks that lie in segments are apart: a thread that holds one takes none of
// these but `shared_hazard`, `trigger_actions` and `errors`.)
enum class LockRank : int {
  runtime,      // while the process gets its runtime
  clock,        // while it gets its clock
  opened_wire,  // while the wire is opened
  record_queues,
  record_queue,        // consumers of a queue of records
  collective_packets,  // the packets of the collective engine that are handled
  collective,
  datagrams,  // records in use
  queues,
  moving,    // what is being moved into the memory file
  frames,    // the outbound side: outstanding requests, pending frames, the wire
  requests,  // the inbound side
  timed,
  ports,
  peers,
  contacts,  // with other processes, of the runtime
  extents,
  registrations,
  channels,
  counters,
  trigger_actions,
  delays,
  sequences,
  faults,
  device,
  translation,
  engine_start,
  wire_watch,
  arrivals,          // of the collective engine: held for a moment
  datagram_sources,  // held for a moment
  receive_queue,
  arena,
  errors,
  shared_hazard,  // held for one access
};

constexpr const char* name_of(LockRank rank) {
  constexpr const char* kNames[] = {"runtime",       "clock",        "opened_wire",
                                    "record_queues", "record_queue", "collective_packets",
                                    "collective",    "datagrams",    "queues",
                                    "moving",        "frames",       "requests",
                                    "timed",         "ports",        "peers",
                                    "contacts",      "extents",      "registrations",
                                    "channels",      "counters",     "trigger_actions",
                                    "delays",        "sequences",    "faults",
                                    "device",        "translation",  "engine_start",
                                    "wire_watch",    "arrivals",     "datagram_sources",
                                    "receive_queue", "arena",        "errors",
                                    "shared_hazard"};
  static_assert(sizeof kNames / sizeof *kNames == static_cast<int>(LockRank::shared_hazard) + 1);
  return kNames[static_cast<int>(rank)];
}

template <LockRank kRank>
using Lock = OrderedLock<std::mutex, kRank>;
template <LockRank kRank>
using QuickLock = OrderedLock<ShortLock, kRank>;

}  // namespace orrery::nic
