// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Operations under a clock: each is priced when it is begun, and done at the times that the machine gives
// (docs/timing.md). The bytes that leave are copied when it is begun; the target's rules are applied when the
// message is there, and its events raised; what comes back is stored, and told, at its time.
#include "lib/portals4/process.hpp"

#include "emu/base/log.hpp"
#include "emu/clock/clock.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace orrery::portals4 {

namespace {

model::Op price_of(const match::Operation& op) {
  switch (op.kind) {
    case match::OpKind::get:
      return model::Op::matched_get;
    case match::OpKind::atomic:
      return model::Op::amo;
    case match::OpKind::fetch_atomic:
    case match::OpKind::swap:
      return model::Op::fetch_amo;
    default:
      return op.ack == PTL_NO_ACK_REQ ? model::Op::matched_put : model::Op::matched_put_ack;
  }
}

// Messages to one process are matched in the order in which they were begun.
std::mutex g_order_mu;
std::map<std::uint32_t, Picos> g_until;  // by slot, guarded by g_order_mu

// One operation under way: its first part runs at the target, its last part here. begin() sets both times;
// when the last part finds that the first has not run, it has that done and comes again. Owns itself.
class TimedMessage final : public clock::Task {
 public:
  TimedMessage(clock::Clock& clock, Peer& initiator, const match::Operation& op,
               const match::Arrival& arrival, Peer& target)
      : clock_(clock), initiator_(initiator), target_(target), op_(op), arrival_(arrival) {}

  // The bytes that leave. False: they cannot be read.
  bool keep_source() {
    if (op_.kind == match::OpKind::get) return true;
    std::vector<Range> here;
    bytes_.resize(op_.length);
    return ranges_of(initiator_, op_.source.start, op_.source.pieces, op_.source_offset, op_.length, &here) &&
           read(initiator_, here, bytes_.data()) == Errc::ok;
  }

  void begin() {
    const std::uint32_t slot = target_.name.slot;
    clock::Times times = clock_.start({.op = price_of(op_), .target = slot, .bytes = op_.length});
    Picos there = returns(op_.kind) ? times.turn_at : std::max(times.data_at, times.remote_event_at);
    {
      const std::lock_guard lock(g_order_mu);
      Picos& until = g_until[slot];
      until = there = std::max(there, until);
    }
    here_at_ = std::max({times.local_event_at, times.data_at, there});
    clock_.schedule_there(there, this, slot);
    clock_.schedule(here_at_, &last_, clock::Concerns::others);
  }

  // At the target.
  void run() override {
    match::Verdict verdict;
    {
      match::Session session(target_.match);
      verdict = match::accept(session, arrival_, Process::get().mover());
    }
    outcome_.fail = verdict.fail;
    if (verdict.fail == match::kDelivered) {
      outcome_.fail = fail_of(move(verdict));
      match::Session session(target_.match);
      match::finish(session, arrival_, verdict, outcome_.fail);
    }
    if (outcome_.fail == match::kDelivered) outcome_.moved = verdict.moved;
    outcome_.offset = verdict.offset;
    outcome_.list = verdict.list;
    outcome_.no_ack = verdict.no_ack;
    was_there_ = true;
    clock_.touch(target_.name.slot);
  }

 private:
  class Last final : public clock::Task {
   public:
    explicit Last(TimedMessage& message) : message_(message) {}
    void run() override { message_.end(); }

   private:
    TimedMessage& message_;
  };

  Errc move(const match::Verdict& verdict) {
    std::vector<Range> there;
    if (!ranges_of(target_, verdict.start, verdict.pieces, verdict.offset, verdict.moved, &there))
      return Errc::bounds;
    bytes_.resize(verdict.moved);
    if (is_atomic(op_.kind))
      return change_atomically(target_, there, op_.operation, op_.datatype,
                               reinterpret_cast<const std::byte*>(op_.operand), &bytes_);
    return op_.kind == match::OpKind::get ? read(target_, there, bytes_.data())
                                          : write(target_, there, bytes_.data());
  }

  // Here, at the end.
  void end() {
    if (!was_there_) clock_.settle(target_.name.slot);
    // Parts of the same time come one after another.
    if (!was_there_) return clock_.schedule(here_at_, &last_, clock::Concerns::others);
    if (returns(op_.kind) && outcome_.fail == match::kDelivered) {
      std::vector<Range> here;
      if (!ranges_of(initiator_, op_.result.start, op_.result.pieces, op_.result_offset, outcome_.moved,
                     &here))
        outcome_.fail = match::kSegv;
      else
        outcome_.fail = fail_of(write(initiator_, here, bytes_.data()));
      if (outcome_.fail != match::kDelivered) outcome_.moved = 0;
    }
    tell_initiator(initiator_, op_, outcome_);
    clock_.touch(initiator_.name.slot);
    delete this;
  }

  clock::Clock& clock_;
  Peer& initiator_;
  Peer& target_;
  const match::Operation op_;
  const match::Arrival arrival_;
  std::vector<std::byte> bytes_;
  Outcome outcome_;
  Picos here_at_;
  bool was_there_ = false;
  Last last_{*this};
};

}  // namespace

void perform_in_time(clock::Clock& clock, Peer& initiator, const match::Operation& op,
                     const match::Arrival& arrival, Peer& target) {
  if (target.by_frame) {
    log::error("process {} is reached by frames, which take no time of a clock: the message is not sent",
               target.name.slot);
    return tell_initiator(initiator, op, {});
  }
  clock.enter();
  auto* const message = new TimedMessage(clock, initiator, op, arrival, target);
  if (message->keep_source()) {
    message->begin();
  } else {
    delete message;
    tell_initiator(initiator, op, {.fail = match::kSegv});
  }
  clock.leave();
}

}  // namespace orrery::portals4
