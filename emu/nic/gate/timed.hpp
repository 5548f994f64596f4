// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/units.hpp"
#include "emu/nic/state/lock_rank.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace orrery::nic {

// What a NIC has besides under a clock, where operations wait for their time. Where many PEs share a core all
// that one touches is cold whenever it gets its turn: so an operation is small, the place of one that has
// ended is used again, and the places are together in few pages.
//
// Threads: take() and give_back() any; the rest as said.
class TimedOps {
 public:
  TimedOps() = default;
  ~TimedOps();
  TimedOps(const TimedOps&) = delete;
  TimedOps& operator=(const TimedOps&) = delete;

  // Room for an operation under way; `bytes` is the same in every call.
  void* take(std::size_t bytes);
  void give_back(void* block);

  Picos blocks_end, fence_end;  // of block transfers; the posting thread's

 private:
  Lock<LockRank::timed> mu_;
  // Guarded by mu_.
  std::vector<std::byte*> blocks_;  // of several places each
  std::vector<void*> free_;
};

}  // namespace orrery::nic
