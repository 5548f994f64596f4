// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A request leaves: the initiator's side of every operation.
#include "emu/base/timed_path.hpp"
#include "emu/nic/initiator/fast_path.hpp"
#include "emu/nic/initiator/initiator.hpp"
#include "emu/nic/initiator/post_gate.hpp"
#include "emu/nic/state/thread_word.hpp"

namespace orrery::nic {

Errc Initiator::post(Endpoint& endpoint, const Request& request) {
  constexpr std::uint32_t kEvents = kLocalEvent | kGlobalEvent | kRemoteEvent;
  constexpr std::uint32_t kOrders = kInOrder | kBlockTransfer;
  CompletionQueue* const queue =
      request.completion.queue != nullptr ? request.completion.queue : endpoint.queue;
  const bool usual =
      (request.flags & ~(kEvents | kOrders)) == 0 && request.completion.listener == nullptr &&
      (request.flags & (kLocalEvent | kGlobalEvent)) != (kLocalEvent | kGlobalEvent) &&
      ((request.flags & kBlockTransfer) == 0 || router_.block_transfer_is_short(request.length, queue));
  if (usual && (request.op == Op::put || request.op == Op::get)) {
    const Transfer transfer{.key = key_word(request.remote),
                            .local_address = request.local_address,
                            .remote_address = request.remote_address,
                            .length = request.length,
                            .events = request.flags & kEvents,
                            .in_order = (request.flags & kInOrder) != 0,
                            .queue = queue,
                            .context = request.context};
    const Errc done =
        request.op == Op::put ? try_fast<Op::put>(endpoint, transfer) : try_fast<Op::get>(endpoint, transfer);
    if (done != Errc::not_done) return done;
  }
  return post_checked(endpoint, request);
}

ORRERY_TIMED_PATH void Initiator::address(Endpoint& endpoint, Request* request) {
  request->peer = endpoint.peer;
  request->domain = endpoint.port->domain;
  request->remote_event_data = endpoint.remote_event_data;
  Completion& told = request->completion;
  // A credit is reported to its connection alone.
  if (told.queue == nullptr && request->op != Op::credit) told.queue = endpoint.queue;
  told.events = static_cast<std::uint8_t>(request->flags & (kLocalEvent | kGlobalEvent));
  told.target = request->remote.process;
  told.nic_address = endpoint.remote_nic_address;
  told.context = request->context;
  told.port = endpoint.port;
  told.in_flight = &endpoint.in_flight;
  told.value = endpoint.local_event_data;
  if (request->op == Op::message) {
    told.kind = EventKind::message_sent;
    told.value = static_cast<std::uint32_t>(request->cq_data);
  }
  if (wire::traits(request->op).connected && endpoint.mailbox != nullptr)
    told.broken = &endpoint.mailbox->broken;
}

// Everything that the fast path does not do, or not yet.
ORRERY_TIMED_PATH Errc Initiator::post_checked(Endpoint& endpoint, Request request) {
  if (request.remote.is_number()) [[unlikely]]
    return post_by_number(endpoint, request);
  const PostGate gate(view_, *endpoint.port);
  Errc found = Errc::ok;
  if (endpoint.peer_slot != request.remote.process) {
    if (!endpoint.bound) return Errc::invalid_state;
    found = find_peer(endpoint, request.remote);
  }
  if (endpoint.frame_grant.key == key_word(request.remote) && found == Errc::ok &&
      transport_.send_granted(endpoint, request) == Errc::ok)
    return Errc::ok;
  address(endpoint, &request);
  if (const Errc reserved = reserve(request.completion); reserved != Errc::ok) return reserved;
  const bool fenced = (request.flags & kFence) != 0;
  if (fenced) router_.bte().note_fence();
  if (found != Errc::ok) {
    complete(request.completion, found, router_.teller_of(request));
    return Errc::ok;
  }
  if (request.op == Op::credit && deferral_.holds_any()) return deferral_.hold(request);
  const Begun begun = start(endpoint, request);
  if (begun.kind == Begun::Kind::no_room) {
    if (request.op == Op::message || request.op == Op::credit) return deferral_.hold(request);
    abandon(request.completion);
    return Errc::no_resource;
  }
  if (begun.kind == Begun::Kind::ended)
    complete(request.completion, begun.status, router_.teller_of(request));
  return Errc::ok;
}

// Begins an operation that has been addressed: now, or when a clock or a fault lets it.
ORRERY_TIMED_PATH Begun Initiator::start(Endpoint& endpoint, const Request& request) {
  if (defers_) [[unlikely]] {
    const Begun deferred = deferral_.defer_or_fail(endpoint, request);
    if (deferred.kind != Begun::Kind::ended || deferred.status != Errc::ok) return deferred;
  }
  return router_.route(request, thread_hazard_slot(), &endpoint);
}

Errc Initiator::find_peer(Endpoint& endpoint, const MemKey& remote) {
  endpoint.peer = nullptr;
  endpoint.peer_slot = Endpoint::kNoPeer;
  if (!remote.valid()) return Errc::invalid_handle;
  Peer* peer = nullptr;
  const Errc found = peers_.behind(endpoint.remote_nic_address, remote.process, &peer);
  if (found != Errc::ok) return found;
  endpoint.peer = peer;
  endpoint.peer_slot = remote.process;
  return Errc::ok;
}

}  // namespace orrery::nic
