// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Transactions of many packets: chains, and what is stored through FMA windows.
#include "emu/nic/initiator/sequence.hpp"

#include "emu/base/check.hpp"
#include "emu/nic/initiator/fast_amo.hpp"
#include "emu/nic/initiator/initiator.hpp"
#include "emu/nic/initiator/post_gate.hpp"

#include <bit>

namespace orrery::nic {

namespace {
constexpr std::uint32_t kPlaceBits = std::countr_zero(SequenceTable::kCapacity);
}  // namespace

SequenceTable::SequenceTable() : slots_(new Slot[kCapacity]) {
  free_.reserve(kCapacity);
  for (std::uint32_t i = kCapacity; i-- > 0;) free_.push_back(static_cast<std::uint16_t>(i));
}

Sequence* SequenceTable::open() {
  const std::lock_guard lock(mu_);
  if (free_.empty()) return nullptr;
  const std::uint32_t place = free_.back();
  free_.pop_back();
  Slot& slot = slots_[place];
  slot.generation = (slot.generation + 1) & (UINT32_MAX >> kPlaceBits);
  slot.used = true;
  Sequence& sequence = slot.sequence;
  sequence.left.store(1, std::memory_order_relaxed);
  sequence.first_error.store(0, std::memory_order_relaxed);
  sequence.polled = false;
  sequence.name = slot.generation << kPlaceBits | place;
  sequence.home = this;
  sequence.completion = {};
  return &sequence;
}

Sequence* SequenceTable::find(std::uint32_t name) {
  const std::lock_guard lock(mu_);
  Slot& slot = slots_[name % kCapacity];
  return slot.used && slot.sequence.name == name ? &slot.sequence : nullptr;
}

void SequenceTable::close(Sequence& sequence) {
  const std::lock_guard lock(mu_);
  const std::uint32_t place = sequence.name % kCapacity;
  ORRERY_CHECK(slots_[place].used, "sequence {} is not open", sequence.name);
  slots_[place].used = false;
  free_.push_back(static_cast<std::uint16_t>(place));
}

std::uint32_t SequenceTable::open_count() const {
  const std::lock_guard lock(mu_);
  return kCapacity - static_cast<std::uint32_t>(free_.size());
}

// ---- the initiator ----

Errc Initiator::post_in(Sequence& sequence, Endpoint& endpoint, const Request& request) {
  if (request.remote.is_number()) [[unlikely]] {
    if (!endpoint.bound) return Errc::invalid_state;
    Request named = request;
    (void)name_by_number(endpoint, &named.remote, &named.remote_address, &named.sync_address);
    return post_in(sequence, endpoint, named);
  }
  Errc status = Errc::not_done;
  const Transfer transfer{.key = key_word(request.remote),
                          .local_address = request.local_address,
                          .remote_address = request.remote_address,
                          .length = request.length,
                          .events = request.flags & kRemoteEvent,
                          .in_order = (request.flags & kInOrder) != 0};
  if ((request.flags & ~(kRemoteEvent | kInOrder)) == 0) {
    if (request.op == Op::put) status = try_fast<Op::put>(endpoint, transfer);
    if (request.op == Op::get) status = try_fast<Op::get>(endpoint, transfer);
    if (request.op == Op::amo && request.length == amo::width(request.command) &&
        amo::is_valid(request.command) && (request.command & kAmoCached) == 0) {
      status = try_fast_amo(endpoint, {.transfer = transfer,
                                       .command = request.command,
                                       .a = request.operand[0],
                                       .b = request.operand[1]});
    }
  }
  return status == Errc::not_done ? post_part(sequence, endpoint, request) : status;
}

// ok: accepted; the sequence hears how it ends. no_resource, invalid_state: it was not.
Errc Initiator::post_part(Sequence& sequence, Endpoint& endpoint, Request part) {
  const PostGate gate(view_, *endpoint.port);
  Errc status = Errc::not_done;
  if (endpoint.peer_slot != part.remote.process) {
    if (!endpoint.bound) return Errc::invalid_state;
    const Errc found = find_peer(endpoint, part.remote);
    if (found != Errc::ok) status = found;
  }
  address(endpoint, &part);
  // The sequence hears of it, and the error log.
  part.completion.queue = nullptr;
  part.completion.events = 0;
  part.completion.listener = &sequence;
  // Counted before it can end. The caller's own count keeps one that ends here from being the last.
  sequence.left.fetch_add(1, std::memory_order_relaxed);
  const Begun begun = status == Errc::not_done ? start(endpoint, part) : Begun::ended(status);
  if (begun.kind == Begun::Kind::no_room) {
    sequence.left.fetch_sub(1, std::memory_order_relaxed);
    return Errc::no_resource;
  }
  if (begun.kind == Begun::Kind::ended) complete(part.completion, begun.status, Teller::owner);
  return Errc::ok;
}

void Sequence::ended(const Completion& part, const Ending& ending) {
  note(ending.status, part.target);
  // Read first: one that is polled may be gone as soon as its last part was taken off.
  const bool asked_for = polled;
  if (!take_off() || asked_for) return;
  const Completion whole = completion;
  complete(whole, status(), Teller::other);
  home->close(*this);
  release(whole);
}

Errc Initiator::post_chain(Endpoint& endpoint, std::span<const ChainPart> parts, std::uint32_t flags,
                           void* context) {
  Request head;
  head.flags = flags & (kLocalEvent | kGlobalEvent);
  head.context = context;
  if (!endpoint.bound) return Errc::invalid_state;
  // A chain is not begun that could not go on.
  if (pending_.outstanding.load(std::memory_order_relaxed) + parts.size() > OutstandingTable::kCapacity &&
      pending_.outstanding.load(std::memory_order_relaxed) != 0)
    return Errc::no_resource;
  Sequence* const sequence = sequences_.open();
  if (sequence == nullptr) return Errc::no_resource;
  address(endpoint, &head);
  head.completion.port = nullptr;  // a part that fails is reported as it does
  if (const Errc reserved = reserve(head.completion); reserved != Errc::ok) {
    sequences_.close(*sequence);
    return reserved;
  }
  sequence->completion = head.completion;
  retain(head.completion);
  for (const ChainPart& part : parts) {
    Errc accepted = post_in(*sequence, *part.endpoint, part.request);
    // Another port took the last packets meanwhile, or the chain is longer than there are: answers bring
    // more.
    while (accepted == Errc::no_resource) {
      (void)mover_.progress(nullptr);
      yield_cpu();
      accepted = post_in(*sequence, *part.endpoint, part.request);
    }
    if (accepted != Errc::ok) sequence->note(accepted, part.request.remote.process);
  }
  if (!sequence->take_off()) return Errc::ok;
  // All of it is done, and this is the thread that owns the queue.
  const Errc status = sequence->status();
  sequences_.close(*sequence);
  complete(head.completion, status, Teller::owner);
  release(head.completion);
  return Errc::ok;
}

Sequence* Initiator::open_sequence() {
  Sequence* const sequence = sequences_.open();
  if (sequence != nullptr) sequence->polled = true;
  return sequence;
}

Errc Initiator::test_sequence(std::uint32_t name, Errc* status) {
  Sequence* const sequence = sequences_.find(name);
  if (sequence == nullptr || !sequence->polled) return Errc::invalid_param;
  // Acquire: what the last answer brought and noted.
  if (sequence->left.load(std::memory_order_acquire) != 0) {
    (void)mover_.progress(nullptr);
    if (sequence->left.load(std::memory_order_acquire) != 0) return Errc::not_done;
  }
  *status = sequence->status();
  sequences_.close(*sequence);
  return Errc::ok;
}

void Initiator::ask_for_adoption(const Endpoint& endpoint, const MemKey& key) {
  if (endpoint.peer == nullptr || endpoint.peer->link.by_wire || key.index >= kMaxRegions) return;
  hot_.ask(*endpoint.peer, key);
}

}  // namespace orrery::nic
