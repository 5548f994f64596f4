// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A request carried out by the kernel's copy between processes.
#include "emu/nic/initiator/router.hpp"
#include "emu/nic/state/access.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/thread_word.hpp"
#include "emu/nic/target/amo_cache.hpp"
#include "emu/nic/target/execute.hpp"

#include <mutex>

namespace orrery::nic {

// not_done: it cannot be done this way, or not now.
Errc Router::try_attach(const Request& request, std::uint32_t slot) {
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
  hot_.count(peer, request.remote, request.remote_address);
  return Errc::ok;
}

}  // namespace orrery::nic
