// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Frames: what leaves as packets and what arrives as packets, whichever thread moves it along. A thread of
// the program that polls does it in passing; the service thread does it when no other thread looks.
#include "emu/base/check.hpp"
#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/nic.hpp"
#include "emu/nic/target/execute.hpp"
#include "emu/nic/target/match_packets.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

namespace {

// How often a program that polls the wire looks at the time; each poll is at least a system call.
constexpr std::uint64_t kPollsPerLook = 8;

}  // namespace

// ---- outbound ----

namespace {

using wire::answer_has_data;

// A put's part from so many bytes on is sent without being copied.
constexpr std::uint64_t kWorthInPlace = 32'768;

// Bytes of one packet by the wire between hosts: whole lines, as in a lane.
std::uint64_t wire_part(const wire::HostWire& wire) {
  return std::min<std::uint64_t>(wire.max_payload(), wire::kLongestWirePart) & ~std::uint64_t{kCacheLine - 1};
}

// Bytes that an operation's packets are for, both ways.
std::uint64_t bytes_of(const wire::PacketHeader& header) {
  const wire::VerbTraits& verb = wire::traits(header.verb);
  return verb.payload || verb.answer != wire::Answer::status ? header.length : 0;
}
// The header of the packet for `part` of those bytes, from `offset` on.
wire::PacketHeader part_of(const wire::PacketHeader& whole, std::uint64_t offset, std::uint32_t part,
                           std::uint64_t total) {
  wire::PacketHeader header = whole;
  header.offset = offset;
  header.part_bytes = part;
  header.flags |= wire::kWantsResponse;
  if (offset + part == total) header.flags |= wire::kLast;
  if (wire::traits(whole.verb).payload) header.payload_bytes = part;
  return header;
}

// Hands an operation that is one packet, copied, to the wire between hosts. False: it is not, or there is no
// room now.
bool send_whole(wire::HostWire& wire, wire::ProcessSlot to, const wire::PacketHeader& header,
                const std::byte* local) {
  const std::uint64_t total = bytes_of(header);
  if (total >= kWorthInPlace || total > wire_part(wire)) return false;
  std::span<const std::byte> payload;
  if (wire::traits(header.verb).payload) payload = {local, total};
  return wire.try_send(to, part_of(header, 0, static_cast<std::uint32_t>(total), total), payload).ok();
}

}  // namespace

void Nic::open_lanes(Peer& peer) {
  if (peer.link.by_wire) {
    peer.lanes_open = true;
    wire_peers_.push_back(&peer);
    return;
  }
  const NicView& nic = peer.link.nic;
  ORRERY_CHECK(self_ < nic.lane_count(), "process slot {} has no lane at the peer", self_);
  peer.requests = wire::RingProducer(nic.request_lane(self_), nic.lane_bytes());
  peer.responses = wire::RingConsumer(nic.response_lane(self_), nic.lane_bytes());
  peer.lanes_open = true;
  peer.inherited_end = peer.requests.position();
  peer.inherits = peer.requests.consumed() != peer.inherited_end || peer.responses.ready();
  // What a predecessor in our slot was refused is not ours.
  peer.refusals_seen =
      refusal::count(error_state(nic).refusals[self_].newest.load(std::memory_order_acquire));
  lane_peers_.push_back(&peer);
  ServiceState& service = nic.service();
  const std::uint64_t bit = 1ull << self_ % 64;
  service.active_lanes[self_ / 64].fetch_or(bit, std::memory_order_seq_cst);
  // A predecessor that died between these two steps left a bit without a change, which is ours now. Zero
  // stays for no lane at all.
  if (service.lane_changes.fetch_add(1, std::memory_order_seq_cst) == UINT32_MAX)
    service.lane_changes.fetch_add(1, std::memory_order_seq_cst);
}

// `silent_by`: the endpoint whose frames get no answer, if the operation may be one; its port's thread posts
// it.
Errc Nic::send_frames(const Request& request, Endpoint* silent_by) {
  Peer& peer = *request.peer;
  const bool by_wire = peer.link.by_wire;
  if (!by_wire && self_ >= peer.link.nic.lane_count()) return Errc::unreachable;
  bool sent = false;
  bool answered = true;
  bool unsent = false;
  if (by_wire) services_.post_to_wire(polls_.value());
  {
    const std::lock_guard lock(frames_mu_);
    if (peer.dead.load(std::memory_order_relaxed)) return Errc::unreachable;
    if (peer.lanes_refused.load(std::memory_order_relaxed)) return Errc::corrupt;
    if (!peer.lanes_open) open_lanes(peer);
    sent = !by_wire && silent_by != nullptr && try_send_unacknowledged(*silent_by, request);
    answered = !sent;
    if (answered) {
      const auto name = outstanding_.open();
      if (!name) return Errc::no_resource;
      wire::PacketHeader header = header_for(request);
      header.transaction = *name;
      auto* const local = reinterpret_cast<std::byte*>(request.local_address);
      const bool in_segments = (request.flags & kLocalOffset) != 0;
      // Before the outstanding request is written down: what is done after it left costs the peer no time,
      // and its answer is not taken in before we release the lock.
      const bool left =
          by_wire && !in_segments && peer.waiting.empty() &&
          send_whole(*wire_.load(std::memory_order_relaxed), peer.link.process.slot, header, local);
      Outstanding& outstanding = *outstanding_.find(*name);
      outstanding.peer = &peer;
      outstanding.completion = request.completion;
      outstanding.flags = request.flags;
      outstanding.header = header;
      outstanding.local = local;
      outstanding.segments = in_segments ? request.local : MemKey{};
      outstanding.response_flag = static_cast<std::uint32_t>(request.sync_value);
      retain(outstanding.completion);
      count(peer.in_flight, 1);
      count(outstanding_count_, 1);
      if (left) {
        outstanding.sent = bytes_of(header);
        outstanding.all_sent = true;
        outstanding.answers_due = 1;
      } else {
        peer.waiting.push_back(*name);
        sent = pump(peer);
      }
      if (by_wire) unsent = has_unsent(peer);
      keep_rest(outstanding);
    }
  }
  if (by_wire) {
    services_.attend_wire(unsent);
    return Errc::not_done;
  }
  if (sent && sleeps(peer)) services_.ring(peer.link.process);
  if (wire::traits(request.op).addressed) count_hit(peer, request.remote, request.remote_address);
  // The service thread has to take the answer in if the program does not poll.
  if (answered && view_.service().poller.load(std::memory_order_relaxed) == Poller::none)
    services_.ring_self();
  return Errc::not_done;
}

// One packet of the NIC's own: a half of a datagram exchange with its `payload`, or a join or release, of
// which the sender waits for no more than that it is taken. Its end is told to `listener`, under frames_mu_.
// not_done: it is on its way. no_resource: try again.
Errc Nic::send_packet(Peer& peer, const wire::PacketHeader& header, std::span<const std::byte> payload,
                      const Completion& completion) {
  if (!peer.link.by_wire && self_ >= peer.link.nic.lane_count()) return Errc::unreachable;
  bool sent = false;
  bool unsent = false;
  {
    const std::lock_guard lock(frames_mu_);
    if (peer.dead.load(std::memory_order_relaxed)) return Errc::unreachable;
    if (peer.lanes_refused.load(std::memory_order_relaxed)) return Errc::corrupt;
    if (!peer.lanes_open) open_lanes(peer);
    const auto name = outstanding_.open();
    if (!name) return Errc::no_resource;
    Outstanding& outstanding = *outstanding_.find(*name);
    outstanding.peer = &peer;
    outstanding.completion = completion;
    outstanding.header = header;
    outstanding.header.source = self_;
    outstanding.header.transaction = *name;
    if (answer_has_data(header)) {
      outstanding.kept.assign(payload.begin(), payload.end());
      outstanding.kept.resize(payload.size() + header.length);
      outstanding.local = outstanding.kept.data() + payload.size();
    }
    count(peer.in_flight, 1);
    count(outstanding_count_, 1);
    peer.waiting.push_back(*name);
    sent = pump(peer);
    unsent = has_unsent(peer);
  }
  if (peer.link.by_wire) {
    services_.attend_wire(unsent);
    return Errc::not_done;
  }
  if (sent && sleeps(peer)) services_.ring(peer.link.process);
  if (view_.service().poller.load(std::memory_order_relaxed) == Poller::none) services_.ring_self();
  return Errc::not_done;
}

// REQUIRES: frames_mu_ is held.
void Nic::keep_rest(Outstanding& outstanding) {
  const wire::VerbTraits& verb = wire::traits(outstanding.header.verb);
  // What is sent to a buffer stays as it is until its event.
  const bool may_change = verb.payload && verb.unit == wire::Unit::region;
  if (!may_change || (outstanding.flags & kBlockTransfer) != 0 || outstanding.segments.valid() ||
      outstanding.all_sent)
    return;
  outstanding.kept.assign(outstanding.local + outstanding.sent,
                          outstanding.local + outstanding.header.length);
  outstanding.local = outstanding.kept.data() - outstanding.sent;
}

// Hands packets of waiting outstanding requests to the lane until it is full. Returns whether the peer has
// something to look at. REQUIRES: frames_mu_ is held.
bool Nic::pump(Peer& peer) {
  if (peer.inherits && !drain_predecessors_responses(peer)) [[unlikely]]
    return true;
  bool any = false;
  wire::HostWire* const wire = peer.link.by_wire ? wire_.load(std::memory_order_relaxed) : nullptr;
  const std::uint32_t lane_bytes = peer.link.nic.lane_bytes();
  const std::uint64_t max_part = wire == nullptr ? peer.requests.max_payload() : wire_part(*wire);
  while (!peer.waiting.empty()) {
    Outstanding& outstanding = *outstanding_.find(peer.waiting.front());
    const bool brings_data = answer_has_data(outstanding.header);
    const bool has_payload = wire::traits(outstanding.header.verb).payload;
    // A block transfer's source stays as it is until its event, so that the wire need not copy it.
    const bool may_stay = wire != nullptr && outstanding.header.verb == wire::Verb::put &&
                          (outstanding.flags & kBlockTransfer) != 0 && !outstanding.segments.valid();
    const std::uint64_t longest_in_place =
        may_stay ? wire->longest_in_place() & ~std::uint64_t{kCacheLine - 1} : 0;
    // Parts are whole lines, so that none ends within a word of an AMO.
    const std::uint64_t total = bytes_of(outstanding.header);
    while (!outstanding.all_sent) {
      const bool in_place = longest_in_place != 0 && total - outstanding.sent >= kWorthInPlace;
      const auto part = static_cast<std::uint32_t>(
          std::min(total - outstanding.sent, in_place ? longest_in_place : max_part));
      const std::uint32_t answer_bytes = wire::frame_bytes(brings_data ? part : 0);
      // Answers by the wire never lack room: it takes no request in without.
      if (wire == nullptr &&
          peer.response_bytes_due + answer_bytes > wire::RingProducer::sure_room_of(lane_bytes))
        return any;
      wire::PacketHeader header = part_of(outstanding.header, outstanding.sent, part, total);
      std::span<const std::byte> payload;
      if (has_payload && outstanding.segments.valid()) {
        std::vector<std::byte>& gathered = payloads_->gathered;
        gathered.resize(std::max<std::size_t>(gathered.size(), part));
        // Let go of meanwhile: the packets go on, so that the peer's count is right, and the event says it.
        if (!gather(outstanding.segments, outstanding.offset_in_segments() + outstanding.sent,
                    {gathered.data(), part}))
          outstanding.status = Errc::invalid_handle;
        payload = {gathered.data(), part};
      } else if (has_payload) {
        payload = {outstanding.local + outstanding.sent, part};
      }
      if (!has_payload && !outstanding.kept.empty()) {  // of a packet of the NIC's own
        payload = {outstanding.kept.data(), outstanding.kept.size() - outstanding.header.length};
        header.payload_bytes = static_cast<std::uint32_t>(payload.size());
      }
      const wire::ProcessSlot slot = peer.link.process.slot;
      const Status sent = wire == nullptr ? peer.requests.try_send(header, payload)
                          : in_place      ? wire->try_send_in_place(slot, header, payload)
                                          : wire->try_send(slot, header, payload);
      if (!sent.ok()) return any;
      any = true;
      if (wire == nullptr) peer.response_bytes_due += answer_bytes;
      ++outstanding.answers_due;
      outstanding.sent += part;
      outstanding.all_sent = (header.flags & wire::kLast) != 0;
    }
    peer.waiting.pop_front();
  }
  return any;
}

// ---- inbound ----

// Applies one packet of a process whose last one is in `from`. `out`: the answer's payload, in `buffer`.
// REQUIRES: requests_mu_ is held.
namespace {
bool names_space(const NicView& nic, const wire::PacketHeader& header) {
  return header.key_index < kMaxRegions &&
         (control::flags(nic.region(header.key_index).control.load(std::memory_order_relaxed)) & kSpace) != 0;
}
}  // namespace

Errc Nic::apply(Parts& from, const wire::Packet& packet, std::uint32_t max_part, std::span<std::byte> buffer,
                std::span<std::byte>* out) {
  const wire::PacketHeader& header = packet.header;
  const wire::VerbTraits& verb = wire::traits(header.verb);
  const bool brings_data = answer_has_data(header);
  Errc status = Errc::ok;
  *out = {};
  // A packet asks for no more than a packet's worth of work.
  const bool in_parts = verb.answer != wire::Answer::status;
  if (in_parts && (header.part_bytes > max_part || header.part_bytes > buffer.size())) {
    status = Errc::corrupt;
  } else if (brings_data) {
    *out = buffer.first(header.part_bytes);
  }
  // The parts of one operation follow each other. After one that failed the rest is not done: the last part
  // would tell of data that is not there.
  if (header.offset == 0)
    from.failed = Errc::ok;
  else if (header.transaction == from.transaction && status == Errc::ok)
    status = from.failed;
  if (status == Errc::ok && verb.unit == wire::Unit::engine) [[unlikely]] {
    status = collective_.take(header);
  } else if (status == Errc::ok && verb.unit == wire::Unit::match) [[unlikely]] {
    // Acquire: what the server is made of.
    match::PacketServer* const server = match_server_.load(std::memory_order_acquire);
    std::fill(out->begin(), out->end(), std::byte{0});
    status = server == nullptr ? Errc::invalid_handle : server->serve(header, packet.payload, *out);
  } else if (status == Errc::ok) {
    const Target target{view_, &identity_};
    const auto carry_out = [&](const Target& where) {
      return run_guarded(services_, [&] { return execute(where, header, packet.payload, *out); });
    };
    status = carry_out(target);
    // A page that faults: of memory that is gone, or that its owner has protected since it was registered,
    // which is no matter to a device. Of a whole address space the protection decides.
    if (status == Errc::bounds && verb.copies && !names_space(view_, header)) [[unlikely]]
      status = carry_out({.nic = view_, .memory = &identity_, .is_protected = true});
    from.failed = status;
  }
  from.transaction = header.transaction;
  if (status != Errc::ok) *out = {};
  return status;
}

void Nic::deliver(const wire::Packet& packet) {
  const wire::PacketHeader& header = packet.header;
  if (header.source >= kMaxProcesses) return;
  Inbound& from = inbound_[header.source];
  if (!from.open) return;
  std::span<std::byte> out;
  const Errc status = apply(from.parts, packet, from.responses.max_payload(), payloads_->lane_answer, &out);
  if ((header.flags & wire::kWantsResponse) == 0) {
    if (status != Errc::ok) [[unlikely]]
      count_refusal(header, status);
    return;
  }
  wire::PacketHeader answer;
  answer.verb = wire::Verb::response;
  answer.source = self_;
  answer.transaction = header.transaction;
  answer.status = static_cast<std::uint8_t>(status);
  answer.offset = header.offset;
  answer.payload_bytes = static_cast<std::uint32_t>(out.size());
  if (!from.responses.try_send(answer, out).ok()) {
    // An initiator that has more answers due than the lane holds broke the protocol.
    log::warn("process {}: its response lane is full, so its requests are no longer served", header.source);
    refuse(from);
  }
}

// REQUIRES: requests_mu_ is held.
void Nic::refuse(Inbound& from) {
  from.open = false;
  from.requests.refuse();
}

// Returns whether anything was applied. Another thread that is at it is left to it, unless this one
// `must_look` for itself.
bool Nic::poll_requests(bool must_look) {
  // Refuses what claims to come from another process than the lane's.
  struct Checked final : wire::Sink {
    Nic& nic;
    std::uint32_t source;
    Checked(Nic& n, std::uint32_t s) : nic(n), source(s) {}
    void deliver(const wire::Packet& packet) override {
      if (packet.header.source == source) return nic.deliver(packet);
      log::warn("process {}: a frame of its lane says that it comes from {}", source, packet.header.source);
      nic.refuse(nic.inbound_[source]);
    }
    bool deliver_line(const wire::ShortFrame& frame) override {
      return frame.source == source && nic.take_short_put(nic.inbound_[source], frame);
    }
  };
  if (view_.service().lane_changes.load(std::memory_order_acquire) == 0) return false;
  if (!must_look && nothing_arrived()) return false;
  std::unique_lock lock(requests_mu_, std::defer_lock);
  if (must_look)
    lock.lock();
  else if (!lock.try_lock())
    return false;
  find_lanes();
  bool any = false;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Inbound& from = inbound_[lanes_[i]];
    if (!from.open || !from.requests.ready()) continue;
    Checked sink(*this, lanes_[i]);
    if (from.requests.poll(sink, kFramesPerPoll) > 0) any = true;
    if (i < next_frames_.size()) next_frames_[i].store(from.requests.next(), std::memory_order_relaxed);
  }
  return any;
}

// Opens the lanes that came into use since the last time. REQUIRES: requests_mu_ is held.
void Nic::find_lanes() {
  ServiceState& service = view_.service();
  const std::uint32_t changes = service.lane_changes.load(std::memory_order_acquire);
  if (changes == lanes_seen_) return;
  lanes_seen_ = changes;
  for (std::uint32_t group = 0; group < kMaxProcesses / 64; ++group) {
    std::uint64_t bits = service.active_lanes[group].load(std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t source = group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (source >= view_.lane_count()) continue;
      Inbound& from = inbound_[source];
      if (from.opened) continue;
      from.requests = wire::RingConsumer(view_.request_lane(source), view_.lane_bytes());
      from.responses = wire::RingProducer(view_.response_lane(source), view_.lane_bytes());
      from.opened = true;
      from.open = true;
      if (lanes_.size() < next_frames_.size())
        next_frames_[lanes_.size()].store(from.requests.next(), std::memory_order_relaxed);
      lanes_.push_back(static_cast<std::uint16_t>(source));
    }
  }
  next_frames_for_.store(lanes_.size() <= next_frames_.size() ? changes : 0, std::memory_order_release);
}

// ---- the polling thread ----

bool Nic::progress(const void* source) {
  if (clock_ != nullptr) [[unlikely]] {
    progress_timed(source);
    return true;
  }
  return move_along();
}

Errc Nic::progress_and_take(CompletionQueue& queue, Event* event) {
  if (!progress(&queue)) return Errc::not_done;
  const Errc found = queue.take(event);
  if (clock_ != nullptr && found != Errc::not_done) [[unlikely]]
    clock_->found();
  return found;
}

bool Nic::move_along() {
  if (polls_.add()) [[unlikely]]
    after_idle_polls();
  bool any = triggers_.run(TriggerUnit::Look::at_signals);
  if (outstanding_count_.load(std::memory_order_relaxed) != 0) {
    poll_responses();
    any = true;
  }
  if (wire_.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {
    poll_wire(false);
    if (polls_.value() % kPollsPerLook == 0) {
      if (const std::int64_t delay = streak_.postpone(monotonic_ns())) services_.postpone_service(delay);
    }
    any = true;
  }
  if (view_.service().lane_changes.load(std::memory_order_relaxed) != 0) any = poll_requests(false) || any;
  if (collective_.active()) {
    collective_.progress();
    any = true;
  }
  if (delays_.count.load(std::memory_order_relaxed) != 0) [[unlikely]]
    any = run_delayed() || any;
  return any;
}

}  // namespace orrery::nic
