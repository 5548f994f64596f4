// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What a match unit tells: event queues, counters, and the operations that wait for counters.
#include "emu/nic/target/match_raise.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace orrery::nic::match {

std::uint64_t events_waiting(EventQueue& queue) {
  queue.known_head = std::atomic_ref<std::uint64_t>(queue.head).load(std::memory_order_acquire);
  return queue.tail - std::max(queue.known_head, queue.floor);
}

void raise(Session& session, std::uint32_t index, const EventRecord& event, bool from_spare) {
  in_line::raise(session, index, event, from_spare);
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
    const bool there = in_line::load(slot.published) == at + 1;
    if (there) in_line::unpack(slot, event);
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
  if (success != 0) in_line::set_success(session, counter, counter.success + success);
  if (failure != 0) in_line::set_failure(session, counter, counter.failure + failure);
  if (counter.watched != 0) note_for_sleeper(session, counter);
  session.wake_later();
  if (counter.first != 0) fire(session, counter);
}

void set_counter(Session& session, std::uint32_t index, std::uint64_t success, std::uint64_t failure) {
  Counter& counter = session.view().counter(index);
  in_line::set_success(session, counter, success);
  in_line::set_failure(session, counter, failure);
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
  session.set(portal.allocated, std::uint32_t{kAllocated});
  session.set(portal.enabled, (options & kAllocDisabled) == 0 ? 1u : 0u);
  session.set(portal.options, options);
  session.set(portal.queue, queue);
  return index;
}

namespace {
// No more a portal; nothing is told of it.
void release(Session& session, PortalEntry& portal) {
  std::uint32_t& untold = session.view().header().untold_stops;
  if ((portal.allocated & kStopUntold) != 0) session.set(untold, untold - 1);
  session.set(portal.allocated, 0u);
  session.set(portal.enabled, 0u);
}
}  // namespace

Status close_portal(Session& session, std::uint32_t interface, std::uint32_t index) {
  PortalEntry& portal = session.view().portal(interface, index);
  if (portal.allocated == 0) return Errc::invalid_param;
  if (portal.count[0] + portal.count[1] != 0 || portal.header_count != 0 || portal.in_flight != 0)
    return Errc::not_done;
  release(session, portal);
  return {};
}

void forget_interface(Session& session, std::uint32_t interface) {
  const View& view = session.view();
  Header& header = view.header();
  for (std::uint32_t i = 0; i < kMaxPortals; ++i) {
    PortalEntry& portal = view.portal(interface, i);
    if (portal.allocated == 0) continue;
    release(session, portal);
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
    session.set(counter.shown_interface, 0u);
    session.set(counter.generation, counter.generation + 1);
    give_back(session, header.counter_pool, i, [&](std::uint32_t k) -> Counter& { return view.counter(k); });
    session.commit_if_long();
  }
}

}  // namespace orrery::nic::match
