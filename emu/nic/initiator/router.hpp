// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/events/completion.hpp"
#include "emu/nic/initiator/bte_queue.hpp"
#include "emu/nic/memory/regions.hpp"
#include "emu/nic/state/address_map.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/state/mover.hpp"
#include "emu/nic/transport/endpoint.hpp"
#include "emu/nic/transport/request.hpp"
#include "emu/nic/transport/transport.hpp"

#include <cstdint>
#include <vector>

namespace orrery::nic {

// Which way a request goes that has been addressed: to the block transfer engine, from here through mapped
// memory or by the kernel's copy, or as packets.
//
// Threads: any; route() with a `poster`: the thread that uses that endpoint. Lock: `shared_hazard`, held for
// one access by threads that have no hazard word of their own.
// Invariant: requests of one endpoint take effect on one host as they were posted, but for block transfers,
// whatever way each of them goes. (Between hosts the wire decides; kInOrder holds for a whole peer.)
// Usage: const Begun begun = router.route(request, thread_hazard_slot(), &endpoint);
class Router final : private BteQueue::Carrier {
 public:
  struct Options {
    std::uint64_t bte_crossover = 4ull << 20;  // block transfers of at least this many bytes go to the engine
    bool grants = true;                        // accesses may be granted: no clock, no faults
  };
  Router(HostServices& services, Pending& pending, wire::ProcessSlot self, Transport& transport,
         Regions& regions, HotMemory& hot, Mover& mover, const Options& options);
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // `poster`: the endpoint, when it is the thread of its port that calls.
  Begun route(const Request& request, std::uint32_t hazard_slot, Endpoint* poster = nullptr);
  // Applies the request to the target's state when that can be done from here. What is granted is kept in
  // `keep_in`, if there is one: the endpoint of the thread that posts. ok and errors: done. not_done: it has
  // to go another way.
  Errc try_direct(const Request& request, std::uint32_t hazard_slot, Endpoint* keep_in = nullptr);
  // Raises the target's event of a request whose bytes are there.
  void raise_at_target(const Request& request);
  // What tells of an operation that the posting thread has carried out itself.
  Teller teller_of(const Request& request) const;

  BteQueue& bte() { return bte_; }
  // Whether a block transfer may be done, and its event raised in `queue`, at once.
  bool block_transfer_is_short(std::uint64_t length, const CompletionQueue* queue) const {
    return length < options_.bte_crossover && (bte_.untouched() || bte_.nothing_precedes(queue));
  }
  Lock<LockRank::shared_hazard>& shared_hazard() { return shared_hazard_mu_; }

 private:
  bool must_follow(const Request& request);
  bool follows_own(const Endpoint& endpoint, const Request& request);
  bool must_go_to_engine(const Request& request) const;
  bool attach_pays(const Request& request, const Endpoint* poster) const;
  Errc try_here(const Request& request, std::uint32_t hazard_slot, Endpoint* poster, bool may_attach);
  Errc execute_direct(const Request& request, std::uint64_t word, std::uint32_t hazard_slot,
                      Endpoint* keep_in);
  Errc send_direct(const Request& request, std::uint32_t hazard_slot);  // channel.cpp
  Errc try_attach(const Request& request, std::uint32_t hazard_slot);
  void keep_grant(Endpoint& endpoint, const Request& request, std::uint64_t word, AddressMap& memory) const;
  Errc transfer_chunk(const Request& chunk, const Request& whole);

  // BteQueue::Carrier
  Errc carry(const Request& chunk, const Request& whole, bool first) override;
  Errc send(const Request& whole) override { return transport_.send(whole); }
  Regions::Piece piece(const MemKey& key, std::uint64_t offset) override {
    return regions_.piece(key, offset);
  }
  std::vector<std::uint32_t> open_requests() override { return transport_.open_requests(); }
  void await(std::vector<std::uint32_t>& names) override;
  bool is_quiet() const override;

  HostServices& services_;
  Pending& pending_;
  const wire::ProcessSlot self_;
  Transport& transport_;
  Regions& regions_;
  HotMemory& hot_;
  Mover& mover_;
  const Options options_;
  IdentityMap identity_;
  Lock<LockRank::shared_hazard> shared_hazard_mu_;
  BteQueue bte_{*this};  // its thread uses all of the above
};

}  // namespace orrery::nic
