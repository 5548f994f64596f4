// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/match_unit.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

// How an event is put in its queue, and a counter counts. In line: each message does it, under the lock of
// its target's match unit.
namespace orrery::nic::match::in_line {

// Events are read while a producer may write the next one over a lost one: word by word, so that both see
// whole words.
inline void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_release);
}
inline std::uint64_t load(std::uint64_t& word) {
  return std::atomic_ref<std::uint64_t>(word).load(std::memory_order_acquire);
}

// The first line of a slot:
//   0..3  start, user, header_data, match_bits
//   4     asked | remote_offset << 32
//   5     nid | uid << 32
//   6     pid : 16, portal : 16, type : 8, fail : 8, operation : 6, datatype : 6, list : 1, kHasRest
// Without kHasRest, `moved` is `asked` and what the second line holds is 0.
inline constexpr std::uint64_t kHasRest = std::uint64_t{1} << 63;

constexpr std::uint64_t pair(std::uint64_t low, std::uint64_t high) {
  return (low & UINT32_MAX) | high << 32;
}

[[gnu::always_inline]] inline void pack(const EventRecord& event, EventSlot& slot) {
  store(slot.line[0], event.start);
  store(slot.line[1], event.user);
  store(slot.line[2], event.header_data);
  store(slot.line[3], event.match_bits);
  store(slot.line[4], pair(event.asked, event.remote_offset));
  store(slot.line[5], pair(event.initiator.nid, event.uid));
  const bool has_rest = event.moved != event.asked || ((event.asked | event.remote_offset) >> 32) != 0 ||
                        event.initiator.pid > 0xffff ||
                        (event.descriptor | event.link | event.jid | event.options |
                         static_cast<std::uint32_t>(event.threshold)) != 0 ||
                        (event.length | event.max_size) != 0;
  const std::uint64_t word = (event.initiator.pid & 0xffff) | std::uint64_t{event.portal & 0xffff} << 16 |
                             std::uint64_t{event.type} << 32 | std::uint64_t{event.fail} << 40 |
                             std::uint64_t{event.operation & 0x3fu} << 48 |
                             std::uint64_t{event.datatype & 0x3fu} << 54 |
                             std::uint64_t{event.list & 1u} << 60;
  store(slot.line[6], has_rest ? word | kHasRest : word);
  if (!has_rest) return;
  store(slot.rest[0], event.asked);
  store(slot.rest[1], event.moved);
  store(slot.rest[2], event.remote_offset);
  store(slot.rest[3], pair(event.initiator.pid, event.jid));
  store(slot.rest[4], pair(event.descriptor, event.link));
  store(slot.rest[5], pair(event.options, static_cast<std::uint32_t>(event.threshold)));
  store(slot.rest[6], event.length);
  store(slot.rest[7], event.max_size);
}

inline void unpack(EventSlot& slot, EventRecord* event) {
  *event = {};
  event->start = load(slot.line[0]);
  event->user = load(slot.line[1]);
  event->header_data = load(slot.line[2]);
  event->match_bits = load(slot.line[3]);
  const std::uint64_t sizes = load(slot.line[4]);
  event->asked = event->moved = sizes & UINT32_MAX;
  event->remote_offset = sizes >> 32;
  const std::uint64_t names = load(slot.line[5]);
  event->initiator.nid = static_cast<std::uint32_t>(names);
  event->uid = static_cast<std::uint32_t>(names >> 32);
  const std::uint64_t word = load(slot.line[6]);
  event->initiator.pid = word & 0xffff;
  event->portal = word >> 16 & 0xffff;
  event->type = static_cast<std::uint8_t>(word >> 32);
  event->fail = static_cast<std::uint8_t>(word >> 40);
  event->operation = word >> 48 & 0x3f;
  event->datatype = word >> 54 & 0x3f;
  event->list = word >> 60 & 1;
  if ((word & kHasRest) == 0) return;
  event->asked = load(slot.rest[0]);
  event->moved = load(slot.rest[1]);
  event->remote_offset = load(slot.rest[2]);
  const std::uint64_t ids = load(slot.rest[3]);
  event->initiator.pid = static_cast<std::uint32_t>(ids);
  event->jid = static_cast<std::uint32_t>(ids >> 32);
  const std::uint64_t places = load(slot.rest[4]);
  event->descriptor = static_cast<std::uint32_t>(places);
  event->link = static_cast<std::uint32_t>(places >> 32);
  const std::uint64_t rules = load(slot.rest[5]);
  event->options = static_cast<std::uint32_t>(rules);
  event->threshold = static_cast<std::int32_t>(rules >> 32);
  event->length = load(slot.rest[6]);
  event->max_size = load(slot.rest[7]);
}

[[gnu::always_inline]] inline void raise(Session& session, std::uint32_t index, const EventRecord& event,
                                         bool from_spare) {
  if (index == 0) return;
  EventQueue& queue = session.view().queue(index);
  if (queue.used == 0) return;
  const std::uint64_t room = queue.capacity - (from_spare ? 0 : kSpareSlots);
  if (queue.tail - std::max(queue.known_head, queue.floor) >= room && events_waiting(queue) >= room) {
    // A full ring loses its oldest event, and its owner is told with the next one.
    session.set(queue.floor, std::max(queue.known_head, queue.floor) + 1);
    // An owner that reads a word of what is written over it sees that: each is stored with release.
  }
  EventSlot& slot = session.view().slot(queue, queue.tail);
  pack(event, slot);
  session.publish_later(slot, queue.tail);
  session.set(queue.tail, queue.tail + 1);
  session.wake_later();
}

inline void set_success(Session& session, Counter& counter, std::uint64_t value) {
  session.set_from(counter.shown_success, counter.success, value);
  session.set(counter.success, value);
}
inline void set_failure(Session& session, Counter& counter, std::uint64_t value) {
  session.set_from(counter.shown_failure, counter.failure, value);
  session.set(counter.failure, value);
}

}  // namespace orrery::nic::match::in_line
