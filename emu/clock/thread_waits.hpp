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
  // Threads that are awake. A snapshot.
  std::uint32_t awake() const { return static_cast<std::uint32_t>(awake_.load(std::memory_order_acquire)); }
  // Those that are awake now are not waited for any more.
  void give_up();

 private:
  struct Place {
    const void* on;
    std::uint32_t waiting, woken;
  };
  Place* find(const void* on);
  void count(int more);

  std::mutex mu_;
  std::vector<Place> places_;            // at which a thread waits; guarded by mu_
  std::atomic<std::uint64_t> awake_{0};  // the round << 32 | how many; written with mu_
};

}  // namespace orrery::clock
