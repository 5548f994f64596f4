// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/trigger_table.hpp"

#include "emu/base/check.hpp"
#include "emu/base/double_word.hpp"
#include "emu/base/prefetch.hpp"
#include "emu/base/robust_lock.hpp"
#include "emu/base/wait.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

namespace orrery::nic::trigger {

namespace {

// The record that will be due next was written by its owner: without this the process that reaches it would
// wait for one line of it after the other.
void fetch_record(TriggerTable& table, std::uint32_t index_plus_1) {
  if (index_plus_1 == 0 || index_plus_1 > kMaxTriggers) return;
  const auto* const lines = reinterpret_cast<const std::byte*>(&table.records[index_plus_1 - 1]);
  for (std::size_t at = 0; at < sizeof(TriggerRecord); at += kCacheLine) prefetch_to_write(lines + at);
}

constexpr std::int64_t kPatienceNs = 100'000'000;

timespec in_a_while() {
  const std::int64_t at = monotonic_ns() + kPatienceNs;
  return {static_cast<time_t>(at / 1'000'000'000), static_cast<long>(at % 1'000'000'000)};
}

// Counters whose lists are to be looked at. Grows by those that an operation raised.
class Work {
 public:
  void add(std::uint32_t counter) {
    if (count_ == counters_.size())
      overflown_ = true;
    else
      counters_[count_++] = counter;
  }
  bool take(std::uint32_t* counter) {
    if (count_ == 0) return false;
    *counter = counters_[--count_];
    return true;
  }
  bool overflown() const { return overflown_; }

 private:
  std::array<std::uint32_t, 16> counters_{};
  std::uint32_t count_ = 0;
  bool overflown_ = false;
};

// The record that is due of a counter, plus one.
std::uint32_t due_of(const NicView& nic, std::uint32_t counter) {
  const CounterState& state = counters_of(nic).counters[counter];
  const std::uint32_t first = state.first.load(std::memory_order_relaxed);
  if (first == 0 || first > kMaxTriggers) return 0;
  const TriggerRecord& record = triggers_of(nic).records[first - 1];
  if (record.trigger.index != counter ||
      counters_of(nic).generations[counter].load(std::memory_order_relaxed) != record.trigger.generation)
    return 0;
  return counter::read(state).sum() >= record.threshold ? first : 0;
}

// From `counting` to its end.
void end(const NicView& nic, std::uint32_t index) {
  TriggerRecord& record = triggers_of(nic).records[index];
  CounterState* const state = counter::find(nic, record.counter);
  if (record.phase.load(std::memory_order_relaxed) == TriggerPhase::counting) {
    if (state != nullptr) {
      // Nothing but the lock's holder changes it, so it is swapped at the first try. A full barrier: an adder
      // that does not see it is seen by the looks at the counts that follow.
      const CounterValue now = counter::triggered_part(*state);
      (void)double_word_cas(&state->triggered_success, {now.success, now.failure},
                            {record.due.success, record.due.failure});
    }
    record.phase.store(TriggerPhase::counted, std::memory_order_release);
  }
  if (state != nullptr) counter::wake_waiters(nic, *state, counter::read(*state));
  take_off(nic, index);
}

// Ends it, or not_done: it cannot be done from here.
Errc carry_out(const NicView& nic, Carrier& carrier, std::uint32_t index) {
  TriggerTable& table = triggers_of(nic);
  TriggerRecord& record = table.records[index];
  if (record.kind == TriggerKind::own) return Errc::not_done;
  CounterValue by = record.value;
  if (record.kind == TriggerKind::put) {
    const Errc status = carrier.put(record);
    if (status == Errc::not_done) return status;
    if (status != Errc::ok) by = {.success = 0, .failure = 1};
  }
  if (const CounterState* const state = counter::find(nic, record.counter)) {
    CounterValue base = counter::triggered_part(*state);
    // What others add while it is set stays.
    if (record.kind == TriggerKind::set) {
      const CounterValue whole = counter::read(*state);
      base = {base.success - whole.success, base.failure - whole.failure};
    }
    record.due = {base.success + by.success, base.failure + by.failure};
  }
  // Release, here and below: what a thread that inherits the lock finds was stored in this order.
  record.phase.store(TriggerPhase::counting, std::memory_order_release);
  table.current.store(index + 1, std::memory_order_release);
  end(nic, index);
  return Errc::ok;
}

// One counter's records, as far as they are due. False: the owner is to do one.
bool look_at(const NicView& nic, Carrier& carrier, std::uint32_t counter, Work& work, Looked& looked) {
  while (const std::uint32_t due = looked.steps < kMaxTriggers ? due_of(nic, counter) : 0) {
    ++looked.steps;
    const CounterName raised = triggers_of(nic).records[due - 1].counter;
    if (carry_out(nic, carrier, due - 1) == Errc::not_done) {
      looked.left = true;
      if (!carrier.is_owner()) return true;
      looked.own = due;
      return false;
    }
    looked.any = true;
    if (raised.valid() && raised.index != counter) work.add(raised.index);
  }
  return true;
}

}  // namespace

void set_up(const NicView& nic) {
  TriggerTable& table = triggers_of(nic);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&table.lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
  table.ready.store(1, std::memory_order_release);
}

Holder::Holder(const NicView& nic, Wait wait) : nic_(nic), table_(triggers_of(nic)) {
  if (table_.ready.load(std::memory_order_acquire) == 0) return;
  int got = pthread_mutex_trylock(&table_.lock);
  if (got == EBUSY && wait == Wait::a_while) {
    const timespec until = in_a_while();
#ifdef __SANITIZE_THREAD__
    // ThreadSanitizer does not know the call below.
    while (got == EBUSY && monotonic_ns() < until.tv_sec * 1'000'000'000 + until.tv_nsec) {
      yield_cpu();
      got = pthread_mutex_trylock(&table_.lock);
    }
#else
    got = pthread_mutex_clocklock(&table_.lock, CLOCK_MONOTONIC, &until);
#endif
  } else if (got == EBUSY && wait == Wait::until_free) {
    got = lock_robust(table_.lock);
  }
  inherited_ = got == EOWNERDEAD;
  if (inherited_) {
    pthread_mutex_consistent(&table_.lock);
    if (const std::uint32_t current = table_.current.load(std::memory_order_acquire);
        current != 0 && current <= kMaxTriggers)
      end(nic, current - 1);
  }
  held_ = got == 0 || inherited_;
}

Holder::~Holder() {
  if (held_) pthread_mutex_unlock(&table_.lock);
}

void announce_next(const NicView& nic, CounterState& state) {
  const std::uint32_t first = state.first.load(std::memory_order_relaxed);
  const std::uint64_t at =
      first == 0 || first > kMaxTriggers ? kNever : triggers_of(nic).records[first - 1].threshold;
  // Sequentially consistent: an adder either sees it, or has added before the look at the counts that
  // follows.
  if (state.trigger_at.load(std::memory_order_relaxed) != at)
    state.trigger_at.exchange(at, std::memory_order_seq_cst);
}

void take_off(const NicView& nic, std::uint32_t index) {
  TriggerTable& table = triggers_of(nic);
  TriggerRecord& record = table.records[index];
  record.phase.store(TriggerPhase::counted, std::memory_order_release);
  table.current.store(index + 1, std::memory_order_release);
  if (record.trigger.index < kMaxCounters) {
    CounterState& state = counters_of(nic).counters[record.trigger.index];
    if (state.first.load(std::memory_order_relaxed) == index + 1) {
      fetch_record(table, record.next);
      if (record.next == 0) state.last.store(0, std::memory_order_release);
      state.first.store(record.next, std::memory_order_release);
    }
    announce_next(nic, state);
  }
  // In this order: a thread that goes on here finds the record at the head of the free ones, or not there.
  const std::uint64_t word = table.pending_and_free.load(std::memory_order_relaxed);
  if (static_cast<std::uint32_t>(word) != index + 1) {
    record.next = static_cast<std::uint32_t>(word);
    table.pending_and_free.store(((word >> 32) - 1) << 32 | (index + 1), std::memory_order_release);
  }
  table.current.store(0, std::memory_order_release);
}

Looked look(const NicView& nic, Carrier& carrier, std::uint32_t counter) {
  TriggerTable& table = triggers_of(nic);
  Looked looked;
  Work work;
  if (table.owner_acts.load(std::memory_order_relaxed) != 0 && !carrier.is_owner()) return looked;
  if (counter != kAllCounters) {
    work.add(counter);
    while (work.take(&counter)) {
      if (!look_at(nic, carrier, counter, work, looked)) return looked;
    }
    if (!work.overflown()) return looked;
  }
  const std::uint32_t end = std::min(table.counters_end.load(std::memory_order_relaxed), kMaxCounters);
  for (bool more = true; more;) {
    const bool before = looked.any;
    looked.any = false;
    for (std::uint32_t i = 0; i < end; ++i) {
      Work raised;  // found by the next round
      if (!look_at(nic, carrier, i, raised, looked)) {
        looked.any = looked.any || before;
        return looked;
      }
    }
    more = looked.any;
    looked.any = looked.any || before;
  }
  return looked;
}

bool fire(const NicView& nic, Carrier& carrier, std::uint32_t counter) {
  std::atomic<std::uint64_t>& fired = counters_of(nic).fired;
  for (;;) {
    const std::uint64_t seen = fired.load(std::memory_order_seq_cst);
    bool left = false;
    {
      const Holder holder(nic, Holder::Wait::no);
      if (holder) {
        left = look(nic, carrier, holder.inherited() ? kAllCounters : counter).left;
      } else {
        // The holder looks at `fired` when it has let go. It may have looked already.
        fired.fetch_add(1, std::memory_order_seq_cst);
        const Holder again(nic, Holder::Wait::no);
        if (!again) return false;
        left = look(nic, carrier, again.inherited() ? kAllCounters : counter).left;
      }
    }
    if (left || fired.load(std::memory_order_seq_cst) == seen) return left;
    counter = kAllCounters;
  }
}

}  // namespace orrery::nic::trigger
