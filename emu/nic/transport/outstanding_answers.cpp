// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Answers to operations that travelled as packets. When the last one has come, or none will, the operation is
// over.
#include "emu/nic/target/execute.hpp"
#include "emu/nic/transport/transport.hpp"

#include <algorithm>

namespace orrery::nic {

using wire::answer_has_data;

// REQUIRES: frames_mu_ is held.
void Transport::end_outstanding(std::uint32_t name, Outstanding& outstanding) {
  complete(outstanding.completion,
           {.status = outstanding.status, .header = &outstanding.header, .answer = outstanding.local},
           Teller::other);
  count(outstanding.peer->in_flight, -1);
  release(outstanding.completion);
  outstanding_.close(name);
  count(pending_.outstanding, -1);
}

// REQUIRES: frames_mu_ is held.
void Transport::take_response(Peer& peer, const wire::Packet& packet) {
  const wire::PacketHeader& header = packet.header;
  const std::uint32_t name = header.transaction;
  Outstanding* outstanding = outstanding_.find(name);
  // A late answer to an outstanding request that ended, or an answer that is not awaited: dropped.
  if (header.verb != wire::Verb::response || outstanding == nullptr || outstanding->peer != &peer ||
      outstanding->answers_due == 0)
    return;
  // What was set aside for this answer, which may be shorter when it is an error.
  if (!peer.link.by_wire) {
    std::uint32_t set_aside = wire::frame_bytes(0);
    if (answer_has_data(outstanding->header) && header.offset <= outstanding->header.length) {
      set_aside = wire::frame_bytes(static_cast<std::uint32_t>(
          std::min<std::uint64_t>(outstanding->header.length - header.offset, peer.requests.max_payload())));
    }
    peer.response_bytes_due -= std::min(peer.response_bytes_due, set_aside);
  }
  --outstanding->answers_due;
  Errc status = header.status < kErrcCount ? static_cast<Errc>(header.status) : Errc::corrupt;
  if (status == Errc::ok && answer_has_data(outstanding->header)) {
    const std::uint64_t length = outstanding->header.length;
    if (header.offset > length || header.payload_bytes > length - header.offset) {
      status = Errc::corrupt;
    } else {
      status = run_guarded(services_, [&] {
        if (outstanding->segments.valid())
          return regions_.scatter(outstanding->segments, outstanding->offset_in_segments() + header.offset,
                                  packet.payload)
                     ? Errc::ok
                     : Errc::invalid_handle;
        store_bytes(outstanding->local + header.offset, packet.payload.data(), packet.payload.size());
        return Errc::ok;
      });
    }
  }
  if (status != Errc::ok && outstanding->status == Errc::ok) outstanding->status = status;
  if (!outstanding->all_sent || outstanding->answers_due != 0) return;
  if (outstanding->status == Errc::ok && (outstanding->flags & kResponseFlag) != 0) {
    outstanding->status = run_guarded(services_, [&] {
      store_bytes(outstanding->local + outstanding->header.length,
                  reinterpret_cast<const std::byte*>(&outstanding->response_flag),
                  sizeof outstanding->response_flag);
      return Errc::ok;
    });
  }
  end_outstanding(name, *outstanding);
}

// Applies a share of one peer's answers; returns how many. REQUIRES: frames_mu_ is held.
int Transport::take_responses(Peer& peer) {
  struct Answers final : wire::Sink {
    Transport& transport;
    Peer& peer;
    Answers(Transport& t, Peer& p) : transport(t), peer(p) {}
    void deliver(const wire::Packet& packet) override { transport.take_response(peer, packet); }
  } answers(*this, peer);
  return peer.responses.poll(answers, kFramesPerPoll);
}

bool Transport::poll_responses() {
  std::vector<Peer*> to_ring;
  std::vector<Peer*> to_fail;
  bool due = false;
  {
    const std::unique_lock lock(frames_mu_, std::try_to_lock);
    if (!lock.owns_lock()) return true;
    for (Peer* peer : lane_peers_) {
      if (peer->in_flight.load(std::memory_order_relaxed) == 0) continue;
      due = true;
      if (peer->responses.broken() || peer->requests.refused()) [[unlikely]] {
        to_fail.push_back(peer);
        continue;
      }
      if (peer->responses.ready()) take_responses(*peer);
      // Also without an answer: what waits may wait for frames without an answer to be taken out.
      if (peer->waiting.empty()) continue;
      if (pump(*peer) && sleeps(*peer)) {
        to_ring.push_back(peer);
      }
    }
  }
  for (const Peer* peer : to_ring) services_.ring(peer->link.process);
  // A lane that one side refused answers nothing any more.
  for (Peer* peer : to_fail) {
    peer->lanes_refused.store(true, std::memory_order_relaxed);
    fail(*peer, Errc::corrupt);
  }
  return due;
}

std::vector<std::uint32_t> Transport::open_requests() {
  const std::lock_guard lock(frames_mu_);
  return outstanding_.names();
}

void Transport::drop_ended(std::vector<std::uint32_t>& names) {
  const std::lock_guard lock(frames_mu_);
  std::erase_if(names, [this](std::uint32_t name) { return outstanding_.find(name) == nullptr; });
}

void Transport::fail(Peer& peer, Errc status) {
  const std::lock_guard lock(frames_mu_);
  if (peer.link.by_wire) {
    if (wire::HostWire* const wire = wire_.load(std::memory_order_relaxed))
      wire->drop_peer(peer.link.process.slot, peer.link.wire_address);
  }
  if (!peer.lanes_open) return;
  // What it answered before it died counts.
  while (!peer.link.by_wire && take_responses(peer) > 0) {
  }
  look_for_refusals(peer);
  peer.waiting.clear();
  for (const std::uint32_t name : outstanding_.names_for(peer)) {
    Outstanding& outstanding = *outstanding_.find(name);
    if (outstanding.status == Errc::ok) outstanding.status = status;
    end_outstanding(name, outstanding);
  }
  std::erase(lane_peers_, &peer);
  std::erase(wire_peers_, &peer);
  peer.lanes_open = false;
  if (peer.unacknowledged) count(peer.in_flight, -1);
  peer.unacknowledged = false;
}

// Drops the answers to what a predecessor in our slot asked. Returns whether none will come any more, so that
// the response lane is ours. REQUIRES: frames_mu_ is held.
bool Transport::drain_predecessors_responses(Peer& peer) {
  // Acquire: the target answers before it counts a request as taken.
  const bool served = peer.requests.consumed() >= peer.inherited_end;
  constexpr int kWholeLanes = 64;  // no more, whatever the peer writes meanwhile
  for (int i = 0; i < kWholeLanes && peer.responses.ready() && !peer.responses.broken(); ++i)
    take_responses(peer);
  peer.inherits = !served || peer.responses.ready();
  return !peer.inherits;
}

}  // namespace orrery::nic
