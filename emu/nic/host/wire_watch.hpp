// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/lock_rank.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace orrery::nic {

// Which thread serves the wire between hosts: the service thread, asleep on the wire's descriptor; the
// service thread by its tick; or a thread of the program that has posted and is about to poll. While the
// descriptor is watched, a peer that answers pays for waking the service thread. So a program that polls
// between its posts takes the watch off before a post (an answer may come before the post returns), and
// leaves a timer behind for the case that it does not poll this time. The timer is here because it has to be
// set before the watch goes.
//
// Threads: any, but start(), stop() and timer_fired() are the service thread's.
// Invariants: (1) the descriptor is watched in `watched` alone; (2) in `by_program` the timer is set for at
// most kAwayNs after the change, so the service thread comes back whatever the program does.
// Usage: watch.before_post(polls);  ...  watch.timer_fired(polls);  watch.start();
class WireWatch {
 public:
  // The system calls; called with the lock held. False: refused, and nothing has changed.
  class System {
   public:
    virtual bool watch(bool on) = 0;                 // the descriptor, for edges
    virtual bool set_timer(std::int64_t at_ns) = 0;  // of now_ns()
    virtual std::int64_t now_ns() = 0;

   protected:
    ~System() = default;
  };
  // How long the watch is off when the program does not poll. More than the kernel's own tick (4 ms at 250
  // Hz): to set a timer for sooner costs virtual machines 25 us.
  static constexpr std::int64_t kAwayNs = 5'000'000;
  // If a post is not followed by a poll within kAwayNs, or the program sleeps before, the next kDistrust
  // posts leave the descriptor watched.
  static constexpr std::uint32_t kDistrust = 64;

  explicit WireWatch(System& system) : system_(system) {}
  WireWatch(const WireWatch&) = delete;
  WireWatch& operator=(const WireWatch&) = delete;

  // From now on what comes wakes the service thread. What came before may not: look once more after it.
  // False: the system refused.
  bool start();
  // The service thread looks by its tick: nothing wakes it.
  void stop();
  // A thread of the program is about to post; `polls`: how often the program has polled so far. Two system
  // calls when it takes the watch off, else some loads.
  void before_post(std::uint64_t polls) {
    const std::uint64_t before = polls_at_post_.load(std::memory_order_relaxed);
    if (before != polls) polls_at_post_.store(polls, std::memory_order_relaxed);
    if (before != polls && state_.load(std::memory_order_relaxed) == State::watched) [[unlikely]]
      take_off(polls);
  }
  // A thread of the program is about to sleep. True: it took the watch off, and the service thread is to be
  // told to start(). A load when it did not.
  bool hand_back();

  // Sets the timer unless it is set for earlier. False: the system refused.
  bool set_timer(std::int64_t at_ns);
  // It fired, and is to be followed by start(), or by stop() and a tick. `polls` as above.
  void timer_fired(std::uint64_t polls);

 private:
  enum class State : std::uint8_t { by_tick, watched, by_program };

  void take_off(std::uint64_t polls);
  bool set_timer_locked(std::int64_t at_ns);

  System& system_;
  std::atomic<std::uint64_t> polls_at_post_{0};  // of the last one; a lost store only guesses worse
  Lock<LockRank::wire_watch> mu_;
  std::atomic<State> state_{State::by_tick};  // written under mu_
  // Guarded by mu_.
  std::int64_t timer_at_ = 0;       // what the timer is set for, 0: nothing
  std::uint64_t polls_at_off_ = 0;  // when the watch was taken off
  std::int64_t trusted_until_ = 0;  // then the program ought to have polled
  std::uint32_t distrust_ = 0;      // so many posts more leave the watch on
};

}  // namespace orrery::nic
