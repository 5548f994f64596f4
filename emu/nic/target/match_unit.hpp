// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/target/match_journal.hpp"
#include "emu/nic/target/match_state.hpp"

#include <cstdint>
#include <type_traits>

// The rules of a match unit: lists of entries that messages are matched with in order, messages that came
// before their entry, events, counters, triggers. Every function changes the state of a Session that its
// caller holds, moves no bytes and blocks on nothing. Any process that maps the state may call them.
namespace orrery::nic::match {

// A message as its target meets it.
struct Arrival {
  Move move = Move::put;
  std::uint8_t interface = 0;
  std::uint8_t operation = 0;
  std::uint8_t datatype = 0;
  std::uint32_t portal = 0;
  std::uint32_t uid = 0;
  ProcessId initiator;  // in the words of that interface: rank, or nid and pid
  std::uint64_t match_bits = 0;
  std::uint64_t remote_offset = 0;
  std::uint64_t length = 0;  // bytes that were asked for
  std::uint64_t header_data = 0;
  std::uint32_t jid = 0;     // Portals 3
  std::uint32_t access = 0;  // Portals 3: index of the target's Access
};

// What becomes of it.
struct Verdict {
  Fail fail = kDelivered;
  std::uint8_t list = kPriority;
  std::uint32_t entry = 0;       // index
  std::uint32_t unexpected = 0;  // index of the header that was kept, 0: none
  std::uint64_t start = 0;       // of the entry's memory
  std::uint32_t pieces = 0;      // of it, when it is not in one piece
  std::uint64_t offset = 0;      // where the message begins in it
  std::uint64_t moved = 0;       // bytes to move
  bool unlinked = false;         // the entry left its list with it
  bool no_ack = false;
  bool in_flight = false;    // the entry counts this message until finish()
  std::uint32_t link = 0;    // Portals 3: what its two events have in common
  std::uint32_t flight = 0;  // index of its Flight, 0: none
  std::uint32_t flight_generation = 0;
};

// A message whose bytes are being moved, from hold() to finish(): what it takes to end it where the process
// that moves them has died.
struct alignas(64) Flight {
  std::uint64_t mover;  // mover_of() that process; 0: not in use
  std::uint32_t generation;
  std::uint32_t free_next;
  Arrival arrival;
  Verdict verdict;
};
static_assert(sizeof(Flight) == kFlightBytes && std::is_trivially_copyable_v<Flight>);
// A process of this host, by its place in the job's directory.
constexpr std::uint64_t mover_of(std::uint32_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | (slot + 1);
}
constexpr std::uint32_t slot_of(std::uint64_t mover) { return static_cast<std::uint32_t>(mover) - 1; }
constexpr std::uint32_t generation_of(std::uint64_t mover) { return static_cast<std::uint32_t>(mover >> 32); }
inline Flight& flight_of(const View& view, std::uint32_t i) {
  return reinterpret_cast<Flight*>(view.base() + view.header().flights)[i];
}

// ---- messages ----
// Finds the entry for a message, by list order: priority, then overflow; then decides whether it is allowed.
// With fail == kDelivered the caller moves `moved` bytes and calls finish(); else nothing was taken. `mover`:
// mover_of() the process that moves them, for whose death the unit's owner can end the message; 0: unknown.
Verdict accept(Session& session, const Arrival& arrival, std::uint64_t mover = 0);
// The same, for a message that the same session may finish(): it is not counted as in flight yet. hold()
// counts it, where finish() comes in another session.
Verdict decide(Session& session, const Arrival& arrival);
void hold(Session& session, const Arrival& arrival, Verdict* verdict, std::uint64_t mover = 0);
// The bytes are there (ok), or could not be moved (segv). Raises the entry's events and counts. Of a message
// that could not be moved no header is kept. Does nothing for one that end_flight() has ended.
void finish(Session& session, const Arrival& arrival, const Verdict& verdict, Fail outcome);
// Ends a message that is in flight as undeliverable. REQUIRES: its mover has died, or left the job.
void end_flight(Session& session, std::uint32_t flight);
// Ends those whose mover is gone. is_gone(mover) is called under the lock: it blocks on nothing.
template <typename IsGone>
void end_flights(Session& session, IsGone is_gone) {
  const Pool& pool = session.view().header().flight_pool;
  for (std::uint32_t i = 1; i < pool.fresh && pool.in_use != 0; ++i) {
    const std::uint64_t mover = flight_of(session.view(), i).mover;
    if (mover == 0 || !is_gone(mover)) continue;
    end_flight(session, i);
    session.commit_if_long();
  }
}

// ---- entries ----
struct NewEntry {
  std::uint8_t interface = 0;
  List list = kPriority;
  std::uint32_t portal = 0;
  std::uint32_t options = 0;
  std::uint64_t start = 0;
  std::uint64_t length = 0;
  std::uint32_t pieces = 0;
  std::uint32_t uid = kAny;
  std::uint32_t counter = 0;
  std::uint64_t match_bits = 0;
  std::uint64_t ignore_bits = 0;
  ProcessId source{kAny, kAny};
  std::uint64_t min_free = 0;
  std::uint64_t user = 0;
};
struct Appended {
  std::uint32_t entry = 0;  // index; may be free again already when messages that had come used it up
  std::uint32_t generation = 0;
};
// Takes unexpected messages that the entry matches (priority list), then links it at the end of its list.
// Errors: invalid_param (no such portal), no_resource (pool or limit), size (the list is too long).
Result<Appended> append(Session& session, const NewEntry& what);
// Errors: invalid_handle, not_done (unexpected headers name it, or a message into it is in flight: then it
// takes no more messages until unlink() is called again and succeeds, or keep() is).
Status unlink(Session& session, std::uint32_t entry, std::uint32_t generation);
void keep(Session& session, std::uint32_t entry, std::uint32_t generation);
// Looks among unexpected messages, and raises what was found in the portal's queue. `remove`: takes the first
// (use once) or all. Errors: invalid_param.
Status search(Session& session, const NewEntry& what, bool remove);

// ---- portals ----
Result<std::uint32_t> open_portal(Session& session, std::uint32_t interface, std::uint32_t wanted,
                                  std::uint32_t options, std::uint32_t queue);
// Errors: invalid_param, not_done (entries or headers).
Status close_portal(Session& session, std::uint32_t interface, std::uint32_t portal);

void forget_entries(Session& session, std::uint32_t interface);
// Everything that an interface still has goes: entries, headers, queues, counters, triggers.
void forget_interface(Session& session, std::uint32_t interface);

// ---- event queues ----
inline constexpr std::uint32_t kSpareSlots = 64;  // behind `count`, for events that must not be lost
void raise(Session& session, std::uint32_t queue, const EventRecord& event, bool from_spare = false);
enum class Took : std::uint8_t { empty, event, event_after_loss };
// The owner's threads, any number, without the lock: events of changes that stand. `position`: of the event.
Took take(const View& view, std::uint32_t queue, EventRecord* event, std::uint64_t* position = nullptr);
// Flow control stopped a portal while the queue had no room for the event: raises it, for every portal of
// that queue, as far as there is room. The queue's owner calls it when it finds the queue empty.
inline bool has_untold_stops(const View& view) {
  return std::atomic_ref<std::uint32_t>(view.header().untold_stops).load(std::memory_order_relaxed) != 0;
}
void tell_stops(Session& session, std::uint32_t queue);
// How many have not been taken. REQUIRES: a session.
std::uint64_t events_waiting(EventQueue& queue);

// ---- counters and triggers ----
void count(Session& session, std::uint32_t counter, std::uint64_t success, std::uint64_t failure);
void set_counter(Session& session, std::uint32_t counter, std::uint64_t success, std::uint64_t failure);
// A thread that is about to sleep until success >= test or failure != 0: the counter keeps the first value
// for which that holds (seen_success, seen_failure). False: it holds already, or another thread watches. The
// thread that watches calls unwatch() at the end.
bool watch(Session& session, std::uint32_t counter, std::uint64_t test);
void unwatch(Session& session, std::uint32_t counter);
// Keeps `operation` until success + failure of `counter` reach `threshold`; it is due at once when they have.
// Errors: no_resource.
Status arm(Session& session, std::uint32_t counter, std::uint64_t threshold, const Operation& operation);
void cancel(Session& session, std::uint32_t counter);
// Takes the oldest trigger that is due. False: none is.
bool take_due(Session& session, Operation* operation);
inline bool has_due(const View& view) {
  return std::atomic_ref<std::uint32_t>(view.header().due_first).load(std::memory_order_relaxed) != 0;
}

// ---- pools ----
// A free item's index, 0 when all are in use. `item(i)` is the item.
template <typename Item>
std::uint32_t allocate(Session& session, Pool& pool, Item item) {
  std::uint32_t index = pool.free_first;
  if (index != 0) {
    session.set(pool.free_first, item(index).free_next);
  } else {
    if (pool.fresh >= pool.capacity) return 0;
    index = pool.fresh;
    session.set(pool.fresh, index + 1);
  }
  session.set(pool.in_use, pool.in_use + 1);
  return index;
}
template <typename Item>
void give_back(Session& session, Pool& pool, std::uint32_t index, Item item) {
  session.set(item(index).free_next, pool.free_first);
  session.set(pool.free_first, index);
  session.set(pool.in_use, pool.in_use - 1);
}

}  // namespace orrery::nic::match
