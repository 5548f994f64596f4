// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/triggered.hpp"

namespace orrery::nic {

using trigger::Holder;

struct TriggerUnit::Owner final : trigger::Carrier {
  const Hooks& hooks;
  explicit Owner(const Hooks& h) : hooks(h) {}
  Errc put(const TriggerRecord& record) override { return hooks.put ? hooks.put(record) : Errc::not_done; }
  bool is_owner() const override { return true; }
};

std::uint32_t TriggerUnit::pending() const {
  return static_cast<std::uint32_t>(triggers_of(view_).pending_and_free.load(std::memory_order_relaxed) >>
                                    32);
}

Status TriggerUnit::insert(CounterName trigger, std::uint64_t threshold, const TriggerRecord& record,
                           Attempt attempt) {
  TriggerTable& table = triggers_of(view_);
  bool first_ever = false;
  {
    const Holder holder(view_, Holder::Wait::a_while);
    if (!holder) return Errc::timeout;
    CounterState* const state = counter::find(view_, trigger);
    if (state == nullptr) return Errc::invalid_handle;
    const std::uint64_t word = table.pending_and_free.load(std::memory_order_relaxed);
    std::uint32_t index = static_cast<std::uint32_t>(word);
    std::uint64_t free = 0;
    // Peers write to the table too: what it says is looked at before it is followed.
    if (index > kMaxTriggers || table.fresh.load(std::memory_order_relaxed) > kMaxTriggers)
      return Errc::corrupt;
    if (index != 0) {
      free = table.records[--index].next;
    } else {
      index = table.fresh.load(std::memory_order_relaxed);
      if (index == kMaxTriggers) return Errc::no_resource;
      table.fresh.store(index + 1, std::memory_order_relaxed);
    }
    table.pending_and_free.store(((word >> 32) + 1) << 32 | free, std::memory_order_relaxed);
    TriggerRecord& made = table.records[index];
    made.threshold = threshold;
    made.kind = record.kind;
    made.trigger = trigger;
    made.counter = record.counter;
    made.value = record.value;
    made.source = record.source;
    made.target = record.target;
    made.length = record.length;
    made.source_key = record.source_key;
    made.target_key = record.target_key;
    made.target_generation = record.target_generation;
    made.domain = record.domain;
    made.phase.store(TriggerPhase::waits, std::memory_order_relaxed);
    // Behind those of the same threshold.
    std::uint32_t before = 0;
    const std::uint32_t last = state->last.load(std::memory_order_relaxed);
    if (last > kMaxTriggers) return Errc::corrupt;
    if (last != 0 && table.records[last - 1].threshold <= threshold) {
      before = last;
    } else {
      std::uint32_t steps = 0;
      for (std::uint32_t i = state->first.load(std::memory_order_relaxed);
           i != 0 && i <= kMaxTriggers && ++steps <= kMaxTriggers &&
           table.records[i - 1].threshold <= threshold;
           i = table.records[i - 1].next)
        before = i;
    }
    made.next = before == 0 ? state->first.load(std::memory_order_relaxed) : table.records[before - 1].next;
    if (before == 0)
      state->first.store(index + 1, std::memory_order_relaxed);
    else
      table.records[before - 1].next = index + 1;
    if (made.next == 0) state->last.store(index + 1, std::memory_order_relaxed);
    if (table.counters_end.load(std::memory_order_relaxed) <= trigger.index)
      table.counters_end.store(trigger.index + 1, std::memory_order_relaxed);
    {
      const std::lock_guard lock(mu_);
      if (attempts_.size() <= index) attempts_.resize(index + 1);
      attempts_[index] = std::move(attempt);
      first_ever = !posted_;
      posted_ = true;
    }
    trigger::announce_next(view_, *state);
  }
  if (first_ever && hooks_.first_posted) hooks_.first_posted();
  run(Look::at_counts, trigger.index);
  return {};
}

Status TriggerUnit::post(CounterName trigger, std::uint64_t threshold, Action action) {
  return insert(trigger, threshold, TriggerRecord{}, [action = std::move(action)] {
    action();
    return true;
  });
}

Status TriggerUnit::post_add(CounterName trigger, std::uint64_t threshold, CounterName counter,
                             CounterValue by) {
  if (counter::find(view_, counter) == nullptr) return Errc::invalid_handle;
  TriggerRecord record{};
  record.kind = TriggerKind::add;
  record.counter = counter;
  record.value = by;
  return insert(trigger, threshold, record, {});
}

Status TriggerUnit::post_set(CounterName trigger, std::uint64_t threshold, CounterName counter,
                             CounterValue to) {
  if (counter::find(view_, counter) == nullptr) return Errc::invalid_handle;
  TriggerRecord record{};
  record.kind = TriggerKind::set;
  record.counter = counter;
  record.value = to;
  return insert(trigger, threshold, record, {});
}

Status TriggerUnit::post_put(CounterName trigger, std::uint64_t threshold, const TriggerRecord& record,
                             Attempt attempt) {
  return insert(trigger, threshold, record, std::move(attempt));
}

std::uint32_t TriggerUnit::cancel(CounterName trigger) {
  if (!trigger.valid()) return 0;
  const Holder holder(view_, Holder::Wait::until_free);
  if (!holder) return 0;
  const CounterState& state = counters_of(view_).counters[trigger.index];
  std::uint32_t count = 0;
  while (const std::uint32_t first = state.first.load(std::memory_order_relaxed)) {
    if (first > attempts_.size() || count == kMaxTriggers ||
        triggers_of(view_).records[first - 1].trigger != trigger)
      break;
    trigger::take_off(view_, first - 1);
    const std::lock_guard lock(mu_);
    attempts_[first - 1] = {};
    ++count;
  }
  return count;
}

// Carries out what is due, and gives the next that this process has to do itself. `busy`: another has the
// lock, and looks again.
TriggerUnit::Attempt TriggerUnit::next(std::uint32_t* counter, bool* any, bool* busy) {
  Owner owner(hooks_);
  TriggerTable& table = triggers_of(view_);
  std::atomic<std::uint64_t>& fired = counters_of(view_).fired;
  for (int tries = 0; tries < 2; ++tries) {
    const Holder holder(view_, Holder::Wait::no);
    if (!holder) {
      // As in trigger::fire().
      fired.fetch_add(1, std::memory_order_seq_cst);
      continue;
    }
    const trigger::Looked looked = trigger::look(view_, owner, *counter);
    *counter = trigger::kAllCounters;
    *any = *any || looked.any;
    if (looked.own == 0) return {};
    // Others leave what is due until it is done.
    table.owner_acts.store(1, std::memory_order_relaxed);
    trigger::take_off(view_, looked.own - 1);
    *any = true;
    const std::lock_guard lock(mu_);
    if (looked.own > attempts_.size()) return [] { return true; };
    Attempt attempt = std::move(attempts_[looked.own - 1]);
    attempts_[looked.own - 1] = {};
    if (!attempt) return [] { return true; };
    return attempt;
  }
  *busy = true;
  return {};
}

bool TriggerUnit::run(Look look, std::uint32_t counter) {
  if (pending() == 0 && owed_.load(std::memory_order_relaxed) == 0) return false;
  // Acquire: pairs with the adder's release; its addition is visible to the look at the counts.
  const std::uint64_t fired = counters_of(view_).fired.load(std::memory_order_acquire);
  if (look == Look::at_signals && fired == seen_.load(std::memory_order_relaxed) &&
      owed_.load(std::memory_order_relaxed) == 0)
    return false;
  seen_.store(fired, std::memory_order_relaxed);
  std::unique_lock lock(mu_);
  if (running_) {
    again_ = true;
    return false;
  }
  running_ = true;
  bool any = false;
  const auto attempt_one = [&](Attempt attempt) {
    const bool done = attempt();
    triggers_of(view_).owner_acts.store(0, std::memory_order_release);
    if (done) return true;
    const std::lock_guard relock(mu_);
    again_later_.push_back(std::move(attempt));
    owed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  };
  for (std::size_t left = again_later_.size(); left != 0; --left) {
    Attempt attempt = std::move(again_later_.front());
    again_later_.pop_front();
    owed_.fetch_sub(1, std::memory_order_relaxed);
    lock.unlock();
    any = attempt_one(std::move(attempt)) || any;
    lock.lock();
  }
  do {
    again_ = false;
    lock.unlock();
    bool busy = false;
    while (Attempt attempt = next(&counter, &any, &busy)) (void)attempt_one(std::move(attempt));
    lock.lock();
  } while (again_);
  running_ = false;
  return any;
}

}  // namespace orrery::nic
