// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/completion.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/events/port.hpp"

namespace orrery::nic {

namespace {

static_assert(Completion::kNoTransaction == CompletionQueue::kNone);

// ---- the sinks: each looks whether the completion names it ----

ORRERY_TIMED_PATH void tell_errors(const Completion& c, const Ending& ending, Teller) {
  if (ending.status == Errc::ok || c.port == nullptr) [[likely]]
    return;
  c.port->report({.domain = c.port->domain,
                  .transaction = c.transaction,
                  .nic_address = c.nic_address,
                  .status = ending.status});
}

ORRERY_TIMED_PATH void tell_connection(const Completion& c, const Ending& ending, Teller) {
  if (ending.status != Errc::ok && c.broken != nullptr) c.broken->store(true, std::memory_order_relaxed);
}

ORRERY_TIMED_PATH void raise(CompletionQueue& queue, const Event& event, Teller teller) {
  if (teller == Teller::owner)
    queue.raise_inline(event);
  else
    (void)push_event(queue.view(), event);
}

ORRERY_TIMED_PATH void tell_queue(const Completion& c, const Ending& ending, Teller teller) {
  if (c.queue == nullptr) return;
  std::uint32_t transaction = c.transaction;
  std::uint8_t events = c.events;
  if (!c.has_transaction()) {
    if (ending.status == Errc::ok || teller == Teller::other) return;  // the error log knows
    // Asked for no event, but an error is always reported where there is a queue for it.
    transaction = c.queue->open_post(c.context);
    if (transaction == CompletionQueue::kNone) return;
    events = kLocalEvent;
  }
  if (c.kind == EventKind::message_sent)
    return raise(*c.queue, Event::message_sent(transaction, c.value, ending.status), teller);
  if ((events & kLocalEvent) != 0)
    raise(*c.queue, Event::posted(transaction, false, c.value, ending.status), teller);
  if ((events & kGlobalEvent) != 0)
    raise(*c.queue, Event::posted(transaction, true, c.value, ending.status), teller);
}

// What the listener belongs to may be gone when this returns.
ORRERY_TIMED_PATH void tell_listener(const Completion& c, const Ending& ending, Teller) {
  if (c.listener != nullptr) c.listener->ended(c, ending);
}

// In the order in which they are told. A new sink is a member of Completion, a function, and a row here.
using Tell = void(const Completion&, const Ending&, Teller);
constexpr Tell* kSinks[] = {tell_errors, tell_connection, tell_queue, tell_listener};

}  // namespace

ORRERY_TIMED_PATH Errc reserve(Completion& c) {
  if (c.events == 0) return Errc::ok;
  if (c.queue == nullptr) [[unlikely]]
    return Errc::invalid_param;
  c.transaction = c.queue->open_post(c.context);
  if (c.transaction == CompletionQueue::kNone) [[unlikely]]
    return Errc::no_resource;
  constexpr std::uint8_t kBoth = kLocalEvent | kGlobalEvent;
  if ((c.events & kBoth) == kBoth && c.kind == EventKind::post) [[unlikely]]
    c.queue->expect_events(c.transaction, 2);
  return Errc::ok;
}

ORRERY_TIMED_PATH void abandon(const Completion& c) {
  if (c.has_transaction()) c.queue->abandon_transaction(c.transaction);
}

ORRERY_TIMED_PATH void complete(const Completion& completion, const Ending& ending, Teller teller) {
  for (Tell* const tell : kSinks) tell(completion, ending, teller);
}

ORRERY_TIMED_PATH void retain(const Completion& c) {
  if (c.queue != nullptr) c.queue->references.fetch_add(1, std::memory_order_relaxed);
  if (c.in_flight != nullptr) c.in_flight->fetch_add(1, std::memory_order_relaxed);
}

ORRERY_TIMED_PATH void release(const Completion& c) {
  // Release: a queue that reads zero may be destroyed, and then an endpoint that does, unbound; neither is
  // touched any more.
  if (c.queue != nullptr) c.queue->references.fetch_sub(1, std::memory_order_release);
  if (c.in_flight != nullptr) c.in_flight->fetch_sub(1, std::memory_order_release);
}

}  // namespace orrery::nic
