// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/match_unit.hpp"

#include "emu/nic/target/match_classic.hpp"
#include "emu/nic/target/match_find.hpp"
#include "emu/nic/target/match_lists.hpp"
#include "emu/nic/target/match_plain.hpp"

#include <algorithm>

namespace orrery::nic::match {

namespace {

// A message can raise so many events at its target: its own, the entry's unlinking and freeing.
constexpr std::uint64_t kEventsOfAMessage = 3;

EventRecord event_of(const Entry& entry, std::uint8_t type) {
  EventRecord event{};
  event.type = type;
  event.list = entry.list;
  event.user = entry.user;
  event.portal = entry.portal;
  event.start = entry.start;
  event.match_bits = entry.match_bits;
  return event;
}

void tell_unlinked(Session& session, const Entry& entry, bool from_spare = false) {
  if ((entry.options & kNoUnlinkEvent) != 0) return;
  raise(session, session.view().portal(entry.interface, entry.portal).queue,
        event_of(entry, kEventAutoUnlink), from_spare);
}

// An entry that left its list by itself goes when nothing needs it any more.
void free_if_done(Session& session, std::uint32_t index, bool from_spare = false) {
  const Entry& entry = session.view().entry(index);
  if (entry.state != kUnlinked || entry.in_flight != 0 || entry.held != 0) return;
  if (entry.list == kOverflow && (entry.options & kNoUnlinkEvent) == 0)
    raise(session, session.view().portal(entry.interface, entry.portal).queue,
          event_of(entry, kEventAutoFree), from_spare);
  free_entry(session, index);
}

EventRecord event_of(const Unexpected& header, std::uint64_t user) {
  EventRecord event{};
  event.type = header.type;
  event.list = kOverflow;
  event.start = header.start;
  event.user = user;
  event.header_data = header.header_data;
  event.match_bits = header.match_bits;
  event.asked = header.asked;
  event.moved = header.moved;
  event.remote_offset = header.remote_offset;
  event.initiator = header.initiator;
  event.uid = header.uid;
  event.portal = header.portal;
  event.operation = header.operation;
  event.datatype = header.datatype;
  return event;
}

// An entry, or a search, has taken the header: its event, once the bytes are there or will not be.
void deliver_claim(Session& session, const Unexpected& header, std::uint64_t user, std::uint32_t options,
                   std::uint32_t counter, Fail outcome = kDelivered) {
  const bool failed = outcome != kDelivered;
  if ((options & kNoOverflowEvent) == 0 && (failed || (options & kNoSuccessEvent) == 0)) {
    EventRecord event = event_of(header, user);
    event.moved = failed ? 0 : header.moved;
    event.fail = outcome;
    raise(session, session.view().portal(header.interface, header.portal).queue, event);
  }
  if ((options & kCountOverflow) != 0) {
    const std::uint64_t done = (options & kCountBytes) != 0 ? header.moved : 1;
    count(session, counter, failed ? 0 : done, failed ? 1 : 0);
  }
}

void claim(Session& session, std::uint32_t index, const NewEntry& what) {
  const View& view = session.view();
  Unexpected& header = view.unexpected(index);
  unlink_header(session, index);
  if (header.arriving != 0) {
    session.set(header.claim_user, what.user);
    session.set(header.claim_counter, what.counter);
    session.set(header.claim_options, what.options);
    session.set(header.claimed, std::uint8_t{1});
    return;  // finish() tells, and lets the header go
  }
  deliver_claim(session, header, what.user, what.options, what.counter);
  Entry& holder = view.entry(header.entry);
  session.set(holder.held, holder.held - 1);
  const std::uint32_t entry = header.entry;
  free_header(session, index);
  free_if_done(session, entry);
}

// Whether no more than `limit` events of a queue have not been taken.
bool waits_at_most(EventQueue& queue, std::uint64_t limit) {
  return queue.tail - std::max(queue.known_head, queue.floor) <= limit || events_waiting(queue) <= limit;
}

// Whether a portal under flow control can take a message that raises `events` events. The queue is full when
// `count` events wait in it; those behind the first of a message lie in the spare slots. So do those of
// messages under way, for which room is kept.
bool queue_has_room(const View& view, const PortalEntry& portal, std::uint64_t events) {
  if (portal.queue == 0 || events == 0) return true;
  EventQueue& queue = view.queue(portal.queue);
  const std::uint64_t to_come = kEventsOfAMessage * portal.in_flight + events;
  if (queue.capacity <= kSpareSlots || queue.capacity < to_come) return false;
  return waits_at_most(queue, std::min(queue.capacity - kSpareSlots - 1, queue.capacity - to_come));
}

// Events that a message raises at the end, at most, by which of its entry's options.
std::uint64_t events_of(const Entry& entry, List list, bool unlinks) {
  std::uint64_t events = (entry.options & (kNoCommEvent | kNoSuccessEvent)) == 0 ? 1 : 0;
  if (unlinks && (entry.options & kNoUnlinkEvent) == 0) events += list == kOverflow ? 2 : 1;
  return events;
}

// The event of a portal that flow control has stopped. False: its queue has no room. Half of the spare slots
// stay for messages; an empty queue always has room.
bool tell_stop(Session& session, const PortalEntry& portal, std::uint32_t index) {
  EventQueue& queue = session.view().queue(portal.queue);
  const std::uint64_t kept = kSpareSlots / 2 + kEventsOfAMessage * portal.in_flight + 1;
  const std::uint64_t limit = queue.capacity < kept ? 0 : queue.capacity - kept;
  if (queue.used != 0 && !waits_at_most(queue, limit)) return false;
  EventRecord event{};
  event.type = kEventPortalDisabled;
  event.portal = index;
  event.fail = kPortalDisabled;
  raise(session, portal.queue, event, /*from_spare=*/true);
  return true;
}

// Flow control: the portal stops, its owner is told once, and this message is the first that is refused.
Verdict stop_portal(Session& session, PortalEntry& portal, const Arrival& arrival, bool tell) {
  session.set(portal.enabled, 0u);
  if (tell && (portal.allocated & kStopUntold) == 0 && !tell_stop(session, portal, arrival.portal)) {
    std::uint32_t& untold = session.view().header().untold_stops;
    session.set(portal.allocated, portal.allocated | kStopUntold);
    session.set(untold, untold + 1);
    session.wake_later();  // an owner that has emptied the queue meanwhile looks again
  }
  return {.fail = kPortalDisabled};
}

Verdict refuse(Session& session, Interface& interface, int which, Fail fail) {
  session.set(interface.status[which], interface.status[which] + 1);
  return {.fail = fail};
}

}  // namespace

Verdict decide(Session& session, const Arrival& arrival) {
  const View& view = session.view();
  if (arrival.interface >= kInterfaces) return {.fail = kUndeliverable};
  Interface& interface = view.interface(arrival.interface);
  if (interface.open == 0) return {.fail = kUndeliverable};
  if ((interface.options & kClassicInterface) != 0) return classic::accept(session, arrival);
  if (arrival.portal >= interface.portals || view.portal(arrival.interface, arrival.portal).allocated == 0)
    return refuse(session, interface, 0, kDropped);
  PortalEntry& portal = view.portal(arrival.interface, arrival.portal);
  if (portal.enabled == 0) return refuse(session, interface, 0, kPortalDisabled);
  const bool flow_control = (portal.options & kFlowControl) != 0;

  List list = kPriority;
  std::uint32_t index = find_entry(view, portal, kPriority, arrival);
  if (index == 0) {
    list = kOverflow;
    index = find_entry(view, portal, kOverflow, arrival);
  }
  if (index == 0) {
    if (flow_control) return stop_portal(session, portal, arrival, true);
    return refuse(session, interface, 0, kDropped);
  }
  Entry& entry = view.entry(index);

  // Found; now whether it is allowed. A message that is not goes no further.
  const bool reads = arrival.move == Move::get || arrival.move == Move::fetch_atomic;
  const bool writes = arrival.move != Move::get;
  if ((reads && (entry.options & kOpGet) == 0) || (writes && (entry.options & kOpPut) == 0))
    return refuse(session, interface, 2, kOperationViolation);
  if (entry.uid != kAny && entry.uid != arrival.uid)
    return refuse(session, interface, 1, kPermissionViolation);

  const bool needs_header = list == kOverflow && (entry.options & kNoUnexpectedHeader) == 0;
  const Place place =
      place_in(entry.options, entry.length, entry.local_offset, arrival.remote_offset, arrival.length);
  const bool manages = (entry.options & kManageLocal) != 0;
  const bool unlinks =
      (entry.options & kUseOnce) != 0 ||
      (manages && entry.min_free != 0 && entry.length - entry.local_offset - place.moved < entry.min_free);
  if (flow_control && !queue_has_room(view, portal, events_of(entry, list, unlinks)))
    return stop_portal(session, portal, arrival, (entry.options & kNoFlowControlEvent) == 0);
  std::uint32_t kept = 0;
  if (needs_header) {
    if (interface.headers < interface.max_headers)
      kept = allocate(session, view.header().header_pool,
                      [&](std::uint32_t i) -> Unexpected& { return view.unexpected(i); });
    if (kept == 0) {
      if (flow_control) return stop_portal(session, portal, arrival, true);
      return refuse(session, interface, 0, kDropped);
    }
    session.set(interface.headers, interface.headers + 1);
  }

  Verdict verdict{.list = list,
                  .entry = index,
                  .unexpected = kept,
                  .start = entry.start,
                  .pieces = entry.pieces,
                  .offset = place.offset,
                  .moved = place.moved,
                  .no_ack = (entry.options & kAckDisable) != 0};
  if (manages) session.set(entry.local_offset, entry.local_offset + place.moved);
  if (kept != 0) {
    Unexpected& header = view.unexpected(kept);
    header.match_bits = arrival.match_bits;
    header.start = entry.pieces == 0 ? entry.start + place.offset : entry.start;
    header.header_data = arrival.header_data;
    header.asked = arrival.length;
    header.moved = place.moved;
    header.remote_offset = arrival.remote_offset;
    header.initiator = arrival.initiator;
    header.uid = arrival.uid;
    header.entry = index;
    header.portal = static_cast<std::uint16_t>(arrival.portal);
    header.interface = arrival.interface;
    header.type = static_cast<std::uint8_t>(2 * static_cast<int>(arrival.move) + 1);
    header.operation = arrival.operation;
    header.datatype = arrival.datatype;
    header.arriving = 1;
    header.claimed = 0;
    link_header(session, kept);
    session.set(entry.held, entry.held + 1);
  }
  if (unlinks) {
    unlink_entry(session, index);
    verdict.unlinked = true;
  }
  return verdict;
}

void tell_stops(Session& session, std::uint32_t queue) {
  const View& view = session.view();
  Header& header = view.header();
  const std::uint32_t interface = view.queue(queue).interface;
  for (std::uint32_t i = 0; i < kMaxPortals && header.untold_stops != 0; ++i) {
    PortalEntry& portal = view.portal(interface, i);
    if ((portal.allocated & kStopUntold) == 0 || portal.queue != queue) continue;
    if (!tell_stop(session, portal, i)) return;
    session.set(portal.allocated, portal.allocated & ~std::uint32_t{kStopUntold});
    session.set(header.untold_stops, header.untold_stops - 1);
    session.commit_if_long();
  }
}

void hold(Session& session, const Arrival& arrival, Verdict* verdict, std::uint64_t mover) {
  if (verdict->fail != kDelivered || verdict->in_flight) return;
  Entry& entry = session.view().entry(verdict->entry);
  PortalEntry& portal = session.view().portal(arrival.interface, arrival.portal);
  session.set(entry.in_flight, entry.in_flight + 1);
  session.set(portal.in_flight, portal.in_flight + 1);
  verdict->in_flight = true;
  if (mover == 0) return;
  const View& view = session.view();
  verdict->flight = allocate(session, view.header().flight_pool,
                             [&](std::uint32_t i) -> Flight& { return flight_of(view, i); });
  if (verdict->flight == 0) return;
  Flight& flight = flight_of(view, verdict->flight);
  verdict->flight_generation = flight.generation;
  flight.arrival = arrival;
  flight.verdict = *verdict;
  session.set(flight.mover, mover);
}

void end_flight(Session& session, std::uint32_t index) {
  const View& view = session.view();
  const Arrival arrival = flight_of(view, index).arrival;
  const Verdict verdict = flight_of(view, index).verdict;
  finish(session, arrival, verdict, kUndeliverable);
}

Verdict accept(Session& session, const Arrival& arrival, std::uint64_t mover) {
  Verdict verdict = decide(session, arrival);
  hold(session, arrival, &verdict, mover);
  return verdict;
}

void finish(Session& session, const Arrival& arrival, const Verdict& verdict, Fail outcome) {
  const View& view = session.view();
  Entry& entry = view.entry(verdict.entry);
  if ((entry.options & kClassic) != 0) return classic::finish(session, arrival, verdict, outcome);
  if (verdict.flight != 0) {
    Flight& flight = flight_of(view, verdict.flight);
    if (flight.mover == 0 || flight.generation != verdict.flight_generation) return;
    session.set(flight.mover, std::uint64_t{0});
    session.set(flight.generation, flight.generation + 1);
    give_back(session, view.header().flight_pool, verdict.flight,
              [&](std::uint32_t i) -> Flight& { return flight_of(view, i); });
  }
  PortalEntry& portal = view.portal(entry.interface, entry.portal);
  // What decide() found room for may lie behind `count`: the queue has filled up since, or it is the second
  // event of this message.
  const bool flow_control = (portal.options & kFlowControl) != 0;
  if (verdict.in_flight) {
    session.set(entry.in_flight, entry.in_flight - 1);
    session.set(portal.in_flight, portal.in_flight - 1);
  }
  const bool failed = outcome != kDelivered;
  if ((entry.options & kNoCommEvent) == 0 && (failed || (entry.options & kNoSuccessEvent) == 0)) {
    EventRecord event =
        event_of(arrival, entry.user, entry.pieces == 0 ? entry.start + verdict.offset : entry.start);
    event.list = verdict.list;
    event.moved = failed ? 0 : verdict.moved;
    event.fail = outcome;
    raise(session, portal.queue, event, flow_control);
  }
  if ((entry.options & kCountComm) != 0)
    count(session, entry.counter,
          failed                               ? 0
          : (entry.options & kCountBytes) != 0 ? verdict.moved
                                               : 1,
          failed ? 1 : 0);
  if (verdict.unexpected != 0) {
    Unexpected& header = view.unexpected(verdict.unexpected);
    session.set(header.arriving, std::uint8_t{0});
    if (header.claimed != 0)
      deliver_claim(session, header, header.claim_user, header.claim_options, header.claim_counter, outcome);
    else if (failed)
      unlink_header(session, verdict.unexpected);  // no entry takes what did not come
    if (header.claimed != 0 || failed) {
      session.set(entry.held, entry.held - 1);
      free_header(session, verdict.unexpected);
    }
  }
  if (verdict.unlinked) tell_unlinked(session, entry, flow_control);
  free_if_done(session, verdict.entry, flow_control);
}

Result<Appended> append(Session& session, const NewEntry& what) {
  const View& view = session.view();
  Interface& interface = view.interface(what.interface);
  if (what.portal >= interface.portals) return Errc::invalid_param;
  PortalEntry& portal = view.portal(what.interface, what.portal);
  if (portal.allocated == 0) return Errc::invalid_param;
  if (portal.count[what.list] >= interface.max_list) return Errc::size;
  if (interface.entries >= interface.max_entries) return Errc::no_resource;
  const std::uint32_t index =
      allocate(session, view.header().entry_pool, [&](std::uint32_t i) -> Entry& { return view.entry(i); });
  if (index == 0) return Errc::no_resource;
  session.set(interface.entries, interface.entries + 1);
  Entry& entry = view.entry(index);
  entry.match_bits = what.match_bits;
  entry.ignore_bits = what.ignore_bits;
  entry.source = what.source;
  entry.options = what.options;
  entry.start = what.start;
  entry.length = what.length;
  entry.pieces = what.pieces;
  entry.local_offset = 0;
  entry.min_free = what.min_free;
  entry.user = what.user;
  entry.uid = what.uid;
  entry.counter = what.counter;
  entry.in_flight = entry.held = 0;
  entry.portal = static_cast<std::uint16_t>(what.portal);
  entry.interface = what.interface;
  entry.list = what.list;
  entry.exact = what.ignore_bits == 0 ? 1 : 0;
  const Appended appended{index, entry.generation};

  while (what.list == kPriority) {
    const std::uint32_t header = find_header(view, what, entry.local_offset);
    if (header == 0) break;
    // The bytes are in the overflow entry: they take up room here only where that was asked for.
    const bool takes_room = (what.options & kManageLocal) != 0 && (what.options & kUnexpectedByLength) != 0;
    if (takes_room) session.set(entry.local_offset, entry.local_offset + view.unexpected(header).asked);
    claim(session, header, what);
    const bool exhausted =
        takes_room && what.min_free != 0 &&
        (entry.local_offset > entry.length || entry.length - entry.local_offset < what.min_free);
    if ((what.options & kUseOnce) != 0 || exhausted) {
      tell_unlinked(session, entry);
      free_entry(session, index);
      return appended;
    }
    session.commit_if_long();
  }
  link_entry(session, index);
  if ((what.options & kNoLinkEvent) == 0) raise(session, portal.queue, event_of(entry, kEventLink));
  return appended;
}

void keep(Session& session, std::uint32_t index, std::uint32_t generation) {
  Entry& entry = session.view().entry(index);
  if (entry.state == kClosing && entry.generation == generation)
    session.set(entry.state, std::uint8_t{kLinked});
}

Status unlink(Session& session, std::uint32_t index, std::uint32_t generation) {
  const View& view = session.view();
  if (index == 0 || index >= view.header().entry_pool.fresh) return Errc::invalid_handle;
  const Entry& entry = view.entry(index);
  if (entry.state == kFree || entry.generation != generation) return Errc::invalid_handle;
  if (entry.state == kUnlinked || entry.held != 0) return Errc::not_done;
  if (entry.in_flight != 0) {
    session.set(view.entry(index).state, std::uint8_t{kClosing});
    return Errc::not_done;
  }
  unlink_entry(session, index);
  free_entry(session, index);
  return {};
}

void forget_entries(Session& session, std::uint32_t interface) {
  const View& view = session.view();
  for (std::uint32_t p = 0; p < kMaxPortals; ++p) {
    PortalEntry& portal = view.portal(interface, p);
    while (portal.header_first != 0) {
      const std::uint32_t index = portal.header_first;
      Unexpected& header = view.unexpected(index);
      Entry& holder = view.entry(header.entry);
      unlink_header(session, index);
      if (header.arriving != 0) {  // finish() lets it go, and tells nothing
        session.set(header.claim_options, std::uint32_t{kNoOverflowEvent});
        session.set(header.claim_counter, 0u);
        session.set(header.claimed, std::uint8_t{1});
      } else {
        session.set(holder.held, holder.held - 1);
        free_header(session, index);
      }
      session.commit_if_long();
    }
  }
  for (std::uint32_t i = 1; i < view.header().entry_pool.fresh; ++i) {
    Entry& entry = view.entry(i);
    if (entry.state == kFree || entry.interface != interface) continue;
    if (entry.state == kLinked || entry.state == kClosing) unlink_entry(session, i);
    if (entry.in_flight == 0) free_entry(session, i);
    session.commit_if_long();
  }
}

Status search(Session& session, const NewEntry& what, bool remove) {
  const View& view = session.view();
  if (what.portal >= view.interface(what.interface).portals) return Errc::invalid_param;
  PortalEntry& portal = view.portal(what.interface, what.portal);
  if (portal.allocated == 0) return Errc::invalid_param;
  // Each message that is found is told; a search that is not for one alone ends with a failure, counted, and
  // with an event when nothing was found.
  bool found = false;
  std::uint32_t after = 0;
  for (;;) {
    const std::uint32_t index = find_header(view, what, 0, after);
    if (index == 0) break;
    found = true;
    if (remove) {
      claim(session, index, what);
    } else {
      EventRecord event = event_of(view.unexpected(index), what.user);
      event.type = kEventSearch;
      if ((what.options & (kNoCommEvent | kNoSuccessEvent)) == 0) raise(session, portal.queue, event);
      if ((what.options & kCountOverflow) != 0)
        count(session, what.counter, (what.options & kCountBytes) != 0 ? event.moved : 1, 0);
      after = index;
    }
    if ((what.options & kUseOnce) != 0) return {};
    session.commit_if_long();
  }
  if ((what.options & kCountOverflow) != 0) count(session, what.counter, 0, 1);
  if (found || (what.options & kNoCommEvent) != 0) return {};
  EventRecord event{};
  event.type = kEventSearch;
  event.fail = kNoMatch;
  event.user = what.user;
  event.portal = what.portal;
  event.match_bits = what.match_bits;
  raise(session, portal.queue, event);
  return {};
}

}  // namespace orrery::nic::match
