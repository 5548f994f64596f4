// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/match_find.hpp"
#include "emu/nic/target/match_raise.hpp"

#include <cstdint>

// The message that a match unit meets most: a put or get of Portals 4 that the first entry of the priority
// list takes, which stays as it is. Only the entry's queue and counter hear of it.
namespace orrery::nic::match {

// The event of a message that lies at `start`, delivered from the priority list; `moved` is not set.
[[gnu::always_inline]] inline EventRecord event_of(const Arrival& arrival, std::uint64_t user,
                                                   std::uint64_t start) {
  EventRecord event{};
  event.type = static_cast<std::uint8_t>(2 * static_cast<int>(arrival.move));
  event.list = kPriority;
  event.start = start;
  event.user = user;
  event.header_data = arrival.header_data;
  event.match_bits = arrival.match_bits;
  event.asked = arrival.length;
  event.remote_offset = arrival.remote_offset;
  event.initiator = arrival.initiator;
  event.uid = arrival.uid;
  event.portal = arrival.portal;
  event.operation = arrival.operation;
  event.datatype = arrival.datatype;
  event.fail = kDelivered;
  return event;
}

// What decide() and finish() do for such a message, in few instructions. `move(address, bytes)` moves them,
// and says whether it could; it runs under the lock (rule 4 of Session). False: nothing has happened, and
// the message is one for decide(). `place`: where the bytes are in the entry's memory.
// REQUIRES: arrival.move is put or get.
template <typename MoveBytes>
[[gnu::always_inline]] inline bool deliver_plain(Session& session, const Arrival& arrival, Place* place,
                                                 MoveBytes move) {
  constexpr std::uint32_t kNotPlain = kUseOnce | kManageLocal | kAckDisable | kClassic;
  const View& view = session.view();
  if (arrival.interface >= kInterfaces) return false;
  const Interface& interface = view.interface(arrival.interface);
  if (interface.open == 0 || (interface.options & kClassicInterface) != 0 ||
      arrival.portal >= interface.portals)
    return false;
  const PortalEntry& portal = view.portal(arrival.interface, arrival.portal);
  if (portal.allocated == 0 || portal.enabled == 0 || (portal.options & kFlowControl) != 0) return false;
  const std::uint32_t index = find_entry(view, portal, kPriority, arrival);
  if (index == 0) return false;
  const Entry& entry = view.entry(index);
  const std::uint32_t needed = arrival.move == Move::put ? kOpPut : kOpGet;
  if ((entry.options & (kNotPlain | needed)) != needed) return false;
  if (entry.pieces != 0) return false;
  if (entry.uid != kAny && entry.uid != arrival.uid) return false;
  const bool counts = (entry.options & kCountComm) != 0 && entry.counter != 0;
  Counter& counter = view.counter(entry.counter);
  if (counts && (counter.used == 0 || counter.first != 0 || counter.watched != 0)) return false;

  *place = place_in(entry.options, entry.length, entry.local_offset, arrival.remote_offset, arrival.length);
  const std::uint64_t address = entry.start + place->offset;
  if (place->moved != 0 && !move(address, place->moved)) return false;
  if ((entry.options & (kNoCommEvent | kNoSuccessEvent)) == 0 && portal.queue != 0) {
    EventRecord event = event_of(arrival, entry.user, address);
    event.moved = place->moved;
    in_line::raise(session, portal.queue, event, false);
  }
  if (counts) {
    const std::uint64_t by = (entry.options & kCountBytes) != 0 ? place->moved : 1;
    if (by != 0) in_line::set_success(session, counter, counter.success + by);
    session.wake_later();
  }
  return true;
}

}  // namespace orrery::nic::match
