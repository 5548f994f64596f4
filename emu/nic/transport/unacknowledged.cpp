// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Frames without an answer: that they are done shows in how far their target has come, that they were
// refused in a count that it keeps (fault.hpp).
#include "emu/nic/initiator/fast_path.hpp"
#include "emu/nic/nic.hpp"
#include "emu/nic/target/amo_cache.hpp"
#include "emu/nic/target/execute.hpp"

#include <algorithm>

namespace orrery::nic {

namespace {

// How much goes by granted frames between two looks at what was refused.
constexpr std::uint64_t kLookForRefusalsBytes = 4096;

// Whether the frames without an answer of an endpoint have all been delivered, or never will be.
bool is_taken_out(const Endpoint& endpoint) {
  const Peer* const peer = endpoint.unacknowledged_to;
  return peer == nullptr || peer->dead.load(std::memory_order_relaxed) || peer->requests.refused() ||
         peer->requests.consumed() >= endpoint.unacknowledged_end;
}

}  // namespace

// An operation that tells its initiator nothing and fits one frame is sent and forgotten: that it is done
// shows in how far the target has come. False: it did not go, and has to wait like the others. REQUIRES:
// frames_mu_ is held.
bool Nic::try_send_unacknowledged(Endpoint& endpoint, const Request& request) {
  constexpr std::uint32_t kAnswered = kLocalOffset | kBlockTransfer;  // fences wait for outstanding requests
  Peer& peer = *request.peer;
  const wire::VerbTraits& verb = wire::traits(request.op);
  const std::uint64_t payload_bytes = verb.payload ? request.length : 0;
  if (request.completion.tells_of_success() || (request.flags & kAnswered) != 0 || !verb.may_be_silent ||
      !peer.waiting.empty() || payload_bytes > peer.requests.max_payload())
    return false;
  // An endpoint remembers one peer.
  if (endpoint.unacknowledged_to != &peer && !is_taken_out(endpoint)) return false;
  wire::PacketHeader header = header_for(request);
  header.flags |= wire::kLast;
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.part_bytes = payload_bytes;
  const auto* from = reinterpret_cast<const std::byte*>(request.local_address);
  if (!peer.requests.try_send(header, {from, payload_bytes}).ok()) return false;
  note_unacknowledged(peer, endpoint);
  keep_frame_grant(endpoint, request);
  return true;
}

void Nic::note_unacknowledged(Peer& peer, Endpoint& endpoint) {
  peer.unacknowledged_end = peer.requests.position();
  if (!peer.unacknowledged) count(peer.in_flight, 1);
  peer.unacknowledged = true;
  endpoint.unacknowledged_to = &peer;
  endpoint.unacknowledged_end = peer.unacknowledged_end;
}

// ---- the same again, without a second look at everything ----

void Nic::keep_frame_grant(Endpoint& endpoint, const Request& request) {
  Peer& peer = *request.peer;
  if (request.op != Op::put || request.length > wire::kShortPayload ||
      (request.flags & ~(kRemoteEvent | kInOrder)) != 0)
    return;
  // An extent may be direct when this says that nothing has changed.
  if ((request.remote.flags & kSpace) != 0) return;
  // Where faults and clocks are, every operation takes the slow path.
  if (faults_ != nullptr || clock_ != nullptr) return;
  MrtEntry& entry = peer.link.nic.region(request.remote.index);
  const std::uint64_t word = entry.control.load(std::memory_order_acquire);
  const std::uint64_t begin = entry.begin.load(std::memory_order_relaxed);
  const std::uint64_t end = entry.end.load(std::memory_order_relaxed);
  if (control::state(word) != RegionState::by_frame || (control::flags(word) & kSegmented) != 0 ||
      check_access(entry, word, request.remote.generation, request.domain, request.remote_address,
                   request.length, true) != Errc::ok)
    return;
  // `begin` and `end` may be a later registration's; then `word` does not come back, and the grant is dead.
  wire::PacketHeader header = header_for(request);
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

// not_done: it has to take the slow path. REQUIRES: the endpoint's peer is that of the request's key.
Errc Nic::send_granted_frame(Endpoint& endpoint, const Request& request) {
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
  if (sleeps(peer)) services_.ring(peer.link.process);
  count_hit(peer, request.remote, request.remote_address);
  return Errc::ok;
}

// The target's end: what apply() would do with a put of one line without an answer. False: nothing was
// done, and apply() decides. REQUIRES: requests_mu_ is held.
bool Nic::take_short_put(Inbound& from, const wire::ShortFrame& frame) {
  if (frame.verb != wire::Verb::put || (frame.flags & ~wire::kWantsRemoteEvent) != wire::kLast ||
      frame.key_index >= kMaxRegions)
    return false;
  const MrtEntry& entry = view_.region(frame.key_index);
  // Acquire: pairs with the publication of the entry.
  const std::uint64_t word = entry.control.load(std::memory_order_acquire);
  if ((control::flags(word) & kSegmented) != 0 || AmoCache(view_).is_lazy() ||
      check_access(entry, word, frame.key_generation, frame.domain, frame.address, frame.payload_bytes,
                   true) != Errc::ok)
    return false;
  const auto store = [](void* argument) {
    const auto& put = *static_cast<const wire::ShortFrame*>(argument);
    store_bytes(reinterpret_cast<std::byte*>(put.address), put.payload, put.payload_bytes);
    return Errc::ok;
  };
  if (services_.guarded(store, const_cast<wire::ShortFrame*>(&frame)) != Errc::ok) return false;
  from.parts = {.transaction = frame.transaction, .failed = Errc::ok};
  if ((frame.flags & wire::kWantsRemoteEvent) != 0)
    raise_remote_event(view_, word, EventKind::remote, frame.event_data);
  return true;
}

bool Nic::idle(const Endpoint& endpoint) {
  return endpoint.in_flight.load(std::memory_order_acquire) == 0 && is_taken_out(endpoint);
}

// REQUIRES: frames_mu_ is held.
void Nic::settle_unacknowledged(Peer& peer) {
  if (!peer.unacknowledged || peer.requests.consumed() < peer.unacknowledged_end) return;
  peer.unacknowledged = false;
  count(peer.in_flight, -1);
  look_for_refusals(peer);
}

// ---- frames that were refused without an answer ----

void Nic::count_refusal(const wire::PacketHeader& header, Errc status) {
  auto& word = error_state(view_).refusals[header.source].newest;
  // The word is ours alone to write.
  word.store(refusal::next(word.load(std::memory_order_relaxed), header.domain, status),
             std::memory_order_release);
}

void Nic::collect_refusals() {
  const std::lock_guard lock(frames_mu_);
  for (Peer* peer : lane_peers_) look_for_refusals(*peer);
}

// REQUIRES: frames_mu_ is held.
void Nic::look_for_refusals(Peer& peer) {
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

}  // namespace orrery::nic
