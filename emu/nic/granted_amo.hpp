// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/amo_unit.hpp"
#include "emu/nic/granted.hpp"

// The short way of an AMO of one word, as granted.hpp has it for a put: through a key that was granted
// before, to a word that is mapped here, past the cache. Everything else is Nic::post's.
namespace orrery::nic {

// One AMO, already checked by the API layer as far as its own rules go. transfer.length is that of one word;
// transfer.local_address, where the old value goes, is looked at for fetching commands alone.
struct AmoTransfer {
  Transfer transfer;
  std::uint8_t command = 0;  // valid, not cached
  std::uint64_t a = 0;
  std::uint64_t b = 0;
};

namespace detail {

template <typename Word>
[[gnu::always_inline]] inline void apply_here(std::byte* word, const AmoTransfer& amo) {
  const Word old = amo::apply(reinterpret_cast<Word*>(word), amo.command, static_cast<Word>(amo.a),
                              static_cast<Word>(amo.b));
  if (amo::fetches(amo.command))
    std::memcpy(reinterpret_cast<void*>(amo.transfer.local_address), &old, sizeof old);
}

}  // namespace detail

// ok: done, its events are raised. not_done: nothing happened, take the long way. no_resource: the queue's
// transactions are used up. Not blocking; the thread that uses the endpoint's port.
[[gnu::always_inline]] inline Errc try_granted_amo(Endpoint& endpoint, const AmoTransfer& amo) {
  const Transfer& transfer = amo.transfer;
  const Grant& grant = endpoint.grants[transfer.key % kGrants];
  const std::uint64_t offset = transfer.remote_address - grant.begin;
  if (grant.key != transfer.key || offset > grant.size || transfer.length > grant.size - offset ||
      !grant.writable || (transfer.remote_address & (transfer.length - 1)) != 0) [[unlikely]] {
    return Errc::not_done;
  }
  if (grant.peer->dead.load(std::memory_order_relaxed)) [[unlikely]]
    return Errc::not_done;
  if (transfer.in_order && grant.peer->in_flight.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return Errc::not_done;
  std::uint32_t transaction = CompletionQueue::kNone;
  CompletionQueue* const queue = endpoint.queue;
  if ((transfer.events & (kLocalEvent | kGlobalEvent)) != 0) {
    if (queue == nullptr) [[unlikely]]
      return Errc::not_done;
    transaction = queue->open_transaction(transfer.context);
    if (transaction == CompletionQueue::kNone) [[unlikely]]
      return Errc::no_resource;
  }
  {
    const HazardGuard guard(*grant.hazard, static_cast<std::uint32_t>(transfer.key & 0xffff), false);
    // Acquire: see try_granted.
    if (grant.entry->control.load(std::memory_order_acquire) != grant.control) [[unlikely]] {
      if (transaction != CompletionQueue::kNone) queue->abandon_transaction(transaction);
      return Errc::not_done;
    }
    if ((amo.command & kAmoNarrow) == 0) {
      detail::apply_here<std::uint64_t>(grant.here + offset, amo);
    } else {
      detail::apply_here<std::uint32_t>(grant.here + offset, amo);
    }
    if ((transfer.events & kRemoteEvent) != 0 && grant.queue.slots != nullptr) {
      // A full queue is its owner's loss, and it hears of it.
      (void)push_event(grant.queue, {EventKind::remote, Errc::ok, endpoint.remote_value});
    }
  }
  if (transaction != CompletionQueue::kNone) {
    queue->raise_inline(
        Event::posted(transaction, (transfer.events & kGlobalEvent) != 0, endpoint.local_value, Errc::ok));
  }
  return Errc::ok;
}

}  // namespace orrery::nic
