// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Frames that leave: requests become packets, and packets that find no room wait.
#include "emu/base/check.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/transport/refusal.hpp"
#include "emu/nic/transport/request.hpp"
#include "emu/nic/transport/transport.hpp"

#include <algorithm>

namespace orrery::nic {

namespace {

// How long a process that ends waits for room for what it has posted. A peer that is stopped makes none.
constexpr std::int64_t kLastWordsNs = 1'000'000'000;

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

Transport::Transport(HostServices& services, Pending& pending, wire::ProcessSlot self, PeerTable& peers,
                     Ports& ports, Regions& regions, HotMemory& hot, bool grants, Hooks hooks)
    : services_(services),
      pending_(pending),
      view_(pending.view),
      self_(self),
      peers_(peers),
      ports_(ports),
      regions_(regions),
      hot_(hot),
      grants_(grants),
      hooks_(std::move(hooks)),
      // A multiplier that spreads neighbouring process ids over the generations.
      outstanding_(static_cast<std::uint32_t>(view_.header().pid) * 2654435761u >> 10) {}

void Transport::open_lanes(Peer& peer) {
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

Errc Transport::send(const Request& request, Endpoint* silent_by) {
  Peer& peer = *request.peer;
  const bool by_wire = peer.link.by_wire;
  if (!by_wire && self_ >= peer.link.nic.lane_count()) return Errc::unreachable;
  bool sent = false;
  bool answered = true;
  bool unsent = false;
  if (by_wire) services_.post_to_wire(pending_.polls.value());
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
      wire::PacketHeader header = header_of(request, self_);
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
      count(pending_.outstanding, 1);
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
  if (wire::traits(request.op).addressed) hot_.count(peer, request.remote, request.remote_address);
  // The service thread has to take the answer in if the program does not poll.
  if (answered && view_.service().poller.load(std::memory_order_relaxed) == Poller::none)
    services_.ring_self();
  return Errc::not_done;
}

Errc Transport::send_packet(Peer& peer, const wire::PacketHeader& header, std::span<const std::byte> payload,
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
    count(pending_.outstanding, 1);
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
void Transport::keep_rest(Outstanding& outstanding) {
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
bool Transport::pump(Peer& peer) {
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
        if (!regions_.gather(outstanding.segments, outstanding.offset_in_segments() + outstanding.sent,
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

// Locks are tried for only: the program may end in a signal handler, above a call that holds one.
void Transport::send_the_rest() {
  const auto any_waits = [this] {
    const std::unique_lock lock(frames_mu_, std::try_to_lock);
    return !lock.owns_lock() || std::any_of(lane_peers_.begin(), lane_peers_.end(), [](const Peer* peer) {
      return !peer->waiting.empty() && !peer->dead.load(std::memory_order_relaxed);
    });
  };
  const std::int64_t deadline = monotonic_ns() + kLastWordsNs;
  for (; any_waits() && monotonic_ns() < deadline; yield_cpu()) (void)poll_responses();
}

}  // namespace orrery::nic
