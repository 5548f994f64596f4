// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/triggered.hpp"

namespace orrery::nic {

// Says in the counter's line at which sum the next action is due. REQUIRES: mu_ is held.
void TriggerUnit::await(CounterName trigger, const Waiting& waiting) {
  CounterState* const state = counter::find(view_, trigger);
  if (state == nullptr) return;
  const std::uint64_t at = waiting.actions.empty() ? kNever : waiting.actions.begin()->first.first;
  // Sequentially consistent: an adder either sees it, or has added before the look at the counts that
  // follows.
  if (state->trigger_at.load(std::memory_order_relaxed) != at)
    state->trigger_at.exchange(at, std::memory_order_seq_cst);
}

Status TriggerUnit::post(CounterName trigger, std::uint64_t threshold, Action action) {
  if (counter::find(view_, trigger) == nullptr) return Errc::invalid_handle;
  bool first = false;
  {
    const std::lock_guard lock(mu_);
    if (pending_.load(std::memory_order_relaxed) == kMaxPending) return Errc::no_resource;
    first = order_ == 0;
    Waiting& waiting = waiting_[trigger];
    waiting.actions.emplace(std::pair{threshold, ++order_}, std::move(action));
    pending_.fetch_add(1, std::memory_order_relaxed);
    await(trigger, waiting);
  }
  if (first && hooks_.first_posted) hooks_.first_posted();
  run(Look::at_counts);
  return {};
}

Status TriggerUnit::post_add(CounterName trigger, std::uint64_t threshold, CounterName counter,
                             CounterValue by) {
  if (counter::find(view_, counter) == nullptr) return Errc::invalid_handle;
  // What it triggers in turn is looked for by run(), which goes on until nothing is due.
  return post(trigger, threshold, [this, counter, by] { (void)counter::add(view_, counter, by); });
}

Status TriggerUnit::post_set(CounterName trigger, std::uint64_t threshold, CounterName counter,
                             CounterValue to) {
  if (counter::find(view_, counter) == nullptr) return Errc::invalid_handle;
  return post(trigger, threshold, [this, counter, to] { (void)counter::set(view_, counter, to); });
}

std::uint32_t TriggerUnit::cancel(CounterName trigger) {
  Waiting dropped;
  {
    const std::lock_guard lock(mu_);
    const auto found = waiting_.find(trigger);
    if (found == waiting_.end()) return 0;
    dropped = std::move(found->second);
    waiting_.erase(found);
    await(trigger, {});
  }
  const auto count = static_cast<std::uint32_t>(dropped.actions.size());
  pending_.fetch_sub(count, std::memory_order_relaxed);
  return count;
}

// The next action that is due; none: empty. REQUIRES: mu_ is held.
TriggerUnit::Action TriggerUnit::take_due() {
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    auto& [name, waiting] = *at;
    const CounterState* const state = counter::find(view_, name);
    if (state == nullptr) continue;
    const auto next = waiting.actions.begin();
    if (counter::read(*state).sum() < next->first.first) continue;
    Action action = std::move(next->second);
    waiting.actions.erase(next);
    pending_.fetch_sub(1, std::memory_order_relaxed);
    await(name, waiting);
    if (waiting.actions.empty()) waiting_.erase(at);
    return action;
  }
  return {};
}

bool TriggerUnit::run(Look look) {
  if (pending_.load(std::memory_order_relaxed) == 0) return false;
  // Acquire: pairs with the adder's release; its addition is visible to the look at the counts.
  const std::uint64_t fired = counters_of(view_).fired.load(std::memory_order_acquire);
  if (look == Look::at_signals && fired == seen_.load(std::memory_order_relaxed)) return false;
  seen_.store(fired, std::memory_order_relaxed);
  std::unique_lock lock(mu_);
  if (running_) {
    again_ = true;
    return false;
  }
  running_ = true;
  bool any = false;
  do {
    again_ = false;
    while (Action action = take_due()) {
      any = true;
      lock.unlock();
      action();
      lock.lock();
    }
  } while (again_);
  running_ = false;
  return any;
}

}  // namespace orrery::nic
