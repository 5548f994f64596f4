// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <atomic>
#include <cstdint>

namespace orrery::nic {

// How often a program's threads looked for something in vain: says whether the NIC is attended. Where PEs
// share cores the one that is waited for may need this one's: a program that only looks, as on a node of its
// own, would keep it for a whole time slice. Any thread; a call may give the core away, and does not block
// else.
//
// A client may hold a lock of its own around its looks, for which another thread of it spins. If that thread
// is who gets the core, it spins in vain until its time slice ends, and if every slice of ours ended with a
// look, it would never have the lock. So the core is kept for a while after it went to a thread of this
// process: then slices end anywhere, also where the lock is free.
class PollCount {
 public:
  // Where PEs share cores: so many looks in vain, less than a microsecond, before the core is given to
  // others.
  static constexpr std::uint64_t kCrowdedPatience = 64;

  explicit PollCount(bool crowded) : patience_(crowded ? kCrowdedPatience - 1 : UINT64_MAX) {}
  // Not a read-modify-write: a lost count only makes the service thread look once more.
  void add() {
    const std::uint64_t polls = polls_.load(std::memory_order_relaxed) + 1;
    polls_.store(polls, std::memory_order_relaxed);
    if ((polls & patience_) == 0) [[unlikely]]
      give_way();
  }
  std::uint64_t value() const { return polls_.load(std::memory_order_relaxed); }

 private:
  void give_way();

  const std::uint64_t patience_;
  std::atomic<std::uint64_t> polls_{0};
  // Of monotonic_ns(). Threads that overwrite each other's only keep the core longer or shorter.
  std::atomic<std::int64_t> keeps_until_{0};
  std::atomic<std::int64_t> kept_for_{0};
};

}  // namespace orrery::nic
