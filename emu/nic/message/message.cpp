// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/message.hpp"

#include "emu/nic/message/messages.hpp"
#include "emu/nic/state/access.hpp"

#include <algorithm>

// Short messages, all but the usual case: connections are opened, a peer's memory is not mapped here, a peer
// is gone.
namespace orrery::nic {

namespace {

bool is_broken(Mailbox& box) {
  if (box.peer != nullptr && box.peer->dead.load(std::memory_order_relaxed))
    box.broken.store(true, std::memory_order_relaxed);
  return box.broken.load(std::memory_order_relaxed);
}

}  // namespace

Errc Messages::open(Endpoint& endpoint, const MailboxShape& shape, const MailboxPlace& local,
                    const MailboxPlace& remote) {
  if (!endpoint.bound || endpoint.mailbox != nullptr) return Errc::invalid_state;
  if (shape.credits == 0 || shape.credits > UINT16_MAX || shape.max_bytes > kMaxMessageBytes)
    return Errc::invalid_param;
  if (remote.key.is_number() || local.key.is_number()) {
    MailboxPlace ours = local;
    MailboxPlace theirs = remote;
    std::uint64_t none = 0;
    if (local.key.is_number())
      ours.key = regions_.own_by_number(endpoint.port->domain, local.key, &ours.address);
    if (remote.key.is_number() &&
        initiator_.name_by_number(endpoint, &theirs.key, &theirs.address, &none) == Errc::invalid_handle)
      return Errc::invalid_param;
    return open(endpoint, shape, ours, theirs);
  }
  if (!remote.key.valid() || ((local.key.flags | remote.key.flags) & kSegmented) != 0)
    return Errc::invalid_param;
  const std::uint64_t bytes = local.begin() - local.address + kCacheLine + shape.credits * shape.slot_bytes();
  const Errc ours = regions_.check_local(endpoint.port->domain, local.key, local.address, bytes, true);
  if (ours != Errc::ok) return ours;
  auto box = std::make_unique<Mailbox>(shape, local, remote);
  // A peer that is gone may have sent before it went: that is still received.
  if (initiator_.find_peer(endpoint, remote.key) == Errc::ok)
    box->peer = endpoint.peer;
  else
    box->broken.store(true, std::memory_order_relaxed);
  endpoint.mailbox = std::move(box);
  return Errc::ok;
}

Errc Messages::send_slowly(Endpoint& endpoint, std::span<const std::byte> header,
                           std::span<const std::byte> data, std::uint32_t id, std::uint8_t tag) {
  Mailbox& box = *endpoint.mailbox;
  if (!detail::has_credit(box)) {
    (void)mover_.progress(&endpoint);
    if (!detail::has_credit(box)) {
      const std::uint64_t released = box.released_word().load(std::memory_order_acquire);
      if (released > box.sent || released < box.acknowledged)
        box.broken.store(true, std::memory_order_relaxed);
      return is_broken(box) ? Errc::invalid_state : Errc::not_done;
    }
  }
  if (is_broken(box)) return Errc::invalid_state;
  const std::uint64_t bytes = header.size() + data.size();
  if (box.staging == nullptr) {
    const std::uint64_t each = box.shape.most_bytes();
    box.staging = std::make_unique_for_overwrite<std::byte[]>(each * box.shape.credits);
  }
  std::byte* const staged = box.staging.get() + box.sent % box.shape.credits * box.shape.most_bytes();
  detail::copy_message(staged, header, data);
  Request request;
  request.op = Op::message;
  request.flags = kSyncFlag | kRemoteEvent | endpoint.port->message_order;
  if (endpoint.queue != nullptr) request.flags |= kGlobalEvent;
  request.local_address = reinterpret_cast<std::uint64_t>(staged);
  request.remote_address = box.sent_slot() + kMessageHeaderBytes;
  request.length = bytes;
  request.remote = box.remote_key;
  request.sync_address = box.sent_slot();
  request.sync_value = message_word::make(box.sent, tag, static_cast<std::uint32_t>(bytes));
  request.cq_data = id;
  const Errc posted = initiator_.post_checked(endpoint, request);
  if (posted == Errc::ok) box.count_sent();
  return posted;
}

Errc Messages::find_none(Endpoint& endpoint) {
  Mailbox& box = *endpoint.mailbox;
  if (box.credit_owed) [[unlikely]]
    send_credit_slowly(endpoint);
  // Of a peer that is gone nothing more comes; the mailbox is our own memory, and as good as it was.
  return box.garbled ? Errc::invalid_state : Errc::not_done;
}

void Messages::send_credit_slowly(Endpoint& endpoint) {
  Mailbox& box = *endpoint.mailbox;
  if (is_broken(box)) return;
  if (box.staged_credits.empty()) box.staged_credits.resize(box.shape.credits);
  std::uint64_t& staged = box.staged_credits[box.next % box.shape.credits];
  staged = box.next;
  Request request;
  request.op = Op::credit;
  request.flags = kInOrder;
  request.local_address = reinterpret_cast<std::uint64_t>(&staged);
  request.remote_address = box.remote;
  request.length = sizeof staged;
  request.remote = box.remote_key;
  // Counts add up: the next one says it all, or we say it again when we next look for a message.
  box.credit_owed = initiator_.post_checked(endpoint, request) != Errc::ok;
}

}  // namespace orrery::nic
