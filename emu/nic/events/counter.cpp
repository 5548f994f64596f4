// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/counter.hpp"

#include "emu/base/double_word.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/events/trigger_table.hpp"

#include <climits>

namespace orrery::nic {

namespace counter {

namespace {

// Of what processes add alone.
CounterValue read_added(const CounterState& state) {
  for (;;) {
    const std::uint64_t success = state.success.load(std::memory_order_acquire);
    const std::uint64_t failure = state.failure.load(std::memory_order_acquire);
    if (state.success.load(std::memory_order_acquire) == success) return {success, failure};
  }
}

// Changed to both at once, or not at all: false. `found` becomes what is there.
bool compare_and_set(CounterState& state, CounterValue* found, CounterValue desired) {
  if (double_word_cas(&state.success, {found->success, found->failure}, {desired.success, desired.failure}))
    return true;
  *found = read_added(state);
  return false;
}

}  // namespace

CounterValue read(const CounterState& state) {
  for (;;) {
    const CounterValue triggered = triggered_part(state);
    const CounterValue added = read_added(state);
    if (triggered_part(state) == triggered)
      return {added.success + triggered.success, added.failure + triggered.failure};
  }
}

void wake(const NicView& nic, CounterState& state) {
  // Sleepers that are not satisfied announce themselves again.
  state.wake_at.exchange(kNever, std::memory_order_seq_cst);
  if (state.sleepers.load(std::memory_order_seq_cst) == 0) return;
  FutexWord& bell = nic.service().bell;
  bell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(bell, INT_MAX);
}

CounterValue add_both(CounterState& state, CounterValue by) {
  CounterValue old = read_added(state);
  while (!compare_and_set(state, &old, {old.success + by.success, old.failure + by.failure})) {
  }
  const CounterValue triggered = triggered_part(state);
  return {old.success + by.success + triggered.success, old.failure + by.failure + triggered.failure};
}

Counted set(const NicView& nic, CounterName name, CounterValue to) {
  CounterState* const state = find(nic, name);
  if (state == nullptr) return {.status = Errc::invalid_handle};
  {
    // What triggered operations came to stays as it is meanwhile.
    const trigger::Holder holder(nic, trigger::Holder::Wait::a_while);
    if (!holder) return {.status = Errc::timeout};
    const CounterValue triggered = triggered_part(*state);
    CounterValue old = read_added(*state);
    while (!compare_and_set(*state, &old, {to.success - triggered.success, to.failure - triggered.failure})) {
    }
  }
  const Counted counted = announce(nic, *state, to);
  if (counted.fires) counters_of(nic).fired.fetch_add(1, std::memory_order_release);
  return counted;
}

}  // namespace counter

Result<CounterName> CounterPool::create() {
  const std::lock_guard lock(mu_);
  std::uint32_t index = fresh_;
  if (fresh_ < kMaxCounters) {
    ++fresh_;
  } else if (!free_.empty()) {
    index = free_.front();
    free_.pop_front();
  } else {
    return Errc::no_resource;
  }
  ++used_;
  CounterState& state = counters_of(view_).counters[index];
  state.success.store(0, std::memory_order_relaxed);
  state.failure.store(0, std::memory_order_relaxed);
  state.triggered_success.store(0, std::memory_order_relaxed);
  state.triggered_failure.store(0, std::memory_order_relaxed);
  state.first.store(0, std::memory_order_relaxed);
  state.last.store(0, std::memory_order_relaxed);
  state.trigger_at.store(kNever, std::memory_order_relaxed);
  state.wake_at.store(kNever, std::memory_order_relaxed);
  std::atomic<std::uint32_t>& shown = counters_of(view_).generations[index];
  const std::uint32_t generation = shown.load(std::memory_order_relaxed) + 1;
  // Release: a process that finds the name finds the line set up.
  shown.store(generation, std::memory_order_release);
  return CounterName{index, generation};
}

Status CounterPool::destroy(CounterName name) {
  const std::lock_guard lock(mu_);
  if (!name.valid()) return Errc::invalid_handle;
  CounterState& state = at(name);
  std::uint32_t generation = name.generation;
  if (!counters_of(view_).generations[name.index].compare_exchange_strong(generation, generation + 1,
                                                                          std::memory_order_seq_cst))
    return Errc::invalid_handle;
  counter::wake(view_, state);
  free_.push_back(name.index);
  --used_;
  return {};
}

Result<CounterValue> CounterPool::get(CounterName name) const {
  const CounterState* const state = counter::find(view_, name);
  if (state == nullptr) return Errc::invalid_handle;
  return counter::read(*state);
}

std::uint32_t CounterPool::in_use() {
  const std::lock_guard lock(mu_);
  return used_;
}

Errc CounterPool::test(const CounterTest& test, CounterValue* value) const {
  const Result<CounterValue> found = get(test.name);
  if (!found.ok()) return found.code();
  *value = found.value();
  return value->success >= test.success || value->failure != 0 ? Errc::ok : Errc::not_done;
}

Errc CounterPool::announce_sleep(const CounterTest& test) {
  CounterState* const state = counter::find(view_, test.name);
  if (state == nullptr) return Errc::invalid_handle;
  state->sleepers.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t wake_at = state->wake_at.load(std::memory_order_relaxed);
  while (test.success < wake_at &&
         !state->wake_at.compare_exchange_weak(wake_at, test.success, std::memory_order_seq_cst)) {
  }
  return Errc::ok;
}

void CounterPool::end_sleep(const CounterTest& test) {
  if (test.name.valid()) at(test.name).sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace orrery::nic
