// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/events/trigger_table.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

// Triggered operations: what waits until the successes and failures of a counter of this process reach a
// threshold together. They stand in the owner's segment (events/trigger_table.hpp). The process that reaches
// the threshold carries them out itself where it can: additions to counters, and puts between memory that is
// mapped there. The rest is the owner's: the thread that polls, or the service thread, which is rung. The
// counts are the record of what is due, so the death of an adder leaves nothing to repair: the next adder
// looks at them, and the owner's service thread when it learns of the death. Triggered operations end with
// their owner.
namespace orrery::nic {

// The owner's side.
// Threads: any. Invariants: (1) an operation is carried out at most once, and once unless it is cancelled
// before; of a put the bytes may be stored twice, when a process dies while it stores them, and the end is
// counted once; (2) operations of one counter are carried out in the order of their thresholds, those of one
// threshold in the order of their posts, one at a time; (3) no lock is held while an action runs.
// Usage: triggers.post(counter, 3, [&] { nic.post(endpoint, request); });  triggers.run(look);
class TriggerUnit {
 public:
  // Posts an operation, or adds to a counter. Runs on whichever thread of this process finds it due, the
  // service thread included: what it posts through belongs to it alone, or has a lock of its own.
  using Action = std::function<void()>;
  // The same, and whether it was done. Else it is tried again.
  using Attempt = std::function<bool()>;
  struct Hooks {
    std::function<void()> first_posted;  // progress has to look here from now on
    // Stores the bytes of a put, as trigger::Carrier::put. Null: never.
    std::function<Errc(const TriggerRecord&)> put;
  };

  TriggerUnit(NicView view, Hooks hooks) : view_(view), hooks_(std::move(hooks)) { trigger::set_up(view); }
  TriggerUnit(const TriggerUnit&) = delete;
  TriggerUnit& operator=(const TriggerUnit&) = delete;

  // Runs `action` when the counter reaches `threshold`: before it returns if it has by now, and no other
  // thread is carrying out operations. Errors: invalid_handle, no_resource (kMaxTriggers wait), timeout (a
  // process that carries one out has been stopped for 100 ms).
  Status post(CounterName trigger, std::uint64_t threshold, Action action);
  // Operations that add to a counter of this process, or set it.
  Status post_add(CounterName trigger, std::uint64_t threshold, CounterName counter, CounterValue by);
  Status post_set(CounterName trigger, std::uint64_t threshold, CounterName counter, CounterValue to);
  // A put; `record` says of what and where to, and what is counted at its end. `attempt` posts it instead
  // where no process can store its bytes directly. Errors: as post().
  Status post_put(CounterName trigger, std::uint64_t threshold, const TriggerRecord& record, Attempt attempt);
  // Drops what waits for the counter; returns how many. One that is carried out right now is waited for,
  // unless it is an action, which runs to its end. Also to be called before the counter is destroyed.
  std::uint32_t cancel(CounterName trigger);

  enum class Look : std::uint8_t {
    at_signals,  // only if an adder said that it reached a trigger
    at_counts,   // at every counter that something waits for: adders may have died
  };
  // Carries out what is due. Returns whether anything was. Not from within an action.
  bool run(Look look) { return run(look, trigger::kAllCounters); }
  bool run(Look look, std::uint32_t counter);
  std::uint32_t pending() const;

 private:
  struct Owner;
  Status insert(CounterName trigger, std::uint64_t threshold, const TriggerRecord& record, Attempt attempt);
  Attempt next(std::uint32_t* counter, bool* any, bool* busy);

  const NicView view_;
  const Hooks hooks_;
  std::atomic<std::uint64_t> seen_{0};  // of CounterTable::fired
  std::atomic<std::uint32_t> owed_{0};  // attempts that are to be made again
  Lock<LockRank::trigger_actions> mu_;  // innermost; beside the table's lock
  std::vector<Attempt> attempts_;       // by record; guarded by mu_
  std::deque<Attempt> again_later_;     // guarded by mu_
  bool posted_ = false;                 // guarded by mu_: at least once
  bool running_ = false;                // guarded by mu_: a thread carries out operations
  bool again_ = false;                  // guarded by mu_: it is to look once more
};

}  // namespace orrery::nic
