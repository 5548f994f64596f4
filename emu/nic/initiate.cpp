// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A request leaves: the initiator's side of every operation. The short way is at the top: the target's memory
// is mapped here, so this processor applies the target's rules itself and is done before the call returns.
#include "emu/nic/access.hpp"
#include "emu/nic/execute.hpp"
#include "emu/nic/hazard.hpp"
#include "emu/nic/nic.hpp"

#include <algorithm>
#include <cstring>

namespace orrery::nic {

namespace {

// Below this many bytes a frame to a target that is polling beats a system call.
constexpr std::uint64_t kAttachBytes = 2048;

constexpr std::uint32_t key_word(const MemKey& key) {
  return static_cast<std::uint32_t>(key.generation) << 16 | key.index;
}

// An aligned word, which is what most puts and gets are, without a call.
inline void store_short(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 8 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0) [[likely]] {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to))
        .store(word, std::memory_order_release);
    return;
  }
  store_bytes(to, from, bytes);
}

inline void load_short(std::byte* to, std::byte* from, std::size_t bytes) {
  if (bytes == 8 && reinterpret_cast<std::uintptr_t>(from) % 8 == 0) [[likely]] {
    const std::uint64_t word = std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(from))
                                   .load(std::memory_order_acquire);
    std::memcpy(to, &word, sizeof word);
    return;
  }
  load_bytes(to, from, bytes);
}

// The control word of an entry whose hazard was just announced.
inline std::uint64_t announced_word(MrtEntry& entry) {
  // Acquire: pairs with the owner's publication of the entry.
  const std::uint64_t word = entry.control.load(std::memory_order_acquire);
  if (entry.touched.load(std::memory_order_relaxed) != 0) return word;
  // First access by a peer: from now on its owner has to look for us before it lets go. Either it sees this
  // mark, or the second look sees the entry free.
  entry.touched.exchange(1, std::memory_order_seq_cst);
  return entry.control.load(std::memory_order_seq_cst);
}

constexpr bool writes_target(Op op) { return op == Op::put || op == Op::amo; }

}  // namespace

Errc Nic::post(Endpoint& endpoint, const Request& request) {
  // A put or get that asks for nothing unusual, through a key that was granted before.
  constexpr std::uint32_t kEvents = kLocalEvent | kGlobalEvent | kRemoteEvent;
  constexpr std::uint32_t kOrders = kInOrder | kFence | kBlockTransfer;
  const Grant& grant = endpoint.grants[request.remote.index % 4];
  const bool is_put = request.op == Op::put;
  const std::uint64_t offset = request.remote_address - grant.begin;
  if (grant.key != key_word(request.remote) || (request.flags & ~(kEvents | kOrders)) != 0 ||
      !(is_put ? grant.writable : request.op == Op::get) || offset > grant.size ||
      request.length > grant.size - offset || endpoint.peer->dead.load(std::memory_order_relaxed) ||
      ((request.flags & kOrders) != 0 && must_queue(*endpoint.peer, request))) [[unlikely]] {
    return post_checked(endpoint, request);
  }
  std::uint32_t transaction = CompletionQueue::kNone;
  if ((request.flags & (kLocalEvent | kGlobalEvent)) != 0) {
    const Errc opened = open_transaction(endpoint, request, &transaction);
    if (opened != Errc::ok) [[unlikely]]
      return opened;
  }
  {
    const HazardGuard guard(*grant.hazard, request.remote.index, false);
    // Acquire: pairs with the owner's publication. An owner who withdraws the registration changes this word
    // and then looks for our announcement.
    if (grant.entry->control.load(std::memory_order_acquire) == grant.control) [[likely]] {
      if (is_put) {
        store_short(grant.here + offset, reinterpret_cast<const std::byte*>(request.local_address),
                    request.length);
      } else {
        load_short(reinterpret_cast<std::byte*>(request.local_address), grant.here + offset, request.length);
      }
      if ((request.flags & kRemoteEvent) != 0) {
        raise_remote_event(endpoint.peer->link.nic, grant.control, EventKind::remote, endpoint.remote_value);
      }
      if (transaction != CompletionQueue::kNone) raise_local(endpoint, request, transaction, Errc::ok);
      return Errc::ok;
    }
  }
  if (transaction != CompletionQueue::kNone) endpoint.queue->abandon_transaction(transaction);
  return post_checked(endpoint, request);
}

Errc Nic::open_transaction(Endpoint& endpoint, const Request& request, std::uint32_t* transaction) {
  if (endpoint.queue == nullptr) [[unlikely]]
    return Errc::invalid_param;
  *transaction = endpoint.queue->open_transaction(request.context);
  if (*transaction == CompletionQueue::kNone) [[unlikely]]
    return Errc::no_resource;
  if ((request.flags & (kLocalEvent | kGlobalEvent)) == (kLocalEvent | kGlobalEvent)) [[unlikely]] {
    endpoint.queue->expect_events(*transaction, 2);
  }
  return Errc::ok;
}

void Nic::raise_local(Endpoint& endpoint, const Request& request, std::uint32_t transaction, Errc status) {
  if ((request.flags & kGlobalEvent) == 0 || (request.flags & kLocalEvent) != 0) {
    endpoint.queue->raise_inline(Event::posted(transaction, false, endpoint.local_value, status));
  }
  if ((request.flags & kGlobalEvent) != 0) {
    endpoint.queue->raise_inline(Event::posted(transaction, true, endpoint.local_value, status));
  }
}

// An earlier operation of ours is still on its way by frame, and this one must stay behind it: it follows it.
bool Nic::must_follow(const Peer& peer, const Request& request) {
  return (request.flags & kInOrder) != 0 && peer.in_flight.load(std::memory_order_relaxed) != 0;
}

bool Nic::must_go_to_engine(const Request& request) const {
  return (request.flags & kBlockTransfer) != 0 &&
         (request.length >= options_.bte_crossover || bte_.fences() != 0 ||
          ((request.flags & kFence) != 0 && bte_.outstanding() != 0));
}

bool Nic::must_queue(const Peer& peer, const Request& request) const {
  return must_follow(peer, request) || must_go_to_engine(request);
}

// Everything that the short way above does not do, or not yet.
Errc Nic::post_checked(Endpoint& endpoint, const Request& request) {
  if (endpoint.peer == nullptr) {
    const Errc found = find_peer(endpoint);
    if (found != Errc::ok) return found;
  }
  Peer& peer = *endpoint.peer;
  std::uint32_t transaction = CompletionQueue::kNone;
  if ((request.flags & (kLocalEvent | kGlobalEvent)) != 0) {
    const Errc opened = open_transaction(endpoint, request, &transaction);
    if (opened != Errc::ok) return opened;
  }
  const bool to_engine = must_go_to_engine(request);
  Errc status = Errc::not_done;
  if (!to_engine && !must_follow(peer, request)) {
    status = try_direct(endpoint, peer, request, endpoint.port->hazard_slot);
  }
  if (status == Errc::not_done) {
    status = to_engine ? bte_.submit(endpoint, request, transaction)
                       : post_elsewhere(endpoint, peer, request, transaction);
    if (to_engine && status == Errc::ok) return Errc::ok;
    if (status == Errc::not_done) return Errc::ok;  // accepted; its events come later
    if (status == Errc::no_resource) {
      if (transaction != CompletionQueue::kNone) endpoint.queue->abandon_transaction(transaction);
      return status;
    }
  }
  if (transaction != CompletionQueue::kNone || status != Errc::ok) {
    finish(endpoint, request, transaction, status);
  }
  return Errc::ok;
}

// Applies the request to the target's state when that can be done from here.
// ok and errors: done. not_done: it has to go another way.
Errc Nic::try_direct(Endpoint& endpoint, Peer& peer, const Request& request, std::uint32_t hazard_slot) {
  if (peer.dead.load(std::memory_order_relaxed)) return Errc::unreachable;
  const std::uint32_t index = request.remote.index;
  if (index >= kMaxRegions) return Errc::invalid_handle;
  std::unique_lock<std::mutex> shared(shared_hazard_mu_, std::defer_lock);
  if (hazard_slot == kSharedHazardSlot) shared.lock();
  MrtEntry& entry = peer.link.nic.region(index);
  const HazardGuard guard(peer.hazards.slot[hazard_slot], index, peer.link.strong_hazards);
  const std::uint64_t word = announced_word(entry);
  const bool reachable = control::state(word) == RegionState::direct || peer.link.same_address_space;
  if (reachable || request.op == Op::cq_write)
    return execute_direct(endpoint, peer, request, word, hazard_slot);
  // Not mapped here. What would be refused anyway is refused at once.
  const Errc access = check_access(entry, word, request.remote.generation, endpoint.port->domain,
                                   request.remote_address, request.length, writes_target(request.op));
  return access == Errc::ok ? Errc::not_done : access;
}

// Any verb, any number of pieces. Keeps what was granted for the next time.
Errc Nic::execute_direct(Endpoint& endpoint, Peer& peer, const Request& request, std::uint64_t word,
                         std::uint32_t hazard_slot) {
  AddressMap* memory = peer.link.same_address_space ? &identity_ : peer.link.memory.get();
  if (memory == nullptr && request.op != Op::cq_write) return Errc::not_done;
  // A window that cannot be mapped here: its owner decides, by frame.
  if (request.op != Op::cq_write && (control::flags(word) & kSegmented) == 0 && request.length != 0) {
    const Run run = memory->find(request.remote_address);
    if (!run.holds(request.remote_address, 1)) return Errc::not_done;
  }
  wire::PacketHeader header = header_for(endpoint, request);
  header.flags |= wire::kLast;
  const Target target{peer.link.nic, memory};
  std::uint64_t old_value = 0;
  std::span<const std::byte> payload;
  std::span<std::byte> out;
  if (request.op == Op::put) {
    payload = {reinterpret_cast<const std::byte*>(request.local_address), request.length};
  }
  if (request.op == Op::get) out = {reinterpret_cast<std::byte*>(request.local_address), request.length};
  const Errc status = execute(target, header, payload, out, &old_value);
  // A word that ports share, the engine's word, and words that need a full barrier keep to this path.
  if (status == Errc::ok && memory != nullptr && hazard_slot < kSharedHazardSlot &&
      !peer.link.strong_hazards && (control::flags(word) & kSegmented) == 0) {
    keep_grant(endpoint, peer, request, word, *memory);
  }
  return status;
}

void Nic::keep_grant(Endpoint& endpoint, Peer& peer, const Request& request, std::uint64_t word,
                     AddressMap& memory) {
  MrtEntry& entry = peer.link.nic.region(request.remote.index);
  const Run run = memory.find(request.remote_address);
  const std::uint64_t begin = std::max(run.begin, entry.begin.load(std::memory_order_relaxed));
  const std::uint64_t end = std::min(run.end, entry.end.load(std::memory_order_relaxed));
  if (begin >= end) return;
  endpoint.grants[request.remote.index % 4] = {.key = key_word(request.remote),
                                               .writable = (control::flags(word) & kReadOnly) == 0,
                                               .control = word,
                                               .entry = &entry,
                                               .begin = begin,
                                               .size = end - begin,
                                               .here = run.at(begin),
                                               .hazard = &peer.hazards.slot[endpoint.port->hazard_slot]};
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
  const bool attended =
      peer.link.nic.service().attendance.load(std::memory_order_relaxed) == Attendance::attended;
  if (!must_follow(peer, request) && !peer.no_attach.load(std::memory_order_relaxed) &&
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
  const std::uint64_t word = announced_word(entry);
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
  raise_local(endpoint, request, transaction, status);
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
      // A predecessor in our slot may have died in the middle of an access.
      for (auto& word : peer->hazards.slot) word.store(0, std::memory_order_relaxed);
      // The owner of the memory looks for our announcements from now on.
      peer->link.nic.service().sources[self_ / 64].fetch_or(1ull << self_ % 64, std::memory_order_seq_cst);
      peers_[slot].store(peer, std::memory_order_release);
      // Published first: whoever dies after this look is told by peer_died().
      if (!environment_.alive(process.value())) peer->dead.store(true, std::memory_order_relaxed);
    }
  }
  endpoint.peer = peer;
  endpoint.grants = {};
  return Errc::ok;
}

}  // namespace orrery::nic
