// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/agenda.hpp"
#include "emu/clock/clock.hpp"
#include "emu/clock/shared_clock.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace orrery::clock {

// The processor's counter as picoseconds since the job's clock was made, the same in every process of the
// host. Calibrated once against CLOCK_MONOTONIC. Immutable; any thread.
class WallTime {
 public:
  explicit WallTime(std::int64_t epoch_ns);
  std::int64_t now() const;  // ps

 private:
  std::int64_t epoch_ns_;
  std::uint64_t ticks_ = 0;  // at start_
  std::int64_t start_ = 0;   // ps
  double ps_per_tick_ = 0;   // 0: no such counter here
};

// How late things were done, against when they should have been.
class Lateness {
 public:
  void add(std::int64_t ps) { samples_.size() < kMost ? samples_.push_back(ps) : note_worst(ps); }
  std::string report();

 private:
  static constexpr std::size_t kMost = 1 << 18;
  void note_worst(std::int64_t ps) { worst_ = ps > worst_ ? ps : worst_; }
  std::vector<std::int64_t> samples_;
  std::int64_t worst_ = 0;
};

// How long before its time a task has to be begun, so that it is as often done too early as too late: moves
// by little with every task that was begun when it should be. Guarded by its user.
class Lead {
 public:
  std::int64_t ps() const { return ps_.load(std::memory_order_relaxed); }
  void learn(std::int64_t late_ps) {
    ps_.store(std::clamp<std::int64_t>(ps() + (late_ps > 0 ? kStep : -kStep), 0, kMost),
              std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t kStep = 1'000, kMost = 1'000'000;  // ps: 1 ns, 1 us
  std::atomic<std::int64_t> ps_{0};
};

// Wall time with the machine's delays: a post holds its processor for as long as the machine's would be busy.
// Its effect is done when its time has come, by a thread that polls then, or by a thread of this clock's own.
// An effect takes a while to do, and is not there yet meanwhile: so it is begun earlier, by as much as it
// took lately (Lead). A thread that polls shortly before that moment waits for it: its next poll would be too
// late. The clock's thread spins ahead of each point in time where the host has a core for it besides the
// PEs'. Else it sleeps, and does what is left undone 50 us after its time; up to a millisecond where a
// program that polls has done everything so far.
//
// Threads: any. Invariant: tasks run one at a time, in the order of their times.
class PacedClock final : public Clock {
 public:
  PacedClock(std::unique_ptr<SharedClock> shared, bool may_spin, std::uint32_t process_slot);
  ~PacedClock() override;
  // False: there was no room for its thread, and it is good for nothing.
  bool runs() const { return thread_.joinable(); }

  Kind kind() const override { return Kind::paced; }
  Picos now() override { return Picos{time_.now()}; }
  void enter() override;
  Times start(const Operation& operation) override;
  void schedule(Picos at, Task* task, Concerns concerns) override;
  void schedule_there(Picos at, Task* task, std::uint32_t /*process_slot*/) override {
    schedule(at, task, Concerns::others);
  }
  void settle(std::uint32_t /*process_slot*/) override {}
  void leave() override;
  Picos collective_time(model::Collective collective, std::uint64_t bytes) override;
  void idle(const void* source) override;
  void finish() override;

  // No thread waits in this clock, and mappings stay as they are.
  void touch(std::uint32_t) override {}
  void touch_all() override {}
  bool wait(std::optional<Picos>) override { return true; }
  void barrier_arrive() override {}
  void barrier_wait(Picos) override {}
  void watch(std::uint64_t, std::uint64_t) override {}
  void unwatch(std::uint64_t, std::uint64_t) override {}
  void before_inspection() override {}
  void set_look(void (*)(void*), void*) override {}

 private:
  void run_due(bool must, std::int64_t patience);
  void set_first();
  std::int64_t way() const;
  void run();

  const std::unique_ptr<SharedClock> shared_;
  const bool may_spin_;
  const WallTime time_;
  std::mutex posting_mu_;         // from enter() to leave()
  std::int64_t busy_until_ = 0;   // guarded by posting_mu_
  std::uint64_t operations_ = 0;  // guarded by posting_mu_
  std::mutex running_mu_;         // held while tasks run
  Lateness lateness_;             // guarded by running_mu_
  std::atomic<std::uint32_t> visible_{0};
  std::array<Lead, 2> leads_;  // by Concerns; learn under running_mu_
  std::mutex agenda_mu_;
  Agenda agenda_;  // guarded by agenda_mu_
  // When the first of the agenda has to be begun; kNever when it is empty. Written under agenda_mu_.
  std::atomic<std::int64_t> first_at_;
  std::atomic<std::int64_t> looked_at_{0};  // time of the last poll
  std::atomic<std::int64_t> way_{0};        // ps: from one look in vain to the next, at its shortest
  FutexWord changed_{0};
  std::atomic<bool> sleeping_{false};
  std::atomic<std::int64_t> looks_at_{0};  // when it is awake again by itself; kNever: it has to be woken
  std::atomic<std::int64_t> slack_;        // how late a task may be before its thread does it
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace orrery::clock
