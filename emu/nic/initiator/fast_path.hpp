// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/thread_word.hpp"
#include "emu/nic/target/execute.hpp"
#include "emu/nic/transport/endpoint.hpp"
#include "emu/nic/transport/grant.hpp"
#include "emu/nic/transport/peer.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

// The fast path of a put or a get, inline in the API libraries: through a key that was granted before, to
// memory that is mapped here, asking for nothing unusual. It costs one announcement, one load of the owner's
// word, and the bytes. Everything else, and the first access through each key, is Initiator::post's.
namespace orrery::nic {

// One transfer, already checked by the API layer as far as its own rules go.
struct Transfer {
  std::uint64_t key = 0;  // key_word() of the remote key
  std::uint64_t local_address = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t length = 0;
  std::uint32_t events = 0;  // kLocalEvent, kGlobalEvent, kRemoteEvent; not local and global both
  bool in_order = false;
  CompletionQueue* queue = nullptr;  // of `events` here; may be null when none are wanted
  void* context = nullptr;
};

namespace detail {

// An aligned word, which is what most puts and gets are, without a call.
inline void copy_to_target(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  if (bytes == 8 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0) [[likely]] {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    // Release: a target that polls this word sees what was put before it.
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to))
        .store(word, std::memory_order_release);
    return;
  }
  store_bytes(to, from, bytes);
}

inline void copy_from_target(std::byte* to, std::byte* from, std::uint64_t bytes) {
  if (bytes == 8 && reinterpret_cast<std::uintptr_t>(from) % 8 == 0) [[likely]] {
    const std::uint64_t word = std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(from))
                                   .load(std::memory_order_acquire);
    std::memcpy(to, &word, sizeof word);
    return;
  }
  load_bytes(to, from, bytes);
}

}  // namespace detail

// Carries out one access through the endpoint's grant: act(here) touches the target's bytes. ok: done, its
// events are raised. not_done: nothing happened, take the slow path. no_resource: the queue's transactions
// are used up. Not blocking; the thread that uses the endpoint: a grant that another thread was given does
// not count.
template <bool kWrites, typename Act>
[[gnu::always_inline]] inline Errc through_grant(Endpoint& endpoint, const Transfer& transfer, Act act) {
  const Grant* held = &endpoint.grants[transfer.key % kGrants];
  // The address in one register: gcc would keep the index beside it and spill what the path needs.
  asm("" : "+r"(held));
  const Grant& grant = *held;
  const std::uint64_t offset = transfer.remote_address - grant.begin;
  if (grant.key != (transfer.key | t_thread_tag) || offset > grant.size ||
      transfer.length > grant.size - offset) [[unlikely]] {
    return Errc::not_done;
  }
  if (kWrites && !grant.writable) [[unlikely]]
    return Errc::not_done;
  if (grant.peer->dead.load(std::memory_order_relaxed)) [[unlikely]]
    return Errc::not_done;
  // An earlier operation of ours is still in flight by frame, and this one has to stay behind it.
  if (transfer.in_order && grant.peer->in_flight.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    return Errc::not_done;
  }
  std::uint32_t transaction = CompletionQueue::kNone;
  CompletionQueue* const queue = transfer.queue;
  if ((transfer.events & (kLocalEvent | kGlobalEvent)) != 0) {
    if (queue == nullptr) [[unlikely]]
      return Errc::not_done;
    transaction = queue->open_post(transfer.context);
    if (transaction == CompletionQueue::kNone) [[unlikely]]
      return Errc::no_resource;
  }
  {
    const HazardGuard guard(*grant.hazard, static_cast<std::uint32_t>(transfer.key & 0xffff), false);
    // Acquire: pairs with the owner's publication. An owner that withdraws the registration changes this word
    // and then looks for our announcement.
    if (grant.word->load(std::memory_order_acquire) != grant.control) [[unlikely]] {
      if (transaction != CompletionQueue::kNone) queue->abandon_transaction(transaction);
      return Errc::not_done;
    }
    act(grant.here + offset);
    if ((transfer.events & kRemoteEvent) != 0 && grant.queue.slots != nullptr) {
      // A full queue loses the event; its overrun tells the owner.
      (void)push_event(grant.queue, {EventKind::remote, Errc::ok, endpoint.remote_event_data});
    }
  }
  if (transaction != CompletionQueue::kNone) {
    queue->raise_inline(Event::posted(transaction, (transfer.events & kGlobalEvent) != 0,
                                      endpoint.local_event_data, Errc::ok));
  }
  return Errc::ok;
}

// The same for a put or a get.
template <Op kOp>
[[gnu::always_inline]] inline Errc try_fast(Endpoint& endpoint, const Transfer& transfer) {
  static_assert(kOp == Op::put || kOp == Op::get);
  return through_grant<kOp == Op::put>(
      endpoint, transfer, [&transfer](std::byte * here) __attribute__((always_inline)) {
        auto* const local = reinterpret_cast<std::byte*>(transfer.local_address);
        if constexpr (kOp == Op::put) {
          detail::copy_to_target(here, local, transfer.length);
        } else {
          detail::copy_from_target(local, here, transfer.length);
        }
      });
}

}  // namespace orrery::nic
