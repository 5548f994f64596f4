// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Put, get, and both at once. The initiator's thread applies the rules of the target's match unit and moves
// the bytes, in the call; under a clock it does each part at the time that the machine gives.
#include "lib/portals3/message.hpp"

#include "emu/base/log.hpp"
#include "emu/clock/clock.hpp"
#include "lib/common/match_turn.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

namespace orrery::portals3 {

namespace {

match::Fail fail_of(Errc status) {
  if (status == Errc::ok) return match::kDelivered;
  return status == Errc::bounds ? match::kSegv : match::kUndeliverable;
}

// A part of a descriptor's memory.
struct Region {
  std::uint64_t start = 0;
  std::uint32_t pieces = 0;
  std::uint64_t offset = 0;
  bool ranges(Peer& owner, std::uint64_t bytes, std::vector<Range>* to) const {
    return common::ranges_of(owner, start, pieces, offset, bytes, to);
  }
};

// One operation.
class Message {
 public:
  Kind3 kind = Kind3::put;
  bool wants_ack = false;
  classic::Side leaves, returns;  // index 0: not of this operation
  Region from, to;
  ptl_process_id_t target{};
  match::Arrival arrival;

  // The initiator's first events.
  void begin() {
    match::Session session(Process::get().own());
    if (leaves.index != 0) classic::begin(session, leaves, classic::kSend, report(own_id(), 0), true);
  }

  // The target's part of the operation. `bytes` holds a copy of what leaves the initiator, and receives what
  // returns to it. Null: the bytes go straight from memory to memory.
  void carry_out(Peer& peer, std::vector<std::byte>* bytes) {
    match::Verdict verdict;
    {
      match::Session session(peer.match);
      verdict = match::accept(session, arrival);
    }
    // An interface that has just been closed: nothing is there to answer.
    fail_ = verdict.fail == match::kUndeliverable ? match::kDropped : verdict.fail;
    if (fail_ != match::kDelivered) return;
    if (verdict.moved != 0) fail_ = fail_of(move(peer, verdict, bytes));
    // Nothing that the target does in answer comes before this.
    if (bytes == nullptr && fail_ == match::kDelivered) sent();
    int behind = 0;
    {
      match::Session session(peer.match);
      behind = classic::quarters_behind(session, verdict.entry);
      match::finish(session, arrival, verdict, fail_);
    }
    if (behind != 0) give_reader_time(peer, behind);
    // The node of a process that has ended drops what still comes for it.
    if (fail_ != match::kDelivered && Process::get().is_ending(peer, fail_)) fail_ = match::kDropped;
    moved_ = fail_ == match::kDelivered ? verdict.moved : 0;
    offset_ = verdict.offset;
    no_ack_ = verdict.no_ack;
  }

  // What has come back goes to its place.
  void bring_home(const std::vector<std::byte>& bytes) {
    if (returns.index == 0 || fail_ != match::kDelivered || moved_ == 0) return;
    std::vector<Range> here;
    Peer& self = Process::get().self();
    fail_ = to.ranges(self, moved_, &here) ? fail_of(common::write(self, here, bytes.data())) : match::kSegv;
  }

  // The source may be used again. The descriptor is free where nothing more comes for it.
  void sent(match::Fail fail = match::kDelivered) {
    if (leaves.index == 0 || was_sent_) return;
    was_sent_ = true;
    match::Session session(Process::get().own());
    classic::end(session, leaves, classic::kSend, report(own_id(), arrival.length), fail);
    if (wants_ack) return;
    classic::let_go(session, leaves);
    leaves.index = 0;
  }

  // The initiator's last events. A message that was dropped has been sent all the same.
  void end() {
    sent(fail_ == match::kDropped ? match::kDelivered : fail_);
    match::Session session(Process::get().own());
    if (leaves.index != 0) {
      if (wants_ack && !no_ack_ && fail_ == match::kDelivered)
        classic::acknowledge(session, leaves, report(target, moved_));
    }
    if (returns.index != 0 && fail_ != match::kDropped && classic::is_active(session.view(), returns.index)) {
      classic::begin(session, returns, classic::kReply, report(target, moved_), true);
      classic::end(session, returns, classic::kReply, report(target, moved_), fail_);
    }
    if (leaves.index != 0) classic::let_go(session, leaves);
    if (returns.index != 0) classic::let_go(session, returns);
  }

  // There is no such process: as on the machine, its node drops the message.
  void drop() { fail_ = match::kDropped; }

  bool keep_source(std::vector<std::byte>* bytes) const {
    if (leaves.index == 0) return true;
    std::vector<Range> here;
    bytes->resize(arrival.length);
    Peer& self = Process::get().self();
    return from.ranges(self, arrival.length, &here) && common::read(self, here, bytes->data()) == Errc::ok;
  }

 private:
  static ptl_process_id_t own_id() { return {Process::get().own_nid(), Process::get().pid()}; }

  classic::Report report(ptl_process_id_t whose, std::uint64_t moved) const {
    return {.initiator = {whose.nid, whose.pid},
            .uid = arrival.uid,
            .jid = arrival.jid,
            .portal = arrival.portal,
            .match_bits = arrival.match_bits,
            .asked = arrival.length,
            .moved = moved,
            .offset = offset_,
            .header_data = arrival.header_data};
  }

  // Whether others may exchange what this message writes or reads. The entry stays while the message is under
  // way.
  static bool may_be_swapped(const Peer& peer, const match::Verdict& verdict) {
    constexpr std::uint32_t kBoth = match::kOpPut | match::kOpGet;
    return (peer.match.entry(verdict.entry).options & kBoth) == kBoth &&
           verdict.moved <= static_cast<std::uint64_t>(Process::get().limits.max_getput_md);
  }

  Errc move(Peer& peer, const match::Verdict& verdict, std::vector<std::byte>* bytes) {
    Peer& self = Process::get().self();
    std::vector<Range> there;
    std::vector<Range> here;
    if (!common::ranges_of(peer, verdict.start, verdict.pieces, verdict.offset, verdict.moved, &there))
      return Errc::bounds;
    if (kind == Kind3::get_put) return exchange(peer, there, verdict.moved, bytes);
    // A swap is one step for others that swap, put or get there.
    std::optional<common::MatchTurn> turn;
    if (may_be_swapped(peer, verdict)) turn.emplace(peer.match);
    if (bytes != nullptr) {
      bytes->resize(verdict.moved);
      return kind == Kind3::put ? common::write(peer, there, bytes->data())
                                : common::read(peer, there, bytes->data());
    }
    if (!(kind == Kind3::put ? from : to).ranges(self, verdict.moved, &here)) return Errc::bounds;
    return kind == Kind3::put ? common::copy(self, here, peer, there) : common::copy(peer, there, self, here);
  }

  Errc exchange(Peer& peer, const std::vector<Range>& there, std::uint64_t moved,
                std::vector<std::byte>* bytes) {
    Peer& self = Process::get().self();
    std::vector<std::byte> ours;
    if (bytes == nullptr && !keep_source(&ours)) return Errc::bounds;
    if (bytes != nullptr) ours = *bytes;
    std::vector<std::byte> theirs(moved);
    {
      const common::MatchTurn turn(peer.match);
      Errc status = common::read(peer, there, theirs.data());
      if (status == Errc::ok) status = common::write(peer, there, ours.data());
      if (status != Errc::ok) return status;
    }
    if (bytes != nullptr) {
      *bytes = std::move(theirs);
      return Errc::ok;
    }
    std::vector<Range> here;
    if (!to.ranges(self, moved, &here)) return Errc::bounds;
    return common::write(self, here, theirs.data());
  }

  match::Fail fail_ = match::kUndeliverable;
  std::uint64_t moved_ = 0;
  std::uint64_t offset_ = 0;
  bool no_ack_ = false;
  bool was_sent_ = false;
};

// ---- under a clock ----

// Messages to one process are matched in the order in which they were begun.
std::mutex g_order_mu;
std::map<std::uint32_t, Picos> g_until;  // by slot, guarded by g_order_mu

class TimedMessage final : public clock::Task {
 public:
  TimedMessage(clock::Clock& clock, const Message& message, Peer& target)
      : clock_(clock), message_(message), target_(target) {}

  bool keep_source() { return message_.keep_source(&bytes_); }

  void begin() {
    const std::uint32_t slot = target_.name.slot;
    const model::Op op = message_.kind != Kind3::put ? model::Op::matched_get
                         : message_.wants_ack        ? model::Op::matched_put_ack
                                                     : model::Op::matched_put;
    const clock::Times times = clock_.start({.op = op, .target = slot, .bytes = message_.arrival.length});
    Picos there =
        message_.kind != Kind3::put ? times.turn_at : std::max(times.data_at, times.remote_event_at);
    {
      const std::lock_guard lock(g_order_mu);
      Picos& until = g_until[slot];
      until = there = std::max(there, until);
    }
    here_at_ = std::max({times.local_event_at, times.data_at, there});
    clock_.schedule_there(there, this, slot);
    // Where no acknowledgement comes the message has been sent when it has left.
    if (message_.kind == Kind3::put && !message_.wants_ack)
      clock_.schedule(std::max(times.local_event_at, clock_.now()), &left_, clock::Concerns::others);
    clock_.schedule(here_at_, &last_, clock::Concerns::others);
  }

  void run() override {
    message_.carry_out(target_, &bytes_);
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

  class Left final : public clock::Task {
   public:
    explicit Left(TimedMessage& message) : message_(message) {}
    void run() override {
      message_.message_.sent();
      message_.clock_.touch(Process::get().self().name.slot);
    }

   private:
    TimedMessage& message_;
  };

  void end() {
    if (!was_there_) clock_.settle(target_.name.slot);
    // Parts of the same time come one after another.
    if (!was_there_) return clock_.schedule(here_at_, &last_, clock::Concerns::others);
    message_.bring_home(bytes_);
    message_.end();
    clock_.touch(Process::get().self().name.slot);
    delete this;
  }

  clock::Clock& clock_;
  Message message_;
  Peer& target_;
  std::vector<std::byte> bytes_;
  Picos here_at_;
  bool was_there_ = false;
  Last last_{*this};
  Left left_{*this};
};

void send_in_time(clock::Clock& clock, Message& message, Peer& target) {
  clock.enter();
  auto* const timed = new TimedMessage(clock, message, target);
  if (timed->keep_source()) {
    timed->begin();
  } else {
    delete timed;
    message.end();
  }
  clock.leave();
}

int send(Message& message) {
  Process& process = Process::get();
  message.begin();
  Peer* peer = process.find_target(message.target);
  if (peer != nullptr && peer->by_frame && process.is_ending(*peer, match::kSegv)) {
    message.drop();  // met while it ended
    peer = nullptr;
  } else if (peer != nullptr && peer->by_frame) {
    log::error("process {} shares no memory with this one: Portals 3 reaches processes of its own host alone",
               peer->name.slot);
    peer = nullptr;
  } else if (peer == nullptr) {
    message.drop();
  }
  if (peer != nullptr && process.clock() != nullptr) {
    send_in_time(*process.clock(), message, *peer);
    return PTL_OK;
  }
  if (peer != nullptr) message.carry_out(*peer, nullptr);
  message.end();
  return PTL_OK;
}

// ---- arguments ----

// Holds a descriptor for an operation. PTL_OK, PTL_MD_INVALID, PTL_MD_ILLEGAL.
int hold(match::Session& session, const Part& part, classic::Side* side, Region* region, ptl_size_t* length) {
  const match::View& view = session.view();
  const std::uint32_t index = find_descriptor(view, part.md);
  if (index == 0) return PTL_MD_INVALID;
  const match::Entry& entry = view.entry(index);
  const ptl_size_t offset = part.whole ? 0 : part.offset;
  *length = part.whole ? entry.length : part.length;
  if (!classic::is_active(view, index) || offset > entry.length || *length > entry.length - offset)
    return PTL_MD_ILLEGAL;
  *region = {entry.start, entry.pieces, offset};
  *side = classic::hold(session, index);
  return PTL_OK;
}

void address(const To& to, Message* message, ptl_size_t length) {
  message->target = to.target;
  message->arrival = arrival_of(message->kind, to, length);
}

int put(const Part& part, ptl_ack_req_t ack, const To& to) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (!Process::get().open) return PTL_MD_INVALID;
  if (ack != PTL_ACK_REQ && ack != PTL_NO_ACK_REQ) return PTL_FAIL;
  // Without a queue nothing hears of an acknowledgement.
  if (put_shortly(part, to)) return PTL_OK;
  Message message;
  message.kind = Kind3::put;
  ptl_size_t length = 0;
  {
    match::Session session(Process::get().own());
    if (is_wild(to.target) && find_descriptor(session.view(), part.md) != 0) return PTL_PROCESS_INVALID;
    const int held = hold(session, part, &message.leaves, &message.from, &length);
    if (held != PTL_OK) return held;
    // Without a queue nothing could hear of it.
    message.wants_ack = ack == PTL_ACK_REQ && session.view().descriptor(message.leaves.index).queue != 0;
  }
  address(to, &message, length);
  return send(message);
}

int get(const Part& part, const To& to) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (!Process::get().open) return PTL_MD_INVALID;
  Message message;
  message.kind = Kind3::get;
  ptl_size_t length = 0;
  {
    match::Session session(Process::get().own());
    if (is_wild(to.target) && find_descriptor(session.view(), part.md) != 0) return PTL_PROCESS_INVALID;
    const int held = hold(session, part, &message.returns, &message.to, &length);
    if (held != PTL_OK) return held;
  }
  address(to, &message, length);
  return send(message);
}

int get_put(ptl_handle_md_t get_md, ptl_handle_md_t put_md, const To& to) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (!Process::get().open) return PTL_MD_INVALID;
  Message message;
  message.kind = Kind3::get_put;
  ptl_size_t length = 0;
  {
    match::Session session(Process::get().own());
    const match::View& view = session.view();
    const std::uint32_t getting = find_descriptor(view, get_md);
    const std::uint32_t putting = find_descriptor(view, put_md);
    if (getting == 0 || putting == 0) return PTL_MD_INVALID;
    if (is_wild(to.target)) return PTL_PROCESS_INVALID;
    if (view.entry(getting).length != view.entry(putting).length || !classic::is_active(view, getting) ||
        view.entry(getting).length > static_cast<std::uint64_t>(Process::get().limits.max_getput_md))
      return PTL_MD_ILLEGAL;
    const int held = hold(session, {put_md}, &message.leaves, &message.from, &length);
    if (held != PTL_OK) return held;
    (void)hold(session, {get_md}, &message.returns, &message.to, &length);
  }
  address(to, &message, length);
  return send(message);
}

}  // namespace

}  // namespace orrery::portals3

using namespace orrery::portals3;

extern "C" {

int PtlPut(ptl_handle_md_t md_handle, ptl_ack_req_t ack_req, ptl_process_id_t target, ptl_pt_index_t pt_index,
           ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
           ptl_hdr_data_t hdr_data) {
  return put({md_handle}, ack_req, {target, pt_index, ac_index, match_bits, remote_offset, hdr_data});
}

int PtlPutRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                 ptl_process_id_t target, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
                 ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data) {
  return put({md_handle, false, local_offset, length}, ack_req,
             {target, pt_index, ac_index, match_bits, remote_offset, hdr_data});
}

int PtlGet(ptl_handle_md_t md_handle, ptl_process_id_t target, ptl_pt_index_t pt_index,
           ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset) {
  return get({md_handle}, {target, pt_index, ac_index, match_bits, remote_offset, 0});
}

int PtlGetRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                 ptl_process_id_t target, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
                 ptl_match_bits_t match_bits, ptl_size_t remote_offset) {
  return get({md_handle, false, local_offset, length},
             {target, pt_index, ac_index, match_bits, remote_offset, 0});
}

int PtlGetPut(ptl_handle_md_t get_md_handle, ptl_handle_md_t put_md_handle, ptl_process_id_t target,
              ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
              ptl_size_t remote_offset, ptl_hdr_data_t hdr_data) {
  return get_put(get_md_handle, put_md_handle,
                 {target, pt_index, ac_index, match_bits, remote_offset, hdr_data});
}

}  // extern "C"
