// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/prefetch.hpp"
#include "emu/base/status.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/initiator/fast_path.hpp"
#include "emu/nic/nic.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/target/mailbox.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

// Sending and receiving short messages, inline in the API libraries: the fast path through memory that is
// mapped here. The slow path is in messages.hpp. All of them: the thread that uses the endpoint; not
// blocking. REQUIRES: the endpoint has a mailbox.
namespace orrery::nic {

// What a message is, besides its bytes.
struct MessageLabel {
  std::uint32_t id = 0;  // in the sender's event
  std::uint8_t tag = 0;
};

// Sends header and data, one after the other, as one message; both are copied. The sender's queue, if the
// endpoint has one, gets an event when the peer has it, and the queue behind the peer's mailbox one too.
// Errors: not_done (no credit), size (more data than agreed, or a header that leaves it no room), no_resource
// (transactions of the queue or of the wire are used up), invalid_state (the connection is broken: the peer
// is dead, or wrote bad values).
Errc send_message(Nic& nic, Endpoint& endpoint, std::span<const std::byte> header,
                  std::span<const std::byte> data, const MessageLabel& label);

// The oldest message that was not released: where it is in our memory, and its tag. `wanted`: only if its tag
// is this one, or kAnyTag. Errors: not_done (none; whether the peer lives says its next message), no_match
// (another tag, which `message` then has), invalid_state (our own mailbox holds bad values).
inline constexpr std::uint8_t kAnyTag = 0xff;
struct ReceivedMessage {
  std::byte* at = nullptr;
  std::uint32_t bytes = 0;
  std::uint8_t tag = 0;
};
Errc next_message(Nic& nic, Endpoint& endpoint, std::uint8_t wanted, ReceivedMessage* message);

// Gives the room of the message that next_message() gave back to its sender. Errors: not_done (there is
// none).
Errc release_message(Nic& nic, Endpoint& endpoint);

// ---- the fast path ----

namespace detail {

// Whether another message may be sent, looking at what the peer has released.
inline bool has_credit(Mailbox& box) {
  if (box.sent - box.acknowledged < box.shape.credits) [[likely]]
    return true;
  // Acquire: the peer has read what the slot held before it said so.
  const std::uint64_t released = box.released_word().load(std::memory_order_acquire);
  // Anything else is a bad value; the slow path reports it.
  if (released > box.sent || box.sent - released >= box.shape.credits) return false;
  box.acknowledged = released;
  return true;
}

// Both lines that the next message touches at the peer come over at the same time.
inline void prefetch_lines(const Mailbox& box, const Grant& grant) {
  prefetch_to_write(grant.here + (box.sent_slot() - grant.begin));
  if (grant.queue.slots != nullptr) prefetch_event_slot(grant.queue);
}

// Two pieces that overlap, of the largest power of two that fits.
template <std::size_t kPiece>
inline void copy_ends(std::byte* to, std::span<const std::byte> from) {
  std::memcpy(to, from.data(), kPiece);
  std::memcpy(to + from.size() - kPiece, from.data() + from.size() - kPiece, kPiece);
}

// Headers and most payloads are a few words: those without a call.
inline void copy_piece(std::byte* to, std::span<const std::byte> from) {
  if (from.size() >= 8) {
    if (from.size() <= 16) return copy_ends<8>(to, from);
    if (from.size() <= 32) return copy_ends<16>(to, from);
    std::memcpy(to, from.data(), from.size());
  } else if (from.size() >= 4) {
    copy_ends<4>(to, from);
  } else if (!from.empty()) {
    to[0] = from[0];
    if (from.size() >= 2) copy_ends<2>(to, from);
  }
}

inline void copy_message(std::byte* to, std::span<const std::byte> header, std::span<const std::byte> data) {
  copy_piece(to, header);
  copy_piece(to + header.size(), data);
}

}  // namespace detail

[[gnu::always_inline]] inline Errc send_message(Nic& nic, Endpoint& endpoint,
                                                std::span<const std::byte> header,
                                                std::span<const std::byte> data, const MessageLabel& label) {
  Mailbox& box = *endpoint.mailbox;
  const std::uint64_t bytes = header.size() + data.size();
  if (bytes > box.shape.most_bytes() || data.size() > box.shape.max_bytes) [[unlikely]]
    return Errc::size;
  const std::uint64_t key = key_word(box.remote_key);
  const Grant& grant = endpoint.grants[key % kGrants];
  const std::uint64_t offset = box.sent_slot() - grant.begin;
  if (!detail::has_credit(box) || box.broken.load(std::memory_order_relaxed) ||
      grant.key != (key | t_thread_tag) || offset > grant.size || box.slot_bytes > grant.size - offset ||
      !grant.writable || grant.peer->dead.load(std::memory_order_relaxed) ||
      grant.peer->in_flight.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return nic.messages().send_slowly(endpoint, header, data, label.id, label.tag);
  detail::prefetch_lines(box, grant);
  box.is_answered = box.unanswered;
  box.unanswered = false;
  CompletionQueue* const queue = endpoint.queue;
  std::uint32_t transaction = 0;
  if (queue != nullptr) {
    transaction = queue->open_post(nullptr);
    if (transaction == CompletionQueue::kNone) [[unlikely]]
      return Errc::no_resource;
  }
  {
    const HazardGuard guard(*grant.hazard, box.remote_key.index, false);
    // Acquire: as in try_fast().
    if (grant.word->load(std::memory_order_acquire) != grant.control) [[unlikely]] {
      if (queue != nullptr) queue->abandon_transaction(transaction);
      return nic.messages().send_slowly(endpoint, header, data, label.id, label.tag);
    }
    std::byte* const slot = grant.here + offset;
    detail::copy_message(slot + kMessageHeaderBytes, header, data);
    // Release: a receiver that sees the word sees the payload.
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(slot))
        .store(message_word::make(box.sent, label.tag, static_cast<std::uint32_t>(bytes)),
               std::memory_order_release);
    if (grant.queue.slots != nullptr)
      (void)push_event(grant.queue, {EventKind::message_arrived, Errc::ok, endpoint.remote_event_data});
  }
  box.count_sent();
  if (queue != nullptr) queue->raise_inline(Event::message_sent(transaction, label.id, Errc::ok));
  return Errc::ok;
}

inline Errc next_message(Nic& nic, Endpoint& endpoint, std::uint8_t wanted, ReceivedMessage* message) {
  Mailbox& box = *endpoint.mailbox;
  std::byte* const slot = box.next_slot();
  // Acquire: the payload was stored before the word.
  const std::uint64_t word =
      std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(slot)).load(std::memory_order_acquire);
  if (!message_word::is(word, box.next)) {
    nic.attendant().looked_in_vain(&endpoint);
    return nic.messages().find_none(endpoint);
  }
  const std::uint32_t bytes = message_word::bytes(word);
  if (bytes > box.shape.most_bytes()) [[unlikely]] {
    box.garbled = true;
    box.broken.store(true, std::memory_order_relaxed);
    return Errc::invalid_state;
  }
  *message = {slot + kMessageHeaderBytes, bytes, message_word::tag(word)};
  if (wanted != kAnyTag && wanted != message->tag) return Errc::no_match;
  box.current = true;
  // A peer that answered the last one probably answers this one: by then its lines are here.
  if (box.unanswered) box.is_answered = false;
  box.unanswered = true;
  if (box.is_answered) {
    const std::uint64_t key = key_word(box.remote_key);
    const Grant& grant = endpoint.grants[key % kGrants];
    if (grant.key == (key | t_thread_tag) && !grant.peer->dead.load(std::memory_order_relaxed))
      detail::prefetch_lines(box, grant);
  }
  return Errc::ok;
}

inline Errc release_message(Nic& nic, Endpoint& endpoint) {
  Mailbox& box = *endpoint.mailbox;
  if (!box.current) [[unlikely]]
    return Errc::not_done;
  box.current = false;
  box.count_next();
  nic.attendant().await_message(box.next_slot());
  const Transfer credit{.key = key_word(box.remote_key),
                        .local_address = reinterpret_cast<std::uint64_t>(&box.next),
                        .remote_address = box.remote,
                        .length = sizeof box.next,
                        .in_order = true};
  if (try_fast<Op::put>(endpoint, credit) != Errc::ok) [[unlikely]]
    nic.messages().send_credit_slowly(endpoint);
  return Errc::ok;
}

}  // namespace orrery::nic
