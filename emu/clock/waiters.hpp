// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace orrery::clock {

// The threads of a PE that wait in its clock beside the one that makes time pass. When something has happened
// to the PE, or one's time has come, that one lets them look, one after another in the order of their ids,
// while virtual time stands still: each until it waits again. So what they do comes at the same virtual time
// in every run.
//
// Threads: any; let_next() by the one that makes time pass.
// Usage, there: for (const auto round = waiters.begin_round(); waiters.let_next(round, now, true);)
//                 while (!waiters.is_back()) waiters.await_back(ns);
class Waiters {
 public:
  static constexpr std::int64_t kNoDeadline = INT64_MAX;

  // Waits until it is let look (true), or until `goes_on()` says that it does not wait any more (false),
  // which is asked every `ns` of real time. `deadline`: the virtual time, ps, at which it wants to look in
  // any case; kNoDeadline: none. `tid`: the calling thread's. News since its last wait end this one at once.
  // `waits()` is called when it can be let look.
  template <typename Waits, typename GoesOn>
  bool wait(std::int64_t deadline, std::int32_t tid, std::int64_t ns, Waits waits, GoesOn goes_on) {
    Waiter mine{.let = {}, .deadline = deadline, .tid = tid, .round = 0};
    if (!enter(mine)) return true;
    waits();
    do {
      (void)futex_wait_for(mine.let, 0, ns);
    } while (mine.let.load(std::memory_order_acquire) == 0 && goes_on());
    return leave(mine);
  }
  // The calling thread has looked, and has nothing to do but to look again.
  void come_back();
  // All look again, at once.
  void rouse();

  // Something has happened, whether a thread waits for it or not.
  void note_news() { news_.fetch_add(1, std::memory_order_release); }
  // Whether any thread waits. A snapshot.
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  // The earliest deadline of all; kNoDeadline: there is none.
  std::int64_t first_deadline();

  // A round of looks: each thread that waits when it begins looks once.
  std::uint64_t begin_round() { return ++rounds_; }
  // Lets the next thread look that has not in that round: any (`all`), or one whose deadline is not behind
  // `now`. False: there is none.
  bool let_next(std::uint64_t round, std::int64_t now, bool all);
  // Whether the thread that was let look is back.
  bool is_back() const { return away_.load(std::memory_order_acquire) == 0; }
  // Waits for that, `ns` of real time at most.
  void await_back(std::int64_t ns) {
    const std::uint32_t look = away_.load(std::memory_order_acquire);
    if (look != 0) (void)futex_wait_for(away_, look, ns);
  }
  // It is not waited for any more.
  void give_up() { away_.store(0, std::memory_order_relaxed); }

 private:
  struct Waiter {
    FutexWord let;
    std::int64_t deadline;
    std::int32_t tid;
    std::uint64_t round;  // the last one that had begun when it came
  };

  bool enter(Waiter& mine);
  bool leave(Waiter& mine);

  std::mutex mu_;
  std::vector<Waiter*> waiting_;          // guarded by mu_
  std::atomic<std::uint32_t> count_{0};   // of them
  std::atomic<std::uint64_t> rounds_{0};  // that have begun
  std::atomic<std::uint64_t> news_{1};    // how often something has happened, and 1
  FutexWord away_{0};                     // the look whose thread is not back; 0: all are
  std::uint32_t looks_ = 0;               // that were let; guarded by mu_
};

}  // namespace orrery::clock
