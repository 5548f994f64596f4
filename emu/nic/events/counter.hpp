// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/not_before.hpp"
#include "emu/base/status.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

// Counters of successes and failures, one cache line of the owner's segment each. Any thread of any process
// adds to one by a single atomic instruction: an adder that dies anywhere leaves nothing half done. The owner
// waits for counts, sets them, and lets operations be triggered by them (gate/triggered.hpp).
//
//   adder:    adds; then looks at `trigger_at` and `wake_at`, which stand in the same line
//   waiter:   lowers `wake_at`; then looks at the counts; then sleeps on the bell of its process
//   trigger:  the owner lowers `trigger_at`; then looks at the counts
//
// All of these are sequentially consistent, so of an adder and a waiter (or trigger) one sees the other. An
// adder that dies between its addition and its look delays a sleeper until the sleeper's next look (a slice
// of time), and a trigger until the owner's service thread compares the counts itself.
namespace orrery::nic {

inline constexpr std::uint64_t kNever = UINT64_MAX;  // in trigger_at and wake_at: nothing is awaited

struct CounterValue {
  std::uint64_t success = 0;
  std::uint64_t failure = 0;
  constexpr std::uint64_t sum() const { return success + failure; }
  friend constexpr bool operator==(const CounterValue&, const CounterValue&) = default;
};

// A count is the sum of two parts: what processes add, and what triggered operations came to.
struct alignas(kCacheLine) CounterState {
  std::atomic<std::uint64_t> success;  // with `failure` also changed as one 16-byte word
  std::atomic<std::uint64_t> failure;
  std::atomic<std::uint64_t> triggered_success;  // likewise; by the holder of the triggers' lock alone,
  std::atomic<std::uint64_t>
      triggered_failure;                  // so that a survivor can make a count again (trigger_table.hpp)
  std::atomic<std::uint64_t> trigger_at;  // sum of all at which the next trigger fires
  std::atomic<std::uint64_t> wake_at;     // successes at which a sleeper is to be woken; any failure wakes it
  std::atomic<std::uint32_t> sleepers;    // the owner's threads
  std::atomic<std::uint32_t> first;  // of the records that wait for it, plus one; under the triggers' lock
  std::atomic<std::uint32_t> last;
  std::uint32_t reserved;
};
static_assert(sizeof(CounterState) == 64 && offsetof(CounterState, triggered_success) == 16 &&
              offsetof(CounterState, trigger_at) == 32 && offsetof(CounterState, wake_at) == 40 &&
              offsetof(CounterState, sleepers) == 48 && offsetof(CounterState, first) == 52);

inline constexpr std::uint32_t kMaxCounters = 16'383;

struct CounterTable {
  alignas(kCacheLine) std::atomic<std::uint64_t> fired;  // grows when triggers are due and another is to look
  CounterState counters[kMaxCounters];
  // Apart from the counts: an adder's first touch of a counter's line is its addition. A look before it would
  // fetch the line once to read and, when a waiter has read it meanwhile, once more to write.
  std::atomic<std::uint32_t> generations[kMaxCounters];  // odd: in use. The owner writes
};
static_assert(sizeof(CounterTable) <= kCounterArea.bytes && offsetof(CounterTable, counters) == 64);

inline CounterTable& counters_of(const NicView& nic) { return nic.unit<CounterTable, kCounterArea>(); }

// Names a counter of a process: may be copied to any other. A later counter in its place has another
// generation.
struct CounterName {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  constexpr bool valid() const { return index < kMaxCounters && generation % 2 == 1; }
  friend constexpr bool operator==(const CounterName&, const CounterName&) = default;
};

// What came of an addition.
struct Counted {
  Errc status = Errc::ok;  // or invalid_handle: there is no such counter, nothing was done
  // A trigger was reached: the owner is to be rung (HostServices::ring), or runs its triggers itself.
  bool fires = false;
};

namespace counter {

// The counter of that name in a process's segment; null when there is none.
inline CounterState* find(const NicView& nic, CounterName name) {
  if (!name.valid()) [[unlikely]]
    return nullptr;
  CounterTable& table = counters_of(nic);
  // Acquire: pairs with create()'s release; the line is set up.
  return table.generations[name.index].load(std::memory_order_acquire) == name.generation
             ? &table.counters[name.index]
             : nullptr;
}

// Both counts as they were together at one moment.
CounterValue read(const CounterState& state);
// What triggered operations came to. Steady for the holder of their lock.
inline CounterValue triggered_part(const CounterState& state) {
  return {state.triggered_success.load(std::memory_order_seq_cst),
          state.triggered_failure.load(std::memory_order_seq_cst)};
}

[[gnu::noinline]] void wake(const NicView& nic, CounterState& state);
// What a process adds, both at once; what it came to, with the triggered part.
[[gnu::noinline]] CounterValue add_both(CounterState& state, CounterValue by);

inline void wake_waiters(const NicView& nic, CounterState& state, CounterValue now) {
  const std::uint64_t wake_at = state.wake_at.load(std::memory_order_seq_cst);
  if (wake_at != kNever && (now.success >= wake_at || now.failure != 0)) [[unlikely]]
    wake(nic, state);
}

// What an adder, or a setter, owes to the waiters for these counts.
inline Counted announce(const NicView& nic, CounterState& state, CounterValue now) {
  Counted counted;
  counted.fires = now.sum() >= state.trigger_at.load(std::memory_order_seq_cst);
  wake_waiters(nic, state, now);
  return counted;
}

// As add(), for a caller that carries out what is due itself (trigger::fire).
inline Counted count(const NicView& nic, CounterName name, CounterValue by) {
  CounterState* state = find(nic, name);
  if (state == nullptr) [[unlikely]]
    return {.status = Errc::invalid_handle};
  CounterValue now;
  // Each look at the line comes after the addition in the processor's order too: a look that runs ahead while
  // the addition waits for its turn fetches the line from the waiter to read, and then once more to write.
  if (by.failure == 0) [[likely]] {
    now.success = state->success.fetch_add(by.success, std::memory_order_seq_cst) + by.success;
    state = not_before(now.success, state);
    now.failure = state->failure.load(std::memory_order_seq_cst);
  } else if (by.success == 0) {
    now.failure = state->failure.fetch_add(by.failure, std::memory_order_seq_cst) + by.failure;
    state = not_before(now.failure, state);
    now.success = state->success.load(std::memory_order_seq_cst);
  } else {
    return announce(nic, *state, add_both(*state, by));
  }
  const CounterValue triggered = triggered_part(*state);
  return announce(nic, *state, {now.success + triggered.success, now.failure + triggered.failure});
}

// Adds to a counter in any process's segment. What the caller stored before is visible to a thread that sees
// the new count. A stalled adder may still add to a destroyed counter: those are used again as late as
// possible. Any thread of any process; not blocking, but for the wake-up of a sleeper.
inline Counted add(const NicView& nic, CounterName name, CounterValue by) {
  const Counted counted = count(nic, name, by);
  // Release: the owner that sees it sees the count.
  if (counted.fires) [[unlikely]]
    counters_of(nic).fired.fetch_add(1, std::memory_order_release);
  return counted;
}

// Gives a counter new counts, both in one step. As add(). Errors: timeout too (a process that carries out a
// triggered operation of the counter's owner has been stopped for 100 ms).
Counted set(const NicView& nic, CounterName name, CounterValue to);

}  // namespace counter

// What a waiter waits for: that many successes, or any failure.
struct CounterTest {
  CounterName name;
  std::uint64_t success = 0;
};

// The owner's side. Any thread.
// Usage: CounterName c = pool.create().value();  counter::add(nic.view(), c, {.success = 1});  pool.get(c);
class CounterPool {
 public:
  explicit CounterPool(NicView view) : view_(view) {}
  CounterPool(const CounterPool&) = delete;
  CounterPool& operator=(const CounterPool&) = delete;

  // A counter at {0, 0}. Errors: no_resource (kMaxCounters are in use).
  Result<CounterName> create();
  // Its name is refused from now on, and sleepers wait no more. Errors: invalid_handle.
  Status destroy(CounterName name);
  // Errors: invalid_handle.
  Result<CounterValue> get(CounterName name) const;
  std::uint32_t in_use();

  // Whether the test is met. ok, not_done, invalid_handle; `value` is what is there.
  Errc test(const CounterTest& test, CounterValue* value) const;
  // Before and after the caller sleeps on the process's bell: each announce() is looked at again with test()
  // before the sleep. Errors: invalid_handle.
  Errc announce_sleep(const CounterTest& test);
  void end_sleep(const CounterTest& test);

 private:
  CounterState& at(CounterName name) const { return counters_of(view_).counters[name.index]; }

  const NicView view_;
  Lock<LockRank::counters> mu_;
  std::uint32_t fresh_ = 0;         // counters [fresh_, kMaxCounters) were never used; guarded by mu_
  std::uint32_t used_ = 0;          // guarded by mu_
  std::deque<std::uint32_t> free_;  // the one that was destroyed first is used again first; guarded by mu_
};

}  // namespace orrery::nic
