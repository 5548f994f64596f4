// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/initiator/deferral.hpp"
#include "emu/nic/initiator/router.hpp"
#include "emu/nic/initiator/sequence.hpp"
#include "emu/nic/state/mover.hpp"
#include "emu/nic/transport/endpoint.hpp"
#include "emu/nic/transport/request.hpp"
#include "emu/nic/transport/transport.hpp"

#include <cstdint>
#include <span>

namespace orrery::nic {

// The initiator's side of every operation: a request that an API posts is completed with what its endpoint
// says, and begins.
//
// Threads: one thread per endpoint and per queue of completions at a time, different ones in parallel, of one
// port too.
// Invariant: an operation that was accepted raises exactly the events it asked for, whatever happens to the
// peer.
// Usage: const Errc accepted = initiator.post(endpoint, request);  // ok: events report what follows
class Initiator {
 public:
  // `defers`: there is a clock, or there are faults.
  Initiator(HostServices& services, NicView view, Pending& pending, PeerTable& peers, Transport& transport,
            HotMemory& hot, Router& router, Deferral& deferral, bool defers, Mover& mover)
      : services_(services),
        view_(view),
        pending_(pending),
        peers_(peers),
        transport_(transport),
        hot_(hot),
        router_(router),
        deferral_(deferral),
        defers_(defers),
        mover_(mover) {}
  Initiator(const Initiator&) = delete;
  Initiator& operator=(const Initiator&) = delete;

  // Starts one operation. ok: accepted, and events report all that follows. Otherwise nothing happened:
  // invalid_state (endpoint not bound), no_resource (transactions of the queue used up), invalid_param. A
  // remote key that leads nowhere is accepted and ends in an event: invalid_handle (never was a key, or of a
  // process behind another NIC address), unreachable (its process is gone). Never blocks, except for the
  // first post to a peer, which maps it.
  Errc post(Endpoint& endpoint, const Request& request);
  // The same for a caller that tried the fast path (fast_path.hpp) itself.
  Errc post_checked(Endpoint& endpoint, Request request);
  // Starts several operations that end in one completion, in `endpoint`'s queue; it says the first error.
  // `flags`: kLocalEvent, kGlobalEvent. Nothing happened unless ok. May wait for answers to its own earlier
  // parts when it is longer than the packets that a NIC can have.
  Errc post_chain(Endpoint& endpoint, std::span<const ChainPart> parts, std::uint32_t flags, void* context);

  // A transaction that its owner adds operations to and asks for: open_sequence() (null: all in use), then
  // post_in() for each (ok: accepted, errors are the sequence's; no_resource: try again; invalid_state), then
  // end_sequence(), then test_sequence() by its name until it is not `not_done`: ok, the name is free again
  // and `*status` says the first error; invalid_param, there is none of that name. Events in `request` are
  // ignored but kRemoteEvent. Not blocking.
  Sequence* open_sequence();
  Errc post_in(Sequence& sequence, Endpoint& endpoint, const Request& request);
  static void end_sequence(Sequence& sequence) { (void)sequence.take_off(); }
  Errc test_sequence(std::uint32_t name, Errc* status);

  // Whether an operation to the endpoint's peer is not all in frames yet.
  bool waits_for_room(const Endpoint& endpoint) {
    return endpoint.peer != nullptr && transport_.waits_for_room(*endpoint.peer);
  }
  // Asks the owner of a key's memory to move it into the memory file.
  void ask_for_adoption(const Endpoint& endpoint, const MemKey& key);
  // The peer that the key belongs to becomes the endpoint's. Errors: invalid_handle, unreachable, and those
  // of mapping it.
  Errc find_peer(Endpoint& endpoint, const MemKey& remote);
  // What the target's client registered under the key's number: its key, and what the addresses mean there.
  // Errors: invalid_handle (nothing), and those of find_peer().
  Errc name_by_number(Endpoint& endpoint, MemKey* key, std::uint64_t* address, std::uint64_t* sync_address);
  // Writes into the request what it takes from the endpoint: from then on it is complete in itself.
  static void address(Endpoint& endpoint, Request* request);

 private:
  Begun start(Endpoint& endpoint, const Request& request);
  Errc post_part(Sequence& sequence, Endpoint& endpoint, Request part);
  Errc find_bound_process(Endpoint& endpoint, const MemKey& remote, Peer** found);
  Errc post_by_number(Endpoint& endpoint, const Request& request);

  HostServices& services_;
  const NicView view_;
  Pending& pending_;
  PeerTable& peers_;
  Transport& transport_;
  HotMemory& hot_;
  Router& router_;
  Deferral& deferral_;
  const bool defers_;
  Mover& mover_;
  SequenceTable sequences_;  // own lock
};

}  // namespace orrery::nic
