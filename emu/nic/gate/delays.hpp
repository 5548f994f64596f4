// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/initiator/router.hpp"
#include "emu/nic/state/host_services.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/transport/request.hpp"
#include "emu/nic/transport/transport.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

namespace orrery::nic {

// Operations that are held back: delayed by a fault, behind one that is, or without room on the wire. An
// operation stays in the list until it was carried out, so that what has to stay behind it sees it.
// Threads: any. Lock: `delays`.
class Delays {
 public:
  Delays(HostServices& services, NicView view, Transport& transport, Router& router)
      : services_(services), view_(view), transport_(transport), router_(router) {}
  Delays(const Delays&) = delete;
  Delays& operator=(const Delays&) = delete;

  // Keeps the request for later when it is delayed, or has to stay behind one that is. ok: kept. not_done: it
  // may go now. no_resource: neither.
  Errc hold_back(const Request& request, std::int64_t delay_ns);
  // A message of a mailbox, or a credit, that finds no room on the wire goes when there is some, whatever its
  // program does meanwhile: the mailbox has room for it. Of one mailbox's credits the last one says it all.
  // `request` was reserved. What its peer gets later stays behind it (Router::route, and the fast path).
  Errc hold(const Request& request);
  // Carries out what is due. Returns whether anything is still held back.
  bool run();
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }

 private:
  static constexpr std::size_t kCapacity = 4096;
  struct Delayed {
    Request request;
    std::vector<std::byte> payload;  // what `request` then sends, unless it is a block transfer
    std::int64_t due_ns = 0;
    bool is_held = false;  // found no room on the wire (hold); counted in Peer::in_flight
    bool running = false;  // guarded by mu_
  };
  bool carry_out(Delayed& delayed);
  void ring_if_asleep();

  HostServices& services_;
  const NicView view_;
  Transport& transport_;
  Router& router_;
  Lock<LockRank::delays> mu_;
  std::list<Delayed> list_;  // by due_ns, but that held ones are behind all before them; guarded by mu_
  std::atomic<bool> running_{false};
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace orrery::nic
