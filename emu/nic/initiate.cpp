// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A request leaves: the initiator's side of every operation. The short way is at the top: the target's memory
// is mapped here, so this processor applies the target's rules itself and is done before the call returns.
#include "emu/nic/access.hpp"
#include "emu/nic/execute.hpp"
#include "emu/nic/hazard.hpp"
#include "emu/nic/nic.hpp"

#include <cstring>

namespace orrery::nic {

namespace {

// Below this many bytes a frame to a target that is polling beats a system call.
constexpr std::uint64_t kAttachBytes = 2048;

constexpr bool writes_target(Op op) { return op == Op::put || op == Op::amo; }

}  // namespace

Errc Nic::post(Endpoint& endpoint, const Request& request) {
  Peer* peer = endpoint.peer;
  if (peer == nullptr) [[unlikely]] {
    const Errc found = find_peer(endpoint);
    if (found != Errc::ok) return found;
    peer = endpoint.peer;
  }
  std::uint32_t transaction = CompletionQueue::kNone;
  if ((request.flags & (kLocalEvent | kGlobalEvent)) != 0) {
    if (endpoint.queue == nullptr) [[unlikely]]
      return Errc::invalid_param;
    transaction = endpoint.queue->open_transaction(request.context);
    if (transaction == CompletionQueue::kNone) [[unlikely]]
      return Errc::no_resource;
    if ((request.flags & (kLocalEvent | kGlobalEvent)) == (kLocalEvent | kGlobalEvent)) [[unlikely]] {
      endpoint.queue->expect_events(transaction, 2);
    }
  }
  // An earlier operation of ours may still be on its way by frame: one that must stay behind it follows it.
  const bool follow = (request.flags & kInOrder) != 0 && peer->in_flight.load(std::memory_order_relaxed) != 0;
  const bool to_engine = (request.flags & kBlockTransfer) != 0 &&
                         (request.length >= options_.bte_crossover || bte_.fences() != 0 ||
                          ((request.flags & kFence) != 0 && bte_.outstanding() != 0));
  Errc status = Errc::not_done;
  if (!follow && !to_engine) [[likely]] {
    status = try_direct(endpoint, *peer, request, endpoint.port->hazard_slot);
  }
  if (status == Errc::not_done) [[unlikely]] {
    status = to_engine ? bte_.submit(endpoint, request, transaction)
                       : post_elsewhere(endpoint, *peer, request, transaction);
    if (to_engine && status == Errc::ok) return Errc::ok;
    if (status == Errc::not_done) return Errc::ok;  // accepted; its events come later
    if (status == Errc::no_resource) {
      if (transaction != CompletionQueue::kNone) endpoint.queue->abandon_transaction(transaction);
      return status;
    }
  }
  if (transaction != CompletionQueue::kNone || status != Errc::ok)
    finish(endpoint, request, transaction, status);
  return Errc::ok;
}

// Applies the request to the target's state when that can be done from here.
// ok and errors: done. not_done: it has to go another way.
Errc Nic::try_direct(Endpoint& endpoint, Peer& peer, const Request& request, std::uint32_t hazard_slot) {
  if (peer.dead.load(std::memory_order_relaxed)) [[unlikely]]
    return Errc::unreachable;
  const std::uint32_t index = request.remote.index;
  if (index >= kMaxRegions) [[unlikely]]
    return Errc::invalid_handle;
  if (hazard_slot == kSharedHazardSlot) [[unlikely]]
    shared_hazard_mu_.lock();
  Errc status = Errc::ok;
  {
    MrtEntry& entry = peer.link.nic.region(index);
    const HazardGuard guard(peer.hazards.slot[hazard_slot], index, peer.link.strong_hazards);
    // Acquire: pairs with the owner's publication of the entry.
    std::uint64_t word = entry.control.load(std::memory_order_acquire);
    if (entry.touched.load(std::memory_order_relaxed) == 0) [[unlikely]] {
      // First access by a peer: from now on its owner has to look for us before it lets go. Either it sees
      // this mark, or the second look sees the entry free.
      entry.touched.exchange(1, std::memory_order_seq_cst);
      word = entry.control.load(std::memory_order_seq_cst);
    }
    const bool reachable = control::state(word) == RegionState::direct || peer.link.same_address_space;
    // The engine keeps no run: the one in the endpoint belongs to the port's thread.
    const bool engine = hazard_slot == kEngineHazardSlot;
    const Run run = engine ? Run{} : endpoint.run;
    if (request.op == Op::put && reachable && run.holds(request.remote_address, request.length) &&
        (request.flags & kSyncFlag) == 0 && (control::flags(word) & kSegmented) == 0) [[likely]] {
      status = check_access(entry, word, request.remote.generation, endpoint.port->domain,
                            request.remote_address, request.length, true);
      if (status == Errc::ok) [[likely]] {
        store_bytes(run.at(request.remote_address), reinterpret_cast<const std::byte*>(request.local_address),
                    request.length);
        if ((request.flags & kRemoteEvent) != 0) {
          raise_remote_event(peer.link.nic, word, EventKind::remote, endpoint.remote_value);
        }
      }
    } else if (request.op == Op::get && reachable && run.holds(request.remote_address, request.length) &&
               (control::flags(word) & kSegmented) == 0) {
      status = check_access(entry, word, request.remote.generation, endpoint.port->domain,
                            request.remote_address, request.length, false);
      if (status == Errc::ok) [[likely]] {
        load_bytes(reinterpret_cast<std::byte*>(request.local_address), run.at(request.remote_address),
                   request.length);
        if ((request.flags & kRemoteEvent) != 0) {
          raise_remote_event(peer.link.nic, word, EventKind::remote, endpoint.remote_value);
        }
      }
    } else if (request.op == Op::cq_write || reachable) {
      status = execute_direct(endpoint, peer, request, word, !engine);
    } else {
      // Not mapped here. What would be refused anyway is refused at once.
      status = check_access(entry, word, request.remote.generation, endpoint.port->domain,
                            request.remote_address, request.length, writes_target(request.op));
      if (status == Errc::ok) status = Errc::not_done;
    }
  }
  if (hazard_slot == kSharedHazardSlot) [[unlikely]]
    shared_hazard_mu_.unlock();
  return status;
}

// The general case: any verb, any number of pieces. Also finds the run for the next time.
Errc Nic::execute_direct(Endpoint& endpoint, Peer& peer, const Request& request, std::uint64_t word,
                         bool keep_run) {
  AddressMap* memory = peer.link.same_address_space ? &identity_ : peer.link.memory.get();
  if (memory == nullptr && request.op != Op::cq_write) return Errc::not_done;
  wire::PacketHeader header = header_for(endpoint, request);
  header.flags |= wire::kLast;
  const Target target{peer.link.nic, memory};
  std::uint64_t old_value = 0;
  std::span<const std::byte> payload;
  std::span<std::byte> out;
  if (request.op == Op::put)
    payload = {reinterpret_cast<const std::byte*>(request.local_address), request.length};
  if (request.op == Op::get) out = {reinterpret_cast<std::byte*>(request.local_address), request.length};
  const Errc status = execute(target, header, payload, out, &old_value);
  if (keep_run && status == Errc::ok && memory != nullptr && (control::flags(word) & kSegmented) == 0 &&
      request.op != Op::cq_write) {
    endpoint.run = memory->find(request.remote_address);
  }
  return status;
}

wire::PacketHeader Nic::header_for(const Endpoint& endpoint, const Request& request) const {
  wire::PacketHeader header;
  switch (request.op) {
    case Op::put:
      header.verb = wire::Verb::put;
      break;
    case Op::get:
      header.verb = wire::Verb::get;
      break;
    case Op::amo:
      header.verb = wire::Verb::amo;
      break;
    case Op::cq_write:
      header.verb = wire::Verb::cq_write;
      break;
    case Op::send:
      header.verb = wire::Verb::send;
      break;
  }
  header.command = request.command;
  if ((request.flags & kRemoteEvent) != 0) header.flags |= wire::kWantsRemoteEvent;
  header.source = self_;
  header.domain = endpoint.port->domain;
  header.key_index = request.remote.index;
  header.key_generation = request.remote.generation;
  header.address = request.remote_address;
  header.length = request.length;
  header.event_data = request.op == Op::cq_write ? request.cq_data : endpoint.remote_value;
  header.operand[0] = request.operand[0];
  header.operand[1] = request.operand[1];
  if ((request.flags & kSyncFlag) != 0) {
    header.flags |= wire::kHasSyncFlag;
    header.aux = request.sync_address;
    header.operand[0] = request.sync_value;
  }
  return header;
}

// The target's memory is not mapped here: the kernel copies, or its owner does.
// not_done: accepted, its events come later. no_resource: try again. Else: done, with that status.
Errc Nic::post_elsewhere(Endpoint& endpoint, Peer& peer, const Request& request, std::uint32_t transaction) {
  if (peer.dead.load(std::memory_order_relaxed)) return Errc::unreachable;
  const bool follow = (request.flags & kInOrder) != 0 && peer.in_flight.load(std::memory_order_relaxed) != 0;
  const bool attended =
      peer.link.nic.service().attendance.load(std::memory_order_relaxed) == Attendance::attended;
  if (!follow && !peer.no_attach.load(std::memory_order_relaxed) &&
      (request.length >= kAttachBytes || !attended)) {
    const Errc status = try_attach(endpoint, peer, request, endpoint.port->hazard_slot);
    if (status != Errc::not_done) return status;
  }
  return send_frames(endpoint, peer, request, transaction, endpoint.queue);
}

// not_done: it cannot be done this way, or not now.
Errc Nic::try_attach(Endpoint& endpoint, Peer& peer, const Request& request, std::uint32_t slot) {
  if (request.op != Op::put && request.op != Op::get) return Errc::not_done;
  const std::uint32_t index = request.remote.index;
  std::unique_lock<std::mutex> shared(shared_hazard_mu_, std::defer_lock);
  if (slot == kSharedHazardSlot) shared.lock();
  MrtEntry& entry = peer.link.nic.region(index);
  const HazardGuard guard(peer.hazards.slot[slot], index, peer.link.strong_hazards);
  const std::uint64_t word = entry.control.load(std::memory_order_acquire);
  // While its owner moves the pages, a copy by the kernel could land in the old ones.
  if (control::state(word) != RegionState::by_frame || (control::flags(word) & kSegmented) != 0)
    return Errc::not_done;
  Errc status = check_access(entry, word, request.remote.generation, endpoint.port->domain,
                             request.remote_address, request.length, writes_target(request.op));
  if (status != Errc::ok) return status;
  const bool has_flag = (request.flags & kSyncFlag) != 0;
  if (has_flag) {
    status = check_access(entry, word, request.remote.generation, endpoint.port->domain, request.sync_address,
                          8, true);
    if (status != Errc::ok) return status;
  }
  if (request.length != 0) {
    status =
        request.op == Op::put
            ? environment_.attach_write(peer.link.process, request.remote_address,
                                        reinterpret_cast<const std::byte*>(request.local_address),
                                        request.length)
            : environment_.attach_read(peer.link.process, reinterpret_cast<std::byte*>(request.local_address),
                                       request.remote_address, request.length);
  }
  if (status == Errc::ok && has_flag) {
    status = environment_.attach_write(peer.link.process, request.sync_address,
                                       reinterpret_cast<const std::byte*>(&request.sync_value), 8);
  }
  if (status == Errc::unreachable) return status;
  if (status != Errc::ok) {
    // Refused by the kernel, or pages that only their owner may touch: the owner decides.
    if (status == Errc::permission || status == Errc::unsupported) {
      peer.no_attach.store(true, std::memory_order_relaxed);
    }
    return Errc::not_done;
  }
  if ((request.flags & kRemoteEvent) != 0) {
    raise_remote_event(peer.link.nic, word, EventKind::remote, endpoint.remote_value);
  }
  count_hit(peer, index);
  return Errc::ok;
}

// One chunk of a block transfer, by the engine's thread. `whole` is checked first, so that a transfer that is
// refused moves nothing.
Errc Nic::transfer_chunk(Endpoint& endpoint, Peer& peer, const Request& chunk, const Request& whole) {
  if (whole.remote.index >= kMaxRegions) return Errc::invalid_handle;
  MrtEntry& entry = peer.link.nic.region(whole.remote.index);
  for (;;) {
    const std::uint64_t word = entry.control.load(std::memory_order_acquire);
    const Errc access = check_access(entry, word, whole.remote.generation, endpoint.port->domain,
                                     whole.remote_address, whole.length, writes_target(whole.op));
    if (access != Errc::ok) return access;
    Errc status = try_direct(endpoint, peer, chunk, kEngineHazardSlot);
    if (status != Errc::not_done) return status;
    if (!peer.no_attach.load(std::memory_order_relaxed)) {
      status = try_attach(endpoint, peer, chunk, kEngineHazardSlot);
      if (status != Errc::not_done) return status;
    }
    // Its owner is moving the pages: it will be direct, or by frame again, in a moment.
    if (control::state(entry.control.load(std::memory_order_acquire)) != RegionState::moving)
      return Errc::not_done;
    yield_cpu();
  }
}

// One more operation that a direct store would have done: enough of them and the owner is asked to adopt.
void Nic::count_hit(Peer& peer, std::uint32_t region) {
  MrtEntry& entry = peer.link.nic.region(region);
  const std::uint32_t hits = entry.hits.fetch_add(1, std::memory_order_relaxed) + 1;
  if (hits != options_.adopt_after) return;
  auto& wanted = peer.link.nic.service().adoption_wanted[region / 64];
  wanted.fetch_or(1ull << region % 64, std::memory_order_seq_cst);
  environment_.ring(peer.link.process);
}

// The operation is over and this thread owns the endpoint's queue.
void Nic::finish(Endpoint& endpoint, const Request& request, std::uint32_t transaction, Errc status) {
  if (transaction == CompletionQueue::kNone) {
    // Asked for no event, but an error is always reported where there is a queue for it.
    if (endpoint.queue == nullptr) return;
    transaction = endpoint.queue->open_transaction(request.context);
    if (transaction == CompletionQueue::kNone) return;
  }
  if ((request.flags & kGlobalEvent) == 0 || (request.flags & kLocalEvent) != 0) {
    endpoint.queue->raise_inline(Event::posted(transaction, false, endpoint.local_value, status));
  }
  if ((request.flags & kGlobalEvent) != 0) {
    endpoint.queue->raise_inline(Event::posted(transaction, true, endpoint.local_value, status));
  }
}

Errc Nic::find_peer(Endpoint& endpoint) {
  if (!endpoint.bound) return Errc::invalid_state;
  const auto process =
      environment_.find_process(endpoint.port->domain, endpoint.remote_nic_address, endpoint.remote_instance);
  if (!process.ok()) return process.code();
  const wire::ProcessSlot slot = process.value().slot;
  if (slot >= kMaxProcesses) return Errc::corrupt;
  Peer* peer = peers_[slot].load(std::memory_order_acquire);
  if (peer == nullptr || peer->link.process != process.value()) {
    auto link = environment_.connect(process.value());
    if (!link.ok()) return link.code();
    const std::lock_guard lock(objects_mu_);
    peer = peers_[slot].load(std::memory_order_acquire);
    if (peer == nullptr || peer->link.process != process.value()) {
      peer_storage_.push_back(std::make_unique<Peer>(std::move(link).value(), self_));
      peer = peer_storage_.back().get();
      // The owner of the memory looks for our announcements from now on.
      peer->link.nic.service().sources[self_ / 64].fetch_or(1ull << self_ % 64, std::memory_order_seq_cst);
      peers_[slot].store(peer, std::memory_order_release);
      // Published first: whoever dies after this look is told by peer_died().
      if (!environment_.alive(process.value())) peer->dead.store(true, std::memory_order_relaxed);
    }
  }
  endpoint.peer = peer;
  endpoint.run = {};
  return Errc::ok;
}

}  // namespace orrery::nic
