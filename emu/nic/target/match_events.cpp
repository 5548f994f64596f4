// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What a match unit tells: event queues, counters, and the operations that wait for counters.
#include "emu/nic/target/match_unit.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace orrery::nic::match {

namespace {

// Events are read while a producer may write the next one over a lost one: word by word, so that both see
// whole words.
void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_release);
}
std::uint64_t load(std::uint64_t& word) {
  return std::atomic_ref<std::uint64_t>(word).load(std::memory_order_acquire);
}

// The first line of a slot:
//   0..3  start, user, header_data, match_bits
//   4     asked | remote_offset << 32
//   5     nid | uid << 32
//   6     pid : 16, portal : 16, type : 8, fail : 8, operation : 6, datatype : 6, list : 1, kHasRest
// Without kHasRest, `moved` is `asked` and what the second line holds is 0.
constexpr std::uint64_t kHasRest = std::uint64_t{1} << 63;

constexpr std::uint64_t pair(std::uint64_t low, std::uint64_t high) {
  return (low & UINT32_MAX) | high << 32;
}

void pack(const EventRecord& event, EventSlot& slot) {
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

void unpack(EventSlot& slot, EventRecord* event) {
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

}  // namespace

std::uint64_t events_waiting(EventQueue& queue) {
  queue.known_head = std::atomic_ref<std::uint64_t>(queue.head).load(std::memory_order_acquire);
  return queue.tail - std::max(queue.known_head, queue.floor);
}

void raise(Session& session, std::uint32_t index, const EventRecord& event, bool from_spare) {
  if (index == 0) return;
  EventQueue& queue = session.view().queue(index);
  if (queue.used == 0) return;
  const std::uint64_t room = queue.capacity - (from_spare ? 0 : kSpareSlots);
  if (queue.tail - std::max(queue.known_head, queue.floor) >= room && events_waiting(queue) >= room) {
    // A full ring loses its oldest event, and its owner is told with the next one.
    session.set(queue.floor, std::max(queue.known_head, queue.floor) + 1);
    // An owner that reads a word of what is written over it sees that: each is stored with release.
  }
  pack(event, session.view().slot(queue, queue.tail));
  session.publish_later(index, queue.tail);
  session.set(queue.tail, queue.tail + 1);
  session.wake_later();
}

Took take(const View& view, std::uint32_t index, EventRecord* event, std::uint64_t* position) {
  EventQueue& queue = view.queue(index);
  const std::atomic_ref<std::uint64_t> head(queue.head);
  const std::atomic_ref<std::uint64_t> floor(queue.floor);
  for (;;) {
    std::uint64_t taken = head.load(std::memory_order_acquire);
    const std::uint64_t lost = floor.load(std::memory_order_acquire);
    const std::uint64_t at = std::max(taken, lost);
    EventSlot& slot = view.slot(queue, at);
    // Acquire: pairs with the producer's release.
    const bool there = load(slot.published) == at + 1;
    if (there) unpack(slot, event);
    // Lost meanwhile, and perhaps overwritten.
    if (floor.load(std::memory_order_relaxed) > at) continue;
    if (!there) return Took::empty;
    if (!head.compare_exchange_strong(taken, at + 1, std::memory_order_acq_rel)) continue;
    if (position != nullptr) *position = at;
    return at > taken ? Took::event_after_loss : Took::event;
  }
}

namespace {

// Triggers whose threshold is reached become due, in the order of their thresholds.
void fire(Session& session, Counter& counter) {
  const View& view = session.view();
  Header& header = view.header();
  const std::uint64_t value = counter.success + counter.failure;
  while (counter.first != 0 && view.trigger(counter.first).threshold <= value) {
    const std::uint32_t index = counter.first;
    Trigger& trigger = view.trigger(index);
    session.set(counter.first, trigger.next);
    if (counter.first == 0) session.set(counter.last, 0u);
    session.set(trigger.next, 0u);
    if (header.due_last == 0)
      session.set(header.due_first, index);
    else
      session.set(view.trigger(header.due_last).next, index);
    session.set(header.due_last, index);
    session.commit_if_long();
  }
}

void release(Session& session, std::uint32_t index) {
  Trigger& trigger = session.view().trigger(index);
  Interface& interface = session.view().interface(trigger.interface);
  session.set(trigger.used, 0u);
  session.set(interface.triggers, interface.triggers - 1);
  give_back(session, session.view().header().trigger_pool, index,
            [&](std::uint32_t i) -> Trigger& { return session.view().trigger(i); });
}

// The first value that satisfies a sleeper's test is kept for it: others may follow before it runs.
void note_for_sleeper(Session& session, Counter& counter) {
  if (counter.success < counter.watched && counter.failure == 0) return;
  session.set(counter.seen_success, counter.success);
  session.set(counter.seen_failure, counter.failure);
  session.set(counter.watched, std::uint64_t{0});
}

}  // namespace

bool watch(Session& session, std::uint32_t index, std::uint64_t test) {
  Counter& counter = session.view().counter(index);
  if (counter.used == 0 || counter.watched != 0 || counter.seen_success + counter.seen_failure != 0 ||
      counter.success >= test || counter.failure != 0)
    return false;
  session.set(counter.watched, test);
  return true;
}

void unwatch(Session& session, std::uint32_t index) {
  Counter& counter = session.view().counter(index);
  session.set(counter.watched, std::uint64_t{0});
  session.set(counter.seen_success, std::uint64_t{0});
  session.set(counter.seen_failure, std::uint64_t{0});
}

void count(Session& session, std::uint32_t index, std::uint64_t success, std::uint64_t failure) {
  if (index == 0) return;
  Counter& counter = session.view().counter(index);
  if (counter.used == 0) return;
  if (success != 0) session.set(counter.success, counter.success + success);
  if (failure != 0) session.set(counter.failure, counter.failure + failure);
  if (counter.watched != 0) note_for_sleeper(session, counter);
  session.wake_later();
  if (counter.first != 0) fire(session, counter);
}

void set_counter(Session& session, std::uint32_t index, std::uint64_t success, std::uint64_t failure) {
  Counter& counter = session.view().counter(index);
  session.set(counter.success, success);
  session.set(counter.failure, failure);
  if (counter.watched != 0) note_for_sleeper(session, counter);
  session.wake_later();
  fire(session, counter);
}

Status arm(Session& session, std::uint32_t index, std::uint64_t threshold, const Operation& operation) {
  const View& view = session.view();
  Counter& counter = view.counter(index);
  Interface& interface = view.interface(counter.interface);
  if (interface.triggers >= interface.max_triggers) return Errc::no_resource;
  const std::uint32_t slot = allocate(session, view.header().trigger_pool,
                                      [&](std::uint32_t i) -> Trigger& { return view.trigger(i); });
  if (slot == 0) return Errc::no_resource;
  session.set(interface.triggers, interface.triggers + 1);
  Trigger& trigger = view.trigger(slot);
  trigger.threshold = threshold;
  trigger.operation = operation;
  trigger.used = 1;
  trigger.interface = counter.interface;
  // Behind those of the same threshold.
  std::uint32_t before = 0;
  if (counter.last != 0 && view.trigger(counter.last).threshold <= threshold) {
    before = counter.last;
  } else {
    for (std::uint32_t i = counter.first; i != 0 && view.trigger(i).threshold <= threshold;
         i = view.trigger(i).next)
      before = i;
  }
  std::uint32_t& link = before == 0 ? counter.first : view.trigger(before).next;
  session.set(trigger.next, link);
  session.set(link, slot);
  if (trigger.next == 0) session.set(counter.last, slot);
  fire(session, counter);
  return {};
}

void cancel(Session& session, std::uint32_t index) {
  Counter& counter = session.view().counter(index);
  while (counter.first != 0) {
    const std::uint32_t slot = counter.first;
    session.set(counter.first, session.view().trigger(slot).next);
    if (counter.first == 0) session.set(counter.last, 0u);
    release(session, slot);
    session.commit_if_long();
  }
}

bool take_due(Session& session, Operation* operation) {
  Header& header = session.view().header();
  const std::uint32_t index = header.due_first;
  if (index == 0) return false;
  Trigger& trigger = session.view().trigger(index);
  *operation = trigger.operation;
  session.set(header.due_first, trigger.next);
  if (header.due_first == 0) session.set(header.due_last, 0u);
  release(session, index);
  return true;
}

Result<std::uint32_t> open_portal(Session& session, std::uint32_t interface, std::uint32_t wanted,
                                  std::uint32_t options, std::uint32_t queue) {
  const View& view = session.view();
  const std::uint32_t portals = view.interface(interface).portals;
  std::uint32_t index = wanted;
  if (wanted == kAny) {
    for (index = 0; index < portals && view.portal(interface, index).allocated != 0; ++index) {
    }
    if (index == portals) return Errc::no_resource;
  } else if (wanted >= portals) {
    return Errc::invalid_param;
  } else if (view.portal(interface, wanted).allocated != 0) {
    return Errc::invalid_state;
  }
  PortalEntry& portal = view.portal(interface, index);
  session.set(portal.allocated, 1u);
  session.set(portal.enabled, (options & kAllocDisabled) == 0 ? 1u : 0u);
  session.set(portal.options, options);
  session.set(portal.queue, queue);
  return index;
}

Status close_portal(Session& session, std::uint32_t interface, std::uint32_t index) {
  PortalEntry& portal = session.view().portal(interface, index);
  if (portal.allocated == 0) return Errc::invalid_param;
  if (portal.count[0] + portal.count[1] != 0 || portal.header_count != 0 || portal.in_flight != 0)
    return Errc::not_done;
  session.set(portal.allocated, 0u);
  session.set(portal.enabled, 0u);
  return {};
}

void forget_interface(Session& session, std::uint32_t interface) {
  const View& view = session.view();
  Header& header = view.header();
  for (std::uint32_t i = 0; i < kMaxPortals; ++i) {
    PortalEntry& portal = view.portal(interface, i);
    if (portal.allocated == 0) continue;
    session.set(portal.allocated, 0u);
    session.set(portal.enabled, 0u);
    session.set(portal.queue, 0u);
    session.commit_if_long();
  }
  forget_entries(session, interface);
  for (std::uint32_t i = 1; i < header.queue_pool.fresh; ++i) {
    EventQueue& queue = view.queue(i);
    if (queue.used == 0 || queue.interface != interface) continue;
    session.set(queue.used, 0u);
    session.set(queue.generation, queue.generation + 1);
    give_back(session, header.queue_pool, i, [&](std::uint32_t k) -> EventQueue& { return view.queue(k); });
    session.commit_if_long();
  }
  for (std::uint32_t i = 1; i < header.counter_pool.fresh; ++i) {
    Counter& counter = view.counter(i);
    if (counter.used == 0 || counter.interface != interface) continue;
    cancel(session, i);
    session.set(counter.used, 0u);
    session.set(counter.generation, counter.generation + 1);
    give_back(session, header.counter_pool, i, [&](std::uint32_t k) -> Counter& { return view.counter(k); });
    session.commit_if_long();
  }
}

}  // namespace orrery::nic::match
