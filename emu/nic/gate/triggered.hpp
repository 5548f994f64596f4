// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/events/counter.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

// Triggered operations: actions that wait until the successes and failures of a counter of this process
// reach a threshold together. The counter's line says at which sum the next action is due (trigger_at), so
// that an adder in any process finds out by one load that it has reached it. It then rings the owner, and
// the owner carries the actions out: the thread that polls, or the service thread. The counts themselves are
// the record of what is due, so the death of an adder leaves nothing to repair: the service thread compares
// them again when it learns of the death. Actions end with their owner.
namespace orrery::nic {

// Threads: any. Invariants: (1) an action runs at most once, and runs once unless it is cancelled before;
// (2) actions of one counter run in the order of their thresholds, those of one threshold in the order of
// their posts, one at a time; (3) no lock is held while an action runs.
// Usage: triggers.post(counter, 3, [&] { nic.post(endpoint, request); });  triggers.run(look);
class TriggerUnit {
 public:
  // Posts an operation, or adds to a counter. Runs on whichever thread of this process finds it due, the
  // service thread included: what it posts through belongs to it alone, or has a lock of its own.
  using Action = std::function<void()>;
  struct Hooks {
    std::function<void()> first_posted;  // progress has to look here from now on
  };
  static constexpr std::uint32_t kMaxPending = 1u << 16;

  TriggerUnit(NicView view, Hooks hooks) : view_(view), hooks_(std::move(hooks)) {}
  TriggerUnit(const TriggerUnit&) = delete;
  TriggerUnit& operator=(const TriggerUnit&) = delete;

  // Runs `action` when the counter reaches `threshold`: before it returns if it has by now, and no other
  // thread is running actions. Errors: invalid_handle, no_resource (kMaxPending wait).
  Status post(CounterName trigger, std::uint64_t threshold, Action action);
  // Actions that add to a counter of this process, or set it.
  Status post_add(CounterName trigger, std::uint64_t threshold, CounterName counter, CounterValue by);
  Status post_set(CounterName trigger, std::uint64_t threshold, CounterName counter, CounterValue to);
  // Drops what waits for the counter; returns how many. One that is running right now runs to its end. Also
  // to be called before the counter is destroyed.
  std::uint32_t cancel(CounterName trigger);

  enum class Look : std::uint8_t {
    at_signals,  // only if an adder said that it reached a trigger
    at_counts,   // at every counter that something waits for: adders may have died
  };
  // Runs what is due. Returns whether anything ran. Not from within an action.
  bool run(Look look);
  std::uint32_t pending() const { return pending_.load(std::memory_order_relaxed); }

 private:
  struct Waiting {
    // (threshold, order of posting) -> action.
    std::map<std::pair<std::uint64_t, std::uint64_t>, Action> actions;
  };
  struct ByIndex {
    bool operator()(const CounterName& a, const CounterName& b) const {
      return std::pair{a.index, a.generation} < std::pair{b.index, b.generation};
    }
  };
  Action take_due();
  void await(CounterName trigger, const Waiting& waiting);

  const NicView view_;
  const Hooks hooks_;
  std::atomic<std::uint32_t> pending_{0};
  std::atomic<std::uint64_t> seen_{0};  // of CounterTable::fired
  std::mutex mu_;
  std::map<CounterName, Waiting, ByIndex> waiting_;  // guarded by mu_
  std::uint64_t order_ = 0;                          // guarded by mu_
  bool running_ = false;                             // guarded by mu_: a thread runs actions
  bool again_ = false;                               // guarded by mu_: it is to look once more
};

}  // namespace orrery::nic
