// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// One operation from its initiator to its target and back: the rules of the target's match unit are applied
// by this thread, which also moves the bytes, so that the target need not run.
#include "lib/portals4/process.hpp"

#include "emu/nic/target/match_plain.hpp"
#include "lib/common/match_turn.hpp"

#include <array>
#include <cerrno>
#include <mutex>

#include <boost/container/small_vector.hpp>

namespace orrery::portals4 {

namespace {

Errc move_atomic(Peer& initiator, const match::Operation& op, Peer& target, const std::vector<Range>& there,
                 std::uint64_t bytes, bool fetches) {
  std::vector<Range> source;
  std::vector<Range> result;
  if (!ranges_of(initiator, op.source.start, op.source.pieces, op.source_offset, bytes, &source) ||
      (fetches && !ranges_of(initiator, op.result.start, op.result.pieces, op.result_offset, bytes, &result)))
    return Errc::bounds;
  std::vector<std::byte> ours(bytes);
  Errc status = read(initiator, source, ours.data());
  if (status != Errc::ok) return status;
  status = change_atomically(target, there, op.operation, op.datatype,
                             reinterpret_cast<const std::byte*>(op.operand), &ours);
  if (status == Errc::ok && fetches) status = write(initiator, result, ours.data());
  return status;
}

// Moves the bytes of an accepted operation.
Errc move(Peer& initiator, const match::Operation& op, Peer& target, const match::Verdict& verdict) {
  std::vector<Range> there;
  if (!ranges_of(target, verdict.start, verdict.pieces, verdict.offset, verdict.moved, &there))
    return Errc::bounds;
  std::vector<Range> here;
  switch (op.kind) {
    case match::OpKind::put:
      if (!ranges_of(initiator, op.source.start, op.source.pieces, op.source_offset, verdict.moved, &here))
        return Errc::bounds;
      return copy(initiator, here, target, there);
    case match::OpKind::get:
      if (!ranges_of(initiator, op.result.start, op.result.pieces, op.result_offset, verdict.moved, &here))
        return Errc::bounds;
      return copy(target, there, initiator, here);
    case match::OpKind::atomic:
      return move_atomic(initiator, op, target, there, verdict.moved, false);
    case match::OpKind::fetch_atomic:
    case match::OpKind::swap:
      return move_atomic(initiator, op, target, there, verdict.moved, true);
    default:
      return Errc::illegal_op;
  }
}

match::EventRecord initiator_event(const match::Operation& op, std::uint8_t type, const Outcome& outcome) {
  match::EventRecord event{};
  event.type = type;
  event.user = op.user;
  event.asked = op.length;
  event.moved = outcome.moved;
  event.remote_offset = outcome.offset;
  event.fail = outcome.fail;
  event.list = outcome.list;
  event.operation = op.operation;
  event.datatype = op.datatype;
  return event;
}

// A binding's queue and counter hear of the end of what went through it.
void tell(match::Session& session, const match::Binding& binding, std::uint32_t count_flag,
          const match::EventRecord& event, bool full_event, std::uint64_t bytes) {
  const bool failed = event.fail != match::kDelivered;
  if (full_event && (failed || (binding.options & PTL_MD_EVENT_SUCCESS_DISABLE) == 0))
    raise(session, binding.queue, event);
  if ((binding.options & count_flag) != 0)
    match::count(session, binding.counter,
                 failed                                           ? 0
                 : (binding.options & PTL_MD_EVENT_CT_BYTES) != 0 ? bytes
                                                                  : 1,
                 failed ? 1 : 0);
}

void perform_counter(Peer& initiator, const match::Operation& op) {
  match::Session session(initiator.match);
  const match::Counter& counter = session.view().counter(op.counter);
  if (counter.used == 0 || counter.generation != op.counter_generation) return;
  if (op.kind == match::OpKind::counter_add)
    match::count(session, op.counter, op.success, op.failure);
  else
    match::set_counter(session, op.counter, op.success, op.failure);
}

// What a short operation brings: the program's own bytes, or a copy of another initiator's.
class ShortSource {
 public:
  // False: they are too many or in pieces, or asked for by a call of the kernel.
  bool take(Peer& initiator, const match::Operation& op) {
    if (op.length > kShort || op.source.pieces != 0) return false;
    const std::uint64_t start = op.source.start + op.source_offset;
    bytes_ = initiator.self ? reinterpret_cast<const std::byte*>(start) : copy_.data();
    return initiator.self || op.length == 0 ||
           (initiator.memory != nullptr &&
            initiator.memory->try_get(start, copy_.data(), op.length) == Errc::ok);
  }
  const std::byte* bytes() const { return bytes_; }

 private:
  const std::byte* bytes_ = nullptr;
  std::array<std::byte, kShort> copy_;
};

// A short operation by the mapping of the target's memory: neither blocks nor asks the kernel, so that it may
// run under the match unit's lock.
struct ShortOperation {
  const match::Operation& op;
  Peer& target;
  ShortSource source;
  bool possible = false;

  ShortOperation(Peer& initiator, const match::Operation& operation, Peer& peer)
      : op(operation), target(peer) {
    if (target.memory == nullptr) return;
    if (op.kind == match::OpKind::put || op.kind == match::OpKind::atomic)
      possible = source.take(initiator, op);
    else if (op.kind == match::OpKind::get)
      possible = initiator.self && op.length <= kShort && op.result.pieces == 0;
  }
  bool may_be_plain() const { return possible && op.kind != match::OpKind::atomic; }
  // False: the bytes are moved otherwise, and none has been.
  bool move(std::uint64_t there, std::uint64_t bytes) {
    switch (op.kind) {
      case match::OpKind::put:
        return target.memory->try_put(there, source.bytes(), bytes) == Errc::ok;
      case match::OpKind::get:
        return target.memory->try_get(there, reinterpret_cast<std::byte*>(op.result.start + op.result_offset),
                                      bytes) == Errc::ok;
      default:
        return change(there, bytes);
    }
  }

 private:
  bool change(std::uint64_t there, std::uint64_t bytes) {
    const common::MatchTurn turn(target.match, std::try_to_lock);
    std::array<std::byte, kShort> value;
    if (!turn.is_held() || target.memory->try_get(there, value.data(), bytes) != Errc::ok) return false;
    apply(op.operation, op.datatype, value.data(), source.bytes(),
          reinterpret_cast<const std::byte*>(op.operand), bytes);
    return target.memory->try_put(there, value.data(), bytes) == Errc::ok;
  }
};

// The target's match unit is mapped: this thread applies its rules and moves the bytes. A short message is
// one change of the target's state, a long one two, with its bytes between them.
Outcome perform_here(Peer& initiator, const match::Operation& op, const match::Arrival& arrival,
                     Peer& target) {
  ShortOperation at_once(initiator, op, target);
  Outcome outcome;
  match::Verdict verdict;
  bool whole = false;
  {
    match::Session session(target.match);
    match::Place place;
    if (at_once.may_be_plain() &&
        match::deliver_plain(session, arrival, &place, [&](std::uint64_t there, std::uint64_t bytes) {
          return at_once.move(there, bytes);
        })) {
      outcome.fail = match::kDelivered;
      outcome.moved = place.moved;
      outcome.offset = place.offset;
      return outcome;
    }
    verdict = match::decide(session, arrival);
    whole = verdict.fail == match::kDelivered && at_once.possible && verdict.pieces == 0 &&
            (verdict.moved == 0 || at_once.move(verdict.start + verdict.offset, verdict.moved));
    if (whole)
      match::finish(session, arrival, verdict, match::kDelivered);
    else
      match::hold(session, arrival, &verdict, Process::get().mover());
  }
  outcome.fail = verdict.fail;
  if (verdict.fail != match::kDelivered) return outcome;
  if (!whole) {
    if (verdict.moved != 0) outcome.fail = fail_of(move(initiator, op, target, verdict));
    match::Session session(target.match);
    match::finish(session, arrival, verdict, outcome.fail);
  }
  outcome.moved = outcome.fail == match::kDelivered ? verdict.moved : 0;
  outcome.offset = verdict.offset;
  outcome.list = verdict.list;
  outcome.no_ack = verdict.no_ack;
  return outcome;
}

// What this thread still has to carry out, and whether it is at it: operations raise counters of other
// processes, whose triggers follow one after the other and not inside each other.
using Pending = boost::container::small_vector<Peer*, 8>;
thread_local constinit Pending* t_pending = nullptr;  // null: it is not

// Triggers of one process are carried out by one thread at a time, in order.
void drain(Peer& peer) {
  pthread_mutex_t& executing = peer.match.header().executing;
  while (match::has_due(peer.match)) {
    const int got = pthread_mutex_trylock(&executing);
    if (got == EBUSY) return;  // its holder looks again after it has released it
    if (got == EOWNERDEAD) pthread_mutex_consistent(&executing);
    match::Operation operation;
    for (;;) {
      bool some = false;
      {
        match::Session session(peer.match);
        some = match::take_due(session, &operation);
      }
      if (!some) break;
      perform(peer, operation);
    }
    pthread_mutex_unlock(&executing);
  }
}

}  // namespace

void tell_initiator(Peer& initiator, const match::Operation& op, const Outcome& outcome) {
  if (!hears(op.source) && !hears(op.result)) return;
  match::Session session(initiator.match);
  const bool leaves = op.kind != match::OpKind::get;
  const bool returns = op.kind != match::OpKind::put && op.kind != match::OpKind::atomic;
  if (leaves) {
    Outcome sent = outcome;
    sent.fail = match::kDelivered;
    sent.moved = op.length;
    sent.offset = op.remote_offset;
    tell(session, op.source, PTL_MD_EVENT_CT_SEND, initiator_event(op, match::kEventSend, sent),
         (op.source.options & PTL_MD_EVENT_SEND_DISABLE) == 0, op.length);
  }
  // PTL_OC_ACK_REQ tells that the operation is complete, not how much of it was taken: it counts as one.
  if (leaves && !returns && op.ack != PTL_NO_ACK_REQ && !outcome.no_ack)
    tell(session, op.source, PTL_MD_EVENT_CT_ACK, initiator_event(op, match::kEventAck, outcome),
         op.ack == PTL_ACK_REQ, op.ack == PTL_OC_ACK_REQ ? 1 : outcome.moved);
  if (returns)
    tell(session, op.result, PTL_MD_EVENT_CT_REPLY, initiator_event(op, match::kEventReply, outcome), true,
         outcome.moved);
}

match::Fail fail_of(Errc status) {
  if (status == Errc::ok) return match::kDelivered;
  return status == Errc::bounds ? match::kSegv : match::kUndeliverable;
}

match::Move move_of(match::OpKind kind) {
  switch (kind) {
    case match::OpKind::get:
      return match::Move::get;
    case match::OpKind::atomic:
      return match::Move::atomic;
    case match::OpKind::fetch_atomic:
    case match::OpKind::swap:
      return match::Move::fetch_atomic;
    default:
      return match::Move::put;
  }
}

Errc change_atomically(Peer& owner, const std::vector<Range>& there, std::uint8_t operation,
                       std::uint8_t datatype, const std::byte* operand, std::vector<std::byte>* bytes) {
  std::vector<std::byte> before(bytes->size());
  const common::MatchTurn turn(owner.match);
  Errc status = read(owner, there, before.data());
  if (status != Errc::ok) return status;
  std::vector<std::byte> changed(before);
  apply(operation, datatype, changed.data(), bytes->data(), operand, changed.size());
  status = write(owner, there, changed.data());
  *bytes = std::move(before);
  return status;
}

void run_due(Peer& peer) {
  if (!match::has_due(peer.match)) return;
  // Under a clock an operation is its initiator's: the owner carries it out when its program is at it.
  if (!peer.self && Process::get().clock() != nullptr) return;
  if (t_pending != nullptr) return t_pending->push_back(&peer);
  Pending pending{&peer};
  t_pending = &pending;
  while (!pending.empty()) {
    Peer* const next = pending.back();
    pending.pop_back();
    drain(*next);
  }
  t_pending = nullptr;
}

void perform(Peer& initiator, const match::Operation& op) {
  if (op.kind == match::OpKind::counter_add || op.kind == match::OpKind::counter_set) {
    perform_counter(initiator, op);
    run_due(initiator);
    return;
  }
  Outcome outcome;
  Peer* const target = Process::get().find(op.target);
  if (target != nullptr) {
    const match::Interface& from = initiator.match.interface(op.interface);
    match::Arrival arrival;
    arrival.move = move_of(op.kind);
    arrival.interface = op.interface;
    arrival.operation = op.operation;
    arrival.datatype = op.datatype;
    arrival.portal = op.portal;
    name_initiator(from, &arrival);
    arrival.match_bits = op.match_bits;
    arrival.remote_offset = op.remote_offset;
    arrival.length = op.length;
    arrival.header_data = op.header_data;
    if (clock::Clock* const clock = Process::get().clock(); clock != nullptr)
      return perform_in_time(*clock, initiator, op, arrival, *target);
    outcome = target->by_frame ? perform_by_frame(initiator, op, arrival, *target)
                               : perform_here(initiator, op, arrival, *target);
  }
  tell_initiator(initiator, op, outcome);
  if (target != nullptr && !target->by_frame) run_due(*target);
  run_due(initiator);
}

}  // namespace orrery::portals4
