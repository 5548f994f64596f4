// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace orrery::nic {

// How often a program's threads looked for something in vain: says whether the NIC is attended. Where PEs
// share cores the one that is waited for may need this one's: a program that only looks, as on a node of its
// own, would keep it for a whole time slice. Any thread; a call may give the core away, and does not block
// else.
//
// A client may hold a lock of its own around its looks, for which another thread of it spins. If that thread
// gets the core, it spins in vain until its time slice ends, and if every slice of ours ended with a
// look, it would never have the lock. So the core is kept for a while after it went to a thread of this
// process: then slices end anywhere, also where the lock is free.
class PollCount {
 public:
  // So many polls in vain before the polling thread does more: some microseconds, and where PEs share cores,
  // so that another PE may be waiting for this one, half as many.
  static constexpr std::uint64_t kPollsBeforeYield = 128;
  static constexpr std::uint64_t kCrowdedPatience = 64;

  explicit PollCount(bool crowded)
      : patience_((crowded ? kCrowdedPatience : kPollsBeforeYield) - 1), crowded_(crowded) {}
  // Whether it is time to do more than to poll: yield_if_oversubscribed(), and what else polling brings.
  // Not a read-modify-write: a lost count only makes the service thread look once more.
  bool add() {
    const std::uint64_t polls = polls_.load(std::memory_order_relaxed) + 1;
    polls_.store(polls, std::memory_order_relaxed);
    return (polls & patience_) == 0;
  }
  std::uint64_t value() const { return polls_.load(std::memory_order_relaxed); }
  // Where PEs share cores: gives this one to others.
  void yield_if_oversubscribed() {
    if (crowded_) yield_core();
  }

 private:
  void yield_core();

  const std::uint64_t patience_;
  const bool crowded_;
  std::atomic<std::uint64_t> polls_{0};
  // Of monotonic_ns(). Threads that overwrite each other's only keep the core longer or shorter.
  std::atomic<std::int64_t> keeps_until_{0};
  std::atomic<std::int64_t> kept_for_{0};
};

// Measures how long the program has polled without a pause. The service thread only has to take over when the
// polling stops, so its next wake-up is postponed by that same time, within [kPauseNs, kMostNs]. Any thread:
// a race between callers makes a wake-up earlier or later, and loses none.
class PollStreak {
 public:
  // A longer pause ends a phase; the service thread needs as long to notice that no thread polls.
  static constexpr std::int64_t kPauseNs = 400'000;
  // More than the kernel's own tick (4 ms at 250 Hz): to set a timer for sooner costs virtual machines 25 us.
  static constexpr std::int64_t kMostNs = 5'000'000;

  // The program polls at `now_ns`. For how long the service thread is to be put off from now on; 0: leave it.
  std::int64_t postpone(std::int64_t now_ns) {
    if (now_ns - seen_.exchange(now_ns, std::memory_order_relaxed) > kPauseNs) {
      since_.store(now_ns, std::memory_order_relaxed);
      next_.store(now_ns, std::memory_order_relaxed);
    }
    if (now_ns < next_.load(std::memory_order_relaxed) || owed_.load(std::memory_order_relaxed)) return 0;
    const std::int64_t delay = std::clamp(now_ns - since_.load(std::memory_order_relaxed), kPauseNs, kMostNs);
    next_.store(now_ns + delay / 2, std::memory_order_relaxed);
    return delay;
  }

  // The program is about to sleep. Whether the service thread may have been put off.
  bool end() {
    if (seen_.load(std::memory_order_relaxed) == kNever) return false;
    return seen_.exchange(kNever, std::memory_order_relaxed) != kNever;
  }

  // The service thread has something to do, or no longer, that polls do not do for it: it is not put off.
  void set_owed(bool owed) { owed_.store(owed, std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t kNever = INT64_MIN / 2;

  std::atomic<std::int64_t> seen_{kNever};  // when it was last seen to poll
  std::atomic<std::int64_t> since_{0};      // when the phase began
  std::atomic<std::int64_t> next_{0};       // when the service thread is put off again
  std::atomic<bool> owed_{false};
};

}  // namespace orrery::nic
