// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Frames without an answer: that they are done shows in how far their target has come, that they were
// refused in a count that it keeps (refusal.hpp).
#include "emu/nic/events/error_log.hpp"
#include "emu/nic/events/ports.hpp"
#include "emu/nic/state/access.hpp"
#include "emu/nic/transport/endpoint.hpp"
#include "emu/nic/transport/refusal.hpp"
#include "emu/nic/transport/request.hpp"
#include "emu/nic/transport/transport.hpp"

#include <algorithm>

namespace orrery::nic {

namespace {

// How much goes by granted frames between two looks at what was refused.
constexpr std::uint64_t kLookForRefusalsBytes = 4096;

}  // namespace

// Sends an operation that fits one frame and whose initiator is told nothing of its success. No record of it
// is kept: the target's read position in the request lane shows when it is done. False: it was not sent, and
// takes the general way. REQUIRES: frames_mu_ is held.
bool Transport::try_send_unacknowledged(Endpoint& endpoint, const Request& request) {
  constexpr std::uint32_t kAnswered = kLocalOffset | kBlockTransfer;  // fences wait for outstanding requests
  Peer& peer = *request.peer;
  const wire::VerbTraits& verb = wire::traits(request.op);
  const std::uint64_t payload_bytes = verb.payload ? request.length : 0;
  if (request.completion.tells_of_success() || (request.flags & kAnswered) != 0 || !verb.may_be_silent ||
      !peer.waiting.empty() || payload_bytes > peer.requests.max_payload())
    return false;
  // An endpoint remembers one peer.
  if (endpoint.unacknowledged_to != &peer && !endpoint.is_taken_out()) return false;
  wire::PacketHeader header = header_of(request, self_);
  header.flags |= wire::kLast;
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.part_bytes = payload_bytes;
  const auto* from = reinterpret_cast<const std::byte*>(request.local_address);
  if (!peer.requests.try_send(header, {from, payload_bytes}).ok()) return false;
  note_unacknowledged(peer, endpoint);
  keep_frame_grant(endpoint, request);
  return true;
}

void Transport::note_unacknowledged(Peer& peer, Endpoint& endpoint) {
  peer.unacknowledged_end = peer.requests.position();
  if (!peer.unacknowledged) count(peer.in_flight, 1);
  peer.unacknowledged = true;
  endpoint.unacknowledged_to = &peer;
  endpoint.unacknowledged_end = peer.unacknowledged_end;
}

// ---- the same again, without a second look at everything ----

void Transport::keep_frame_grant(Endpoint& endpoint, const Request& request) {
  Peer& peer = *request.peer;
  if (request.op != Op::put || request.length > wire::kShortPayload ||
      (request.flags & ~(kRemoteEvent | kInOrder)) != 0)
    return;
  // An extent may be direct when this says that nothing has changed.
  if ((request.remote.flags & kSpace) != 0) return;
  // Where faults and clocks are, every operation takes the slow path.
  if (!grants_) return;
  MrtEntry& entry = peer.link.nic.region(request.remote.index);
  const std::uint64_t word = entry.control.load(std::memory_order_acquire);
  const std::uint64_t begin = entry.begin.load(std::memory_order_relaxed);
  const std::uint64_t end = entry.end.load(std::memory_order_relaxed);
  if (control::state(word) != RegionState::by_frame || (control::flags(word) & kSegmented) != 0 ||
      check_access(entry, word, request.remote.generation, request.domain, request.remote_address,
                   request.length, true) != Errc::ok)
    return;
  // `begin` and `end` may be a later registration's; then `word` does not come back, and the grant is dead.
  wire::PacketHeader header = header_of(request, self_);
  header.flags |= wire::kLast;
  endpoint.frame_grant = {.key = key_word(request.remote),
                          .peer = &peer,
                          .control = word,
                          .flags = request.flags,
                          .entry = &entry,
                          .begin = begin,
                          .size = end - begin,
                          .frame = wire::short_frame_of(header)};
}

Errc Transport::send_granted(Endpoint& endpoint, const Request& request) {
  FrameGrant& grant = endpoint.frame_grant;
  Peer& peer = *endpoint.peer;
  const std::uint64_t offset = request.remote_address - grant.begin;
  if (grant.peer != &peer || request.op != Op::put || request.flags != grant.flags ||
      request.completion.tells_of_success() || request.length > wire::kShortPayload || offset > grant.size ||
      request.length > grant.size - offset || peer.dead.load(std::memory_order_relaxed) ||
      grant.entry->control.load(std::memory_order_acquire) != grant.control ||
      peer.link.nic.service().poller.load(std::memory_order_relaxed) != Poller::some)
    return Errc::not_done;
  grant.frame.address = request.remote_address;
  grant.frame.event_data = endpoint.remote_event_data;
  {
    const std::lock_guard lock(frames_mu_);
    if (peer.dead.load(std::memory_order_relaxed) || peer.lanes_refused.load(std::memory_order_relaxed) ||
        !peer.lanes_open || !peer.waiting.empty() || endpoint.unacknowledged_to != &peer ||
        !peer.requests.try_send_line(
            grant.frame, {reinterpret_cast<const std::byte*>(request.local_address), request.length}))
      return Errc::not_done;
    // No other thread looks while all goes this way.
    if (peer.requests.position() % kLookForRefusalsBytes == 0) look_for_refusals(peer);
    note_unacknowledged(peer, endpoint);
  }
  endpoint.forget_grants();
  if (sleeps(peer)) services_.ring(peer.link.process);
  hot_.count(peer, request.remote, request.remote_address);
  return Errc::ok;
}

// REQUIRES: frames_mu_ is held.
void Transport::settle_unacknowledged(Peer& peer) {
  if (!peer.unacknowledged || peer.requests.consumed() < peer.unacknowledged_end) return;
  peer.unacknowledged = false;
  count(peer.in_flight, -1);
  look_for_refusals(peer);
}

// ---- frames that were refused without an answer ----

void Transport::collect_refusals() {
  const std::lock_guard lock(frames_mu_);
  for (Peer* peer : lane_peers_) look_for_refusals(*peer);
}

// REQUIRES: frames_mu_ is held.
void Transport::look_for_refusals(Peer& peer) {
  const std::uint64_t word =
      error_state(peer.link.nic).refusals[self_].newest.load(std::memory_order_acquire);
  const std::uint32_t newest = refusal::count(word);
  if (newest == peer.refusals_seen) return;
  // More than one between two looks are as many events of the last one's cause: that is all that is known.
  // Not more than can be kept.
  const std::uint32_t missed =
      std::min<std::uint32_t>(newest - peer.refusals_seen, static_cast<std::uint32_t>(ErrorLog::kErrorsKept));
  peer.refusals_seen = newest;
  for (std::uint32_t i = 0; i < missed; ++i) {
    ports_.tell_of_error(
        {.domain = refusal::domain(word), .nic_address = peer.nic_address, .status = refusal::status(word)});
  }
}

bool Transport::is_in_flight_now(Peer& peer) {
  const std::lock_guard lock(frames_mu_);
  settle_unacknowledged(peer);
  return peer.in_flight.load(std::memory_order_relaxed) != 0;
}

bool Transport::waits_for_room(const Peer& peer) {
  if (peer.in_flight.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(frames_mu_);
  return !peer.waiting.empty();
}

void Transport::count_in_flight(Peer& peer, std::int32_t by) {
  const std::lock_guard lock(frames_mu_);
  count(peer.in_flight, by);
}

bool Transport::all_taken_out() {
  const std::lock_guard lock(frames_mu_);
  return std::none_of(lane_peers_.begin(), lane_peers_.end(), [this](Peer* peer) {
    settle_unacknowledged(*peer);
    return peer->unacknowledged;
  });
}

}  // namespace orrery::nic
