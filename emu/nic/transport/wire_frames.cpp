// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Packets to and from processes that share no memory with us: the same requests, answers and rules as by
// lanes, carried by the wire between hosts.
#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/transport/transport.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace orrery::nic {

namespace {

constexpr int kEventsPerPoll = 64;

}  // namespace

void Transport::use_wire(wire::HostWire& wire) {
  const std::lock_guard lock(frames_mu_);
  wire_.store(&wire, std::memory_order_release);
  pending_.ask_for_polls(Pending::kHoldsBack);
}

Status Transport::add_wire_peer(wire::ProcessSlot slot, std::span<const std::byte> address) {
  const std::lock_guard lock(frames_mu_);
  wire::HostWire* const wire = wire_.load(std::memory_order_relaxed);
  if (wire == nullptr) return Errc::unsupported;
  const Status added = wire->add_peer(slot, address);
  // It spoke to us first, and is known already.
  if (!added.ok() && added.code() != Errc::invalid_param) return added;
  // We may wait for any process that we connected to: its death is to be noticed.
  wire->watch(slot, true);
  return {};
}

// REQUIRES: frames_mu_ is held: the wire polls.
void Transport::deliver_from_wire(const wire::Packet& packet) {
  const wire::PacketHeader& header = packet.header;
  if (header.source >= kMaxProcesses) return;
  if (header.verb == wire::Verb::response) {
    Peer* const peer = peers_.find(header.source);
    if (peer != nullptr && peer->link.by_wire) take_response(*peer, packet);
    return;
  }
  wire::HostWire& wire = *wire_.load(std::memory_order_relaxed);
  std::span<std::byte> out;
  Errc status = Errc::ok;
  if (header.verb == wire::Verb::datagram) hooks_.note_datagram_from(header);
  {
    const std::lock_guard lock(requests_mu_);
    status = apply(wire_parts_[header.source], packet, wire.max_payload(), payloads_->wire_answer, &out);
  }
  if ((header.flags & wire::kWantsResponse) == 0) return;
  wire::PacketHeader answer;
  answer.verb = wire::Verb::response;
  answer.domain = header.domain;
  answer.transaction = header.transaction;
  answer.status = static_cast<std::uint8_t>(status);
  answer.offset = header.offset;
  const Status sent = wire.try_send(header.source, answer, out);
  // The wire delivers no request without room for its answer.
  if (!sent.ok() && sent.code() != Errc::unreachable)
    log::error("process {}: an answer by the wire was not taken: {}", header.source, errc_name(sent.code()));
}

// REQUIRES: frames_mu_ is held.
bool Transport::has_unsent(const Peer& peer) const {
  if (!peer.link.by_wire) return false;
  const wire::HostWire* const wire = wire_.load(std::memory_order_relaxed);
  return wire != nullptr && wire->has_unsent(peer.link.process.slot);
}

void Transport::poll_wire(bool must_look) {
  std::vector<wire::ProcessSlot> losses;
  {
    std::unique_lock lock(frames_mu_, std::defer_lock);
    if (must_look)
      lock.lock();
    else if (!lock.try_lock())
      return;
    wire::HostWire* const wire = wire_.load(std::memory_order_relaxed);
    if (wire == nullptr) return;
    (void)wire->poll(kEventsPerPoll);
    for (Peer* const peer : wire_peers_) {
      if (!peer->waiting.empty()) pump(*peer);
    }
    if (!wire_losses_.empty()) [[unlikely]]
      losses = std::exchange(wire_losses_, {});
  }
  for (const wire::ProcessSlot slot : losses) services_.wire_lost(slot);
}

bool Transport::may_sleep_on_wire(std::atomic<std::int64_t>& wakes_at_ns) {
  const std::lock_guard lock(frames_mu_);
  wire::HostWire* const wire = wire_.load(std::memory_order_relaxed);
  if (wire == nullptr) return true;
  if (!wire->prepare_to_sleep()) return false;
  const std::int64_t until = wire->next_deadline_ns().value_or(INT64_MAX);
  // One that is set for earlier stays: setting a timer for each frame costs more than waking once too often.
  if (until < wakes_at_ns.load(std::memory_order_relaxed))
    wakes_at_ns.store(until, std::memory_order_relaxed);
  return true;
}

bool Transport::wire_is_drained() {
  poll_wire(false);
  const std::lock_guard lock(frames_mu_);
  wire::HostWire* const wire = wire_.load(std::memory_order_relaxed);
  return wire == nullptr || wire->is_idle();
}

}  // namespace orrery::nic
