// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace orrery::clock {

// Threads of a PE that wait for one another in pthread calls: on a condition, a semaphore, at a barrier, for
// a thread's end. One that was woken is *awake* until it waits again, in here or in the clock, also before it
// has had a processor: what it does comes at the virtual time at which it was woken. Waits are counted by the
// address that is waited at; a wake where no thread waits counts for nothing.
//
// One that is created beside the clock is awake from then on. It is *new* until it comes into the clock, for
// it may have nothing to do with that: where only new ones are awake they are not waited for so long. One
// that was given up counts no more.
//
// Threads: any.
class ThreadWaits {
 public:
  // The calling thread waits at `on` from now on.
  void begin(const void* on);
  // It goes on, awake.
  void end(const void* on);
  // One of the threads that wait at `on` is woken, or all of them. Before it is.
  void wake(const void* on, bool all);
  // The calling thread waits in something else, has ended, or is waited for in another way.
  void sleeps_again();
  // It has looked for something in vain: so many times, and it waits.
  void looks_in_vain();
  // A thread is being created. Returns what it is to begin with: ThreadStart::awake.
  std::uint64_t create();
  // It was not, for want of room.
  void create_failed(std::uint64_t awake);
  // The calling thread comes into the clock.
  void comes_in();
  // Whether the calling thread, which posts, was to do so earlier: it was new, and given up while it was
  // busy. Once.
  bool is_late();
  // Whether the calling thread is a new one that was not given up.
  bool is_new();
  // Threads that are awake. A snapshot.
  std::uint32_t awake() const { return static_cast<std::uint32_t>(awake_.load(std::memory_order_acquire)); }
  // How often the first of some became awake.
  std::uint32_t spells() const { return spells_.load(std::memory_order_relaxed); }
  // Whether none of those is other than new. A snapshot.
  bool only_new() const { return not_new_.load(std::memory_order_relaxed) == 0; }
  // Those that are awake now are not waited for any more: they sleep in something else, or (`busy`) they have
  // had time enough.
  void give_up(bool busy);

 private:
  // All, and those of them that are not new.
  struct Place {
    const void* on;
    std::uint32_t waiting, woken;
    std::uint32_t waiting_not_new, woken_not_new;
  };
  Place* find(const void* on);
  void count(int more, int more_not_new);
  std::uint64_t round() const;

  std::mutex mu_;
  std::vector<Place> places_;              // at which a thread waits; guarded by mu_
  std::vector<std::uint64_t> busy_;        // ThreadState::awake of those given up so; guarded by mu_
  std::atomic<bool> any_busy_{false};      // of them
  std::atomic<std::uint64_t> awake_{0};    // the round << 32 | how many; written with mu_
  std::atomic<std::uint32_t> not_new_{0};  // of them; written with mu_
  std::atomic<std::uint32_t> spells_{0};   // written with mu_
};

}  // namespace orrery::clock
