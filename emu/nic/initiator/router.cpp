// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/initiator/router.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/state/access.hpp"
#include "emu/nic/state/extent_state.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/thread_word.hpp"
#include "emu/nic/target/amo_cache.hpp"
#include "emu/nic/target/execute.hpp"

#include <algorithm>
#include <mutex>

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

// An operation that follows others as packets: what would be refused anyway is refused at once, as by
// Router::try_direct(). not_done: it may go. A list of segments is left to the target, which alone keeps it
// in place.
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

}  // namespace

Router::Router(HostServices& services, Pending& pending, wire::ProcessSlot self, Transport& transport,
               Regions& regions, HotMemory& hot, Mover& mover, const Options& options)
    : services_(services),
      pending_(pending),
      self_(self),
      transport_(transport),
      regions_(regions),
      hot_(hot),
      mover_(mover),
      options_(options) {}

// Whether a request has to go by frame because an earlier one of its endpoint still does. Where the memory is
// direct by now the frames get a moment: they are the last.
bool Router::follows_own(const Endpoint& endpoint, const Request& request) {
  if ((request.flags & kBlockTransfer) != 0 || endpoint.is_idle()) return false;
  const Peer& peer = *request.peer;
  if (peer.link.by_wire || request.remote.index >= kMaxRegions ||
      control::state(peer.link.nic.region(request.remote.index).control.load(std::memory_order_acquire)) !=
          RegionState::direct)
    return true;
  constexpr int kLooks = 64;
  for (int look = 0; look < kLooks; ++look) {
    (void)mover_.progress(nullptr);
    if (endpoint.is_idle()) return false;
    cpu_relax();
  }
  return true;
}

// What tells of an operation that the posting thread has carried out itself.
ORRERY_TIMED_PATH Teller Router::teller_of(const Request& request) const {
  // Behind the events of what it, or a fence before it, waited for: they are in the shared ring.
  return (request.flags & kBlockTransfer) != 0 && bte_.comes_behind_others(request.completion.queue)
             ? Teller::owner_behind
             : Teller::owner;
}

// An earlier operation of ours is still on its way by frame, and this one must stay behind it: it follows it.
ORRERY_TIMED_PATH bool Router::must_follow(const Request& request) {
  return (request.flags & kInOrder) != 0 && transport_.has_in_flight(*request.peer);
}

ORRERY_TIMED_PATH bool Router::must_go_to_engine(const Request& request) const {
  return wire::traits(request.op).unit == wire::Unit::region &&
         (request.flags & (kBlockTransfer | kLocalOffset)) != 0 &&
         (request.length >= options_.bte_crossover || (request.flags & kLocalOffset) != 0 ||
          bte_.fences() != 0 ||
          ((request.flags & kFence) != 0 && (bte_.outstanding() != 0 || pending_.has_outstanding())));
}

ORRERY_TIMED_PATH Begun Router::route(const Request& request, std::uint32_t hazard_slot, Endpoint* poster) {
  if (must_go_to_engine(request)) return Begun::handed_on(bte_.submit(request));
  if (!must_follow(request) && (poster == nullptr || !follows_own(*poster, request))) {
    const Errc here = try_here(request, hazard_slot, poster, attach_pays(request, poster));
    if (here != Errc::not_done) return Begun::ended(here);
  } else if (const Errc found = refused_at_once(request); found != Errc::ok && found != Errc::not_done) {
    return Begun::ended(found);
  }
  // What is posted after a fenced transfer waits for it at the engine.
  if ((request.flags & kFence) != 0) return Begun::handed_on(bte_.submit(request));
  if (poster != nullptr) poster->forget_grants();
  return Begun::handed_on(transport_.send(request, poster));
}

// Whether the kernel's copy is worth a system call: not for a few bytes to a target that polls for packets.
ORRERY_TIMED_PATH bool Router::attach_pays(const Request& request, const Endpoint* poster) const {
  const Peer& peer = *request.peer;
  return poster == nullptr || request.length >= kAttachBytes ||
         peer.link.nic.service().poller.load(std::memory_order_relaxed) != Poller::some;
}

// Carries the request out from here: through the mapped memory of the target, or by the kernel's copy.
// not_done: neither can be. Else: it has ended, so.
ORRERY_TIMED_PATH Errc Router::try_here(const Request& request, std::uint32_t hazard_slot, Endpoint* poster,
                                        bool may_attach) {
  const Errc direct = try_direct(request, hazard_slot, poster);
  if (direct != Errc::not_done || !may_attach || request.peer->link.by_wire ||
      request.peer->no_attach.load(std::memory_order_relaxed))
    return direct;
  return try_attach(request, hazard_slot);
}

ORRERY_TIMED_PATH Errc Router::try_direct(const Request& request, std::uint32_t hazard_slot,
                                          Endpoint* keep_in) {
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
ORRERY_TIMED_PATH Errc Router::execute_direct(const Request& request, std::uint64_t word,
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
  wire::PacketHeader header = header_of(request, self_);
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

// One chunk of a block transfer, by the engine's thread. `whole` is checked first, so that a transfer that is
// refused moves nothing.
Errc Router::transfer_chunk(const Request& chunk, const Request& whole) {
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

void Router::raise_at_target(const Request& request) {
  Peer& peer = *request.peer;
  const std::uint32_t index = request.remote.index;
  // Announced as an access is (try_direct): the queue stays until this is over.
  const std::lock_guard shared(shared_hazard_mu_);
  const HazardGuard guard(peer.hazard(kSharedHazardSlot), index, peer.link.strong_hazards);
  const std::uint64_t word = announced_word(peer.link.nic.region(index));
  // Deregistered since the data came: no owner is left to be told.
  if (control::state(word) == RegionState::free || control::generation(word) != request.remote.generation)
    return;
  raise_remote_event(peer.link.nic, word, event_kind(request.op), request.remote_event_data);
}

void Router::keep_grant(Endpoint& endpoint, const Request& request, std::uint64_t word,
                        AddressMap& memory) const {
  Peer& peer = *request.peer;
  // With faults or a clock every operation has to take the general path, where they are met.
  if (!options_.grants || (control::flags(word) & kSuspended) != 0) return;
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

// ---- what the engine asks for ----

Errc Router::carry(const Request& chunk, const Request& whole, bool first) {
  // Frames that it must not overtake: behind them, as frames too.
  return first && must_follow(whole) ? Errc::not_done : transfer_chunk(chunk, whole);
}

void Router::await(std::vector<std::uint32_t>& names) {
  (void)mover_.progress(nullptr);
  transport_.drop_ended(names);
}

bool Router::is_quiet() const { return !pending_.holds_operations(); }

}  // namespace orrery::nic
