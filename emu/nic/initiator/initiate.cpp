// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A request leaves: the initiator's side of every operation. The fast path is at the top: the target's memory
// is mapped here, so this processor applies the target's rules itself and is done before the call returns.
#include "emu/nic/initiator/fast_path.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/nic.hpp"
#include "emu/nic/state/access.hpp"
#include "emu/nic/state/extent_state.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/thread_word.hpp"
#include "emu/nic/target/amo_cache.hpp"
#include "emu/nic/target/amo_unit.hpp"
#include "emu/nic/target/execute.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

namespace {

// Below this many bytes a frame to a target that is polling beats a system call.
constexpr std::uint64_t kAttachBytes = 2048;

// Whether the target's entry can be looked at from here. ok: it can. not_done: its own NIC says what is
// allowed, by packet. Else: it leads nowhere.
Errc find_entry(const Peer& peer, const MemKey& key) {
  if (peer.dead.load(std::memory_order_relaxed)) return Errc::unreachable;
  if (key.index >= kMaxRegions) return Errc::invalid_handle;
  return peer.link.by_wire ? Errc::not_done : Errc::ok;
}

// In which order requests of one endpoint take effect on one host: as they were posted, but for block
// transfers, whatever way each of them goes. Memory that becomes direct while requests are on their way by
// frame is the case that needs care. (Between hosts the wire decides; kInOrder holds for a whole peer.)

// An operation that follows others as packets: what would be refused anyway is refused at once, as by
// try_direct(). not_done: it may go. A list of segments is left to the target, which alone keeps it in place.
Errc refused_at_once(const Request& request) {
  const Errc found = find_entry(*request.peer, request.remote);
  const wire::VerbTraits& verb = wire::traits(request.op);
  if (found != Errc::ok || verb.unit == wire::Unit::buffers || !verb.addressed) return found;
  const MrtEntry& entry = request.peer->link.nic.region(request.remote.index);
  // Acquire: pairs with the owner's publication of the entry.
  const std::uint64_t word = entry.control.load(std::memory_order_acquire);
  if ((control::flags(word) & kSegmented) != 0) return Errc::not_done;
  const Errc access = check_access(entry, word, request.remote.generation, request.domain,
                                   request.remote_address, request.length, verb.writes);
  return access == Errc::ok ? Errc::not_done : access;
}
// Whether a request has to go by frame because an earlier one of its endpoint still does. Where the memory is
// direct by now the frames get a moment: they are the last.
bool follows_own(Nic& nic, const Endpoint& endpoint, const Request& request) {
  if ((request.flags & kBlockTransfer) != 0 || Nic::idle(endpoint)) return false;
  const Peer& peer = *request.peer;
  if (peer.link.by_wire || request.remote.index >= kMaxRegions ||
      control::state(peer.link.nic.region(request.remote.index).control.load(std::memory_order_acquire)) !=
          RegionState::direct)
    return true;
  constexpr int kLooks = 64;
  for (int look = 0; look < kLooks; ++look) {
    nic.progress();
    if (Nic::idle(endpoint)) return false;
    cpu_relax();
  }
  return true;
}

// A request goes by frame: what was granted does not hold any more, of whatever registration it is. What
// follows may not overtake the frame; and memory that becomes direct once more has the control word that it
// had.
void forget_grants(Endpoint& endpoint) {
  for (Grant& grant : endpoint.grants) grant.key = UINT64_MAX;
}

}  // namespace

Errc Nic::post(Endpoint& endpoint, const Request& request) {
  constexpr std::uint32_t kEvents = kLocalEvent | kGlobalEvent | kRemoteEvent;
  constexpr std::uint32_t kOrders = kInOrder | kBlockTransfer;
  CompletionQueue* const queue =
      request.completion.queue != nullptr ? request.completion.queue : endpoint.queue;
  const bool usual =
      (request.flags & ~(kEvents | kOrders)) == 0 && request.completion.listener == nullptr &&
      (request.flags & (kLocalEvent | kGlobalEvent)) != (kLocalEvent | kGlobalEvent) &&
      ((request.flags & kBlockTransfer) == 0 || block_transfer_is_short(request.length, queue));
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

// Writes into the request what it takes from the endpoint: from here on it is complete in itself.
ORRERY_TIMED_PATH void Nic::address(Endpoint& endpoint, Request* request) {
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

// What tells of an operation that the posting thread has carried out itself.
ORRERY_TIMED_PATH Teller Nic::teller_of(const Request& request) const {
  // Behind the events of what it, or a fence before it, waited for: they are in the shared ring.
  return (request.flags & kBlockTransfer) != 0 && bte_.comes_behind_others(request.completion.queue)
             ? Teller::owner_behind
             : Teller::owner;
}

// An earlier operation of ours is still on its way by frame, and this one must stay behind it: it follows it.
ORRERY_TIMED_PATH bool Nic::must_follow(const Request& request) {
  Peer& peer = *request.peer;
  if ((request.flags & kInOrder) == 0 || peer.in_flight.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(frames_mu_);
  settle_unacknowledged(peer);
  return peer.in_flight.load(std::memory_order_relaxed) != 0;
}

ORRERY_TIMED_PATH bool Nic::must_go_to_engine(const Request& request) const {
  return wire::traits(request.op).unit == wire::Unit::region &&
         (request.flags & (kBlockTransfer | kLocalOffset)) != 0 &&
         (request.length >= options_.bte_crossover || (request.flags & kLocalOffset) != 0 ||
          bte_.fences() != 0 ||
          ((request.flags & kFence) != 0 &&
           (bte_.outstanding() != 0 || outstanding_count_.load(std::memory_order_relaxed) != 0)));
}

// Everything that the fast path above does not do, or not yet.
ORRERY_TIMED_PATH Errc Nic::post_checked(Endpoint& endpoint, Request request) {
  if (request.remote.is_number()) [[unlikely]]
    return post_by_number(endpoint, request);
  const PostGate gate(*this, *endpoint.port);
  Errc found = Errc::ok;
  if (endpoint.peer_slot != request.remote.process) {
    if (!endpoint.bound) return Errc::invalid_state;
    found = find_peer(endpoint, request.remote);
  }
  if (endpoint.frame_grant.key == key_word(request.remote) && found == Errc::ok &&
      send_granted_frame(endpoint, request) == Errc::ok)
    return Errc::ok;
  address(endpoint, &request);
  if (const Errc reserved = reserve(request.completion); reserved != Errc::ok) return reserved;
  const bool fenced = (request.flags & kFence) != 0;
  if (fenced) bte_.note_fence();
  if (found != Errc::ok) {
    complete(request.completion, found, teller_of(request));
    return Errc::ok;
  }
  if (request.op == Op::credit && delays_.count.load(std::memory_order_acquire) != 0) return hold(request);
  const Begun begun = start(endpoint, request);
  if (begun.kind == Begun::Kind::no_room) {
    if (request.op == Op::message || request.op == Op::credit) return hold(request);
    abandon(request.completion);
    return Errc::no_resource;
  }
  if (begun.kind == Begun::Kind::ended) complete(request.completion, begun.status, teller_of(request));
  return Errc::ok;
}

// Begins an operation that has been addressed: now, or when a clock or a fault lets it.
ORRERY_TIMED_PATH Begun Nic::start(Endpoint& endpoint, const Request& request) {
  if (clock_ != nullptr || faults_ != nullptr) [[unlikely]] {
    const Begun deferred = defer_or_fail(endpoint, request);
    if (deferred.kind != Begun::Kind::ended || deferred.status != Errc::ok) return deferred;
  }
  return route(request, thread_hazard_slot(), &endpoint);
}

// Which way an operation goes: by the block transfer engine, from here, or as packets. `poster`: the
// endpoint, when it is the thread of its port that calls.
ORRERY_TIMED_PATH Begun Nic::route(const Request& request, std::uint32_t hazard_slot, Endpoint* poster) {
  if (must_go_to_engine(request)) return Begun::handed_on(bte_.submit(request));
  if (!must_follow(request) && (poster == nullptr || !follows_own(*this, *poster, request))) {
    const Errc here = try_here(request, hazard_slot, poster, attach_pays(request, poster));
    if (here != Errc::not_done) return Begun::ended(here);
  } else if (const Errc found = refused_at_once(request); found != Errc::ok && found != Errc::not_done) {
    return Begun::ended(found);
  }
  // What is posted after a fenced transfer waits for it at the engine.
  if ((request.flags & kFence) != 0) return Begun::handed_on(bte_.submit(request));
  if (poster != nullptr) forget_grants(*poster);
  return Begun::handed_on(send_frames(request, poster));
}

// Whether the kernel's copy is worth a system call: not for a few bytes to a target that polls for packets.
ORRERY_TIMED_PATH bool Nic::attach_pays(const Request& request, const Endpoint* poster) const {
  const Peer& peer = *request.peer;
  return poster == nullptr || request.length >= kAttachBytes ||
         peer.link.nic.service().poller.load(std::memory_order_relaxed) != Poller::some;
}

// Carries the request out from here: through the mapped memory of the target, or by the kernel's copy.
// not_done: neither can be. Else: it has ended, so.
ORRERY_TIMED_PATH Errc Nic::try_here(const Request& request, std::uint32_t hazard_slot, Endpoint* poster,
                                     bool may_attach) {
  const Errc direct = try_direct(request, hazard_slot, poster);
  if (direct != Errc::not_done || !may_attach || request.peer->link.by_wire ||
      request.peer->no_attach.load(std::memory_order_relaxed))
    return direct;
  return try_attach(request, hazard_slot);
}

// Applies the request to the target's state when that can be done from here. What is granted is kept in
// `keep_in`, if there is one: the endpoint of the thread that posts. ok and errors: done. not_done: it has to
// go another way.
ORRERY_TIMED_PATH Errc Nic::try_direct(const Request& request, std::uint32_t hazard_slot, Endpoint* keep_in) {
  Peer& peer = *request.peer;
  if (const Errc found = find_entry(peer, request.remote); found != Errc::ok) return found;
  const std::uint32_t index = request.remote.index;
  const wire::VerbTraits& verb = wire::traits(request.op);
  if (verb.unit == wire::Unit::buffers) return send_direct(request, hazard_slot);
  std::unique_lock shared(shared_hazard_mu_, std::defer_lock);
  if (hazard_slot == kSharedHazardSlot) shared.lock();
  MrtEntry& entry = peer.link.nic.region(index);
  const HazardGuard guard(peer.hazard(hazard_slot), index, peer.link.strong_hazards);
  const std::uint64_t word = announced_word(entry);
  const auto in_extents = [&](std::uint64_t address, std::uint64_t length) {
    return address < kSpaceBytes && length <= kSpaceBytes - address &&
           extents_cover(peer.link.nic, address, length);
  };
  const bool reachable =
      (control::state(word) == RegionState::direct || peer.link.same_address_space ||
       ((control::flags(word) & kSpace) != 0 && in_extents(request.remote_address, request.length) &&
        ((request.flags & kSyncFlag) == 0 || in_extents(request.sync_address, sizeof request.sync_value)))) &&
      !AmoCache(peer.link.nic).is_lazy();
  if (reachable || !verb.addressed) return execute_direct(request, word, hazard_slot, keep_in);
  // Not mapped here. What would be refused anyway is refused at once.
  const Errc access = check_access(entry, word, request.remote.generation, request.domain,
                                   request.remote_address, request.length, verb.writes);
  return access == Errc::ok ? Errc::not_done : access;
}

// Any verb, any number of pieces. Keeps what was granted for the next time.
ORRERY_TIMED_PATH Errc Nic::execute_direct(const Request& request, std::uint64_t word,
                                           std::uint32_t hazard_slot, Endpoint* keep_in) {
  Peer& peer = *request.peer;
  const wire::VerbTraits& verb = wire::traits(request.op);
  AddressMap* memory = peer.link.same_address_space ? &identity_ : peer.link.memory.get();
  if (memory == nullptr && verb.addressed) return Errc::not_done;
  // A window that cannot be mapped here: its owner decides, by frame.
  if (verb.addressed && (control::flags(word) & kSegmented) == 0 && request.length != 0) {
    const Run run = memory->find(request.remote_address);
    if (!run.holds(request.remote_address, 1)) return Errc::not_done;
  }
  wire::PacketHeader header = header_for(request);
  header.flags |= wire::kLast;
  const Target target{peer.link.nic, memory};
  std::span<const std::byte> payload;
  std::span<std::byte> out;
  if (verb.payload) {
    payload = {reinterpret_cast<const std::byte*>(request.local_address), request.length};
  }
  if (wire::answer_has_data(header))
    out = {reinterpret_cast<std::byte*>(request.local_address), request.length};
  // Of our own address space some may not be there.
  const bool may_fault = peer.link.same_address_space && (control::flags(word) & kSpace) != 0;
  const Errc status = may_fault
                          ? run_guarded(services_, [&] { return execute(target, header, payload, out); })
                          : execute(target, header, payload, out);
  if (status == Errc::ok && (request.flags & kResponseFlag) != 0) [[unlikely]]
    store_bytes(out.data() + out.size(), reinterpret_cast<const std::byte*>(&request.sync_value), 4);
  // Kept only where the thread has a hazard word of its own that needs no full barrier. A verb that names no
  // memory (an event for a queue) was checked against none, and says nothing about puts.
  if (status == Errc::ok && memory != nullptr && verb.addressed && keep_in != nullptr &&
      hazard_slot != kSharedHazardSlot && hazard_slot != kEngineHazardSlot && !peer.link.strong_hazards &&
      !may_fault && (control::flags(word) & kSegmented) == 0) {
    keep_grant(*keep_in, request, word, *memory);
  }
  return status;
}

void Nic::keep_grant(Endpoint& endpoint, const Request& request, std::uint64_t word,
                     AddressMap& memory) const {
  Peer& peer = *request.peer;
  // With faults every operation has to take the path where they happen.
  if (faults_ != nullptr || (control::flags(word) & kSuspended) != 0) return;
  // Under a clock every operation takes the general way, where it is timed.
  if (clock_ != nullptr) return;
  MrtEntry& entry = peer.link.nic.region(request.remote.index);
  const Run run = memory.find(request.remote_address);
  std::uint64_t begin = std::max(run.begin, entry.begin.load(std::memory_order_relaxed));
  std::uint64_t end = std::min(run.end, entry.end.load(std::memory_order_relaxed));
  FoundExtent extent{&entry.control, word};
  if ((control::flags(word) & kSpace) != 0) {
    extent = find_extent(peer.link.nic, request.remote_address);
    // An owner that withdraws the registration changes its word, then those of all extents: one that is seen
    // before the registration's was not changed for that.
    if (extent.word == nullptr || entry.control.load(std::memory_order_acquire) != word) return;
    begin = std::max(begin, extent.begin);
    end = std::min(end, extent.end);
  }
  if (begin >= end) return;
  if (endpoint.frame_grant.key == key_word(request.remote)) endpoint.frame_grant.key = UINT64_MAX;
  endpoint.grants[key_word(request.remote) % kGrants] = {
      .key = key_word(request.remote) | t_thread_tag,
      .control = extent.value,
      .peer = &peer,
      .word = extent.word,
      .begin = begin,
      .size = end - begin,
      .here = run.at(begin),
      .hazard = &peer.hazard(thread_hazard_slot()),
      .writable = (control::flags(word) & kReadOnly) == 0,
      .queue = control::queue_plus_1(word) == 0
                   ? QueueView{}
                   : open_queue(peer.link.nic, control::queue_plus_1(word) - 1).value_or(QueueView{})};
}

ORRERY_TIMED_PATH wire::PacketHeader Nic::header_for(const Request& request) const {
  wire::PacketHeader header;
  header.verb = request.op;
  if (wire::traits(request.op).answer == wire::Answer::fetched) {
    header.part_bytes = request.length;
    if (amo::fetches(request.command)) header.flags |= wire::kFetching;
  }
  header.command = request.command;
  if ((request.flags & kRemoteEvent) != 0) header.flags |= wire::kWantsRemoteEvent;
  if ((request.remote.flags & kAtTarget) != 0) [[unlikely]]
    header.flags |= wire::kByNumber | ((request.remote.flags & kVirtual) != 0 ? wire::kVirtualNumber : 0);
  header.source = self_;
  header.domain = request.domain;
  header.key_index = request.remote.index;
  header.key_generation = request.remote.generation;
  header.address = request.remote_address;
  header.length = request.length;
  header.event_data = request.op == Op::cq_write ? request.cq_data : request.remote_event_data;
  header.operand[0] = request.operand[0];
  header.operand[1] = request.operand[1];
  if ((request.flags & kSyncFlag) != 0) {
    header.flags |= wire::kHasSyncFlag;
    header.aux = request.sync_address;
    header.operand[0] = request.sync_value;
  }
  return header;
}

// not_done: it cannot be done this way, or not now.
Errc Nic::try_attach(const Request& request, std::uint32_t slot) {
  Peer& peer = *request.peer;
  const wire::VerbTraits& verb = wire::traits(request.op);
  if (!verb.copies) return Errc::not_done;
  const std::uint32_t index = request.remote.index;
  std::unique_lock shared(shared_hazard_mu_, std::defer_lock);
  if (slot == kSharedHazardSlot) shared.lock();
  MrtEntry& entry = peer.link.nic.region(index);
  const HazardGuard guard(peer.hazard(slot), index, peer.link.strong_hazards, kByAttach);
  const std::uint64_t word = announced_word(entry);
  // While its owner moves the pages, a copy by the kernel could land in the old ones.
  if (control::state(word) != RegionState::by_frame || (control::flags(word) & kSegmented) != 0 ||
      AmoCache(peer.link.nic).is_lazy())
    return Errc::not_done;
  Errc status = check_access(entry, word, request.remote.generation, request.domain, request.remote_address,
                             request.length, verb.writes);
  if (status != Errc::ok) return status;
  const bool has_flag = (request.flags & kSyncFlag) != 0;
  if (has_flag) {
    status =
        check_access(entry, word, request.remote.generation, request.domain, request.sync_address, 8, true);
    if (status != Errc::ok) return status;
  }
  if (request.length != 0) {
    status = verb.payload ? services_.attach_write(peer.link.process, entry, word, request.remote_address,
                                                   reinterpret_cast<const std::byte*>(request.local_address),
                                                   request.length)
                          : services_.attach_read(peer.link.process,
                                                  reinterpret_cast<std::byte*>(request.local_address),
                                                  request.remote_address, request.length);
  }
  // Bytes read from pages that were withdrawn meanwhile may be foreign: the owner says what it is.
  if (!verb.payload && entry.control.load(std::memory_order_acquire) != word) return Errc::not_done;
  if (status == Errc::ok && has_flag) {
    status = services_.attach_write(peer.link.process, entry, word, request.sync_address,
                                    reinterpret_cast<const std::byte*>(&request.sync_value), 8);
  }
  if (status == Errc::ok && (request.flags & kResponseFlag) != 0) {
    store_bytes(reinterpret_cast<std::byte*>(request.local_address + request.length),
                reinterpret_cast<const std::byte*>(&request.sync_value), 4);
  }
  if (status == Errc::unreachable) return status;
  if (status != Errc::ok) {
    // Refused by the kernel, or pages that only their owner may touch: the owner decides. A process that may
    // only not write (CrossAttach::can_write()) reads on.
    if (status == Errc::permission || (status == Errc::unsupported && !verb.payload))
      peer.no_attach.store(true, std::memory_order_relaxed);
    return Errc::not_done;
  }
  if ((request.flags & kRemoteEvent) != 0) {
    raise_remote_event(peer.link.nic, word, event_kind(request.op), request.remote_event_data);
  }
  count_hit(peer, request.remote, request.remote_address);
  return Errc::ok;
}

// One chunk of a block transfer, by the engine's thread. `whole` is checked first, so that a transfer that is
// refused moves nothing.
Errc Nic::transfer_chunk(const Request& chunk, const Request& whole) {
  Peer& peer = *whole.peer;
  const Errc found = find_entry(peer, whole.remote);
  if (found != Errc::ok) return found;
  MrtEntry& entry = peer.link.nic.region(whole.remote.index);
  for (;;) {
    const std::uint64_t word = entry.control.load(std::memory_order_acquire);
    const Errc access = check_access(entry, word, whole.remote.generation, whole.domain, whole.remote_address,
                                     whole.length, wire::traits(whole.op).writes);
    if (access != Errc::ok) return access;
    const Errc status = try_here(chunk, kEngineHazardSlot, nullptr, true);
    if (status != Errc::not_done) return status;
    // Its owner is moving the pages: it will be direct, or by frame again, in a moment.
    if (control::state(entry.control.load(std::memory_order_acquire)) != RegionState::moving)
      return Errc::not_done;
    yield_cpu();
  }
}

// One more operation that a direct store would have done: enough of them and the owner is asked to adopt.
// Each initiator counts its own, in memory of its own: a count in the entry would pull its line from core to
// core.
ORRERY_TIMED_PATH void Nic::count_hit(Peer& peer, const MemKey& key, std::uint64_t address) {
  if ((key.flags & kSpace) != 0) return count_extent_hit(peer, address);
  std::uint32_t* const count_word = peer.hits.of(key.index);
  if (count_word == nullptr) return;
  const std::atomic_ref<std::uint32_t> word(*count_word);
  const std::uint32_t seen = word.load(std::memory_order_relaxed);
  const std::uint32_t generation = std::uint32_t{key.generation} << 16;
  const std::uint32_t count = (seen & 0xffff'0000) == generation ? (seen & 0xffff) + 1 : 1;
  if (count > 0xffff) return;
  // Two ports may lose a count to each other: it is a threshold, not a ledger.
  word.store(generation | count, std::memory_order_relaxed);
  if (count != options_.adopt_after) return;
  auto& wanted = peer.link.nic.service().adoption_wanted[key.index / 64];
  wanted.fetch_or(1ull << key.index % 64, std::memory_order_seq_cst);
  services_.ring(peer.link.process);
}

// The same of a whole address space, for the extent. One that cannot be moved is asked for less and less.
void Nic::count_extent_hit(Peer& peer, std::uint64_t address) {
  const std::uint64_t extent = extent_word::extent_of(address);
  auto& word = peer.extent_hits[extent % peer.extent_hits.size()];
  const std::uint64_t seen = word.load(std::memory_order_relaxed);
  const std::uint64_t count = seen >> 16 == extent ? (seen & 0xffff) + 1 : 1;
  if (count > 0xffff) return;
  word.store(extent << 16 | count, std::memory_order_relaxed);
  const std::uint64_t every = std::max(options_.adopt_after, 1u);
  if (count % every != 0 || !std::has_single_bit(count / every)) return;
  want_extent(peer.link.nic, address);
  services_.ring(peer.link.process);
}

// The peer that the key belongs to becomes the endpoint's. Errors: invalid_handle, unreachable, and those of
// mapping it.
Errc Nic::find_peer(Endpoint& endpoint, const MemKey& remote) {
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
