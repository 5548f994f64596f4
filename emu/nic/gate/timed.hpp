// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/units.hpp"
#include "emu/clock/clock.hpp"
#include "emu/nic/initiator/router.hpp"
#include "emu/nic/memory/regions.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/state/mover.hpp"
#include "emu/nic/transport/request.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace orrery::nic {

struct Endpoint;

// What a NIC has besides under a clock, where operations wait for their time. Where many PEs share a core all
// that one touches is cold whenever it gets its turn: so an operation is small, the place of one that has
// ended is used again, and the places are together in few pages.
//
// Threads: post(): the thread that uses the endpoint; take() and give_back() any. Lock: `timed`.
class TimedOps {
 public:
  TimedOps(clock::Clock& clock, wire::ProcessSlot self, Router& router, Regions& regions, Mover& mover)
      : clock_(clock), self_(self), router_(router), regions_(regions), mover_(mover) {}
  ~TimedOps();
  TimedOps(const TimedOps&) = delete;
  TimedOps& operator=(const TimedOps&) = delete;

  // Prices the operation and lets it begin.
  void post(Endpoint& endpoint, const Request& request);

 private:
  class Operation;

  // Does it now, on any path, and tells no sink: its status is what is returned. Any thread; waits for the
  // peer's service thread where its memory is not mapped here.
  Errc apply_now(Request request);
  static clock::Operation operation_of(const Request& request);
  // Room for an operation under way; `bytes` is the same in every call.
  void* take(std::size_t bytes);
  void give_back(void* block);

  clock::Clock& clock_;
  const wire::ProcessSlot self_;
  Router& router_;
  Regions& regions_;
  Mover& mover_;
  Picos blocks_end_, fence_end_;  // of block transfers; the posting thread's

  Lock<LockRank::timed> mu_;
  // Guarded by mu_.
  std::vector<std::byte*> blocks_;  // of several places each
  std::vector<void*> free_;
};

}  // namespace orrery::nic
