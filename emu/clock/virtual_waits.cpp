// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// How a program waits in virtual time: by looking at what the NIC may bring, at the clock, at memory, by
// sleeping, by calls that wait, and in the launcher's barrier.
#include "emu/base/timed_path.hpp"
#include "emu/base/wait.hpp"
#include "emu/clock/page_watch.hpp"
#include "emu/clock/virtual_clock.hpp"

#include <algorithm>
#include <utility>

namespace orrery::clock {

namespace {

// A time so far off that it has no number does not come.
std::int64_t at_or_never(std::int64_t from, std::int64_t duration) {
  std::int64_t at = 0;
  return __builtin_add_overflow(from, duration, &at) ? kNever : at;
}

// Looks at the clock in a row after which it is one that waits for a time. It waits this part of its length
// at each: by so much it may be late. A program that times what it computes does the same and is not told
// from it, for only real time could: so the waits are short, and they grow slowly, and not for ever.
constexpr std::uint32_t kClockLooks = 64;
constexpr std::int64_t kPartOfStreak = 1024;
constexpr std::int64_t kShortestQuantum = 100'000;       // 100 ns
constexpr std::int64_t kLongestQuantum = 1'000'000'000;  // 1 ms
constexpr std::uint32_t kHelperLooks = 256, kSpunForLooks = 4096;
constexpr std::uint32_t kNaps = 64;  // in a row: the program waits
// Looks at a datagram that is held back: a program that has always something else to do finds it, too.
constexpr std::uint32_t kMostHeldBack = 4096;

// What a program looks at that is no source: by their addresses.
constexpr char kOutside = 0, kEvent = 1, kMemory = 2, kNap = 3, kBarrier = 4;

}  // namespace

// How long a look waits at most where the program watches the clock.
std::int64_t VirtualClock::quantum() const {
  return std::clamp((now_ - streak_from_) / kPartOfStreak, kShortestQuantum, kLongestQuantum);
}

// Until then, or until something happens that the program may be looking for.
ORRERY_TIMED_PATH void VirtualClock::wait_by_looking(std::int64_t until, bool wakes, bool peeks) {
  while (run_until(until, wakes, WaitsFor::poll, peeks)) {
    if (ends_looking(touched_)) {
      woken_by_data_ = touched_ == Touch::data;
      return looks_.news();
    }
    if (touched_ == Touch::data) continue;
    if (looks_.is_wait()) return looks_.stirred();
  }
}

// The program has looked in real time, for nothing.
void VirtualClock::look_again(const void* source) {
  rounds_unknown_ = true;
  if (knocks_.load(std::memory_order_relaxed) != 0) {
    mu_.unlock();
    while (knocks_.load(std::memory_order_relaxed) != 0) yield_cpu();
    mu_.lock();
    if (!peeking_) {
      if (!turns_.enter()) catch_up();
      return;
    }
  }
  // One of its threads has begun to wait until a time: this PE does not wait without a limit any more.
  if (waiters_.any() && waiters_.first_deadline() != Waiters::kNoDeadline) return take_turn();
  const std::uint32_t came = helpers_came_.load(std::memory_order_relaxed);
  const bool alone = std::exchange(helpers_seen_, came) == came;
  const bool elsewhere = source == &kOutside || source == &kMemory || source == &kNap || source == &kBarrier;
  if (!turns_.peek_again(alone, source, elsewhere)) return;
  peeking_ = false;
  pass_to(turns_.time());
  woken_at_ = now_;
  run_due();
  if (is_touched()) looks_.news();
}

ORRERY_TIMED_PATH void VirtualClock::idle(const void* source) {
  if (is_helper()) {
    // One that spins finds out now and then whether the one that makes time pass sleeps. It may have a lock
    // of the program's in each look: while one that is awake may spin for that, it neither sleeps nor gives
    // the processor away in here, and loses it without the lock sooner or later.
    thread_local std::uint32_t looks = 0;
    waiters_.come_back();
    thread_waits_.looks_in_vain();
    ++looks;
    if (thread_waits_.awake() == 0 && leader_inside_.load(std::memory_order_relaxed)) {
      if (looks % kHelperLooks == 0) (void)help_wait(std::nullopt, true);
      yield_cpu();
    } else if (looks % kSpunForLooks == 0 && leads_sleep()) {
      (void)help_wait(std::nullopt, true);
    }
    return;
  }
  come_in(true);
  if (finished_) return go_out();
  looked_ = true;
  if (!is_free_source(source)) ++looks_made_;
  if (peeking_) {
    look_again(source);
    return go_out();
  }
  // It may hold a lock of the program's, for which the thread spins that was woken: it does not wait in here.
  const bool beside = thread_waits_.awake() != 0 && others_may_go_on();
  if (!beside) looks_beside_ = 0;
  if (beside && !thread_waits_.only_new()) {
    rounds_unknown_ = true;
    return go_out();
  }
  // In which of an engine's rounds it looks at a free source is an accident: the news are not for that.
  if (!is_free_source(source) && is_news()) {
    (void)is_touched();
    woken_by_data_ = touched_ == Touch::data;
    looks_.news();
    return go_out();
  }
  Looks::Then then = looks_.look(source);
  // Beside a new thread, which may have nothing to do with it, looks count: how many are made meanwhile does
  // not matter so. Their time passes when that one waits.
  if (beside) {
    looks_unpaid_ = looks_unpaid_ || then != Looks::Then::goes_on;
    rounds_unknown_ = rounds_unknown_ || then == Looks::Then::waits;
    std::atomic_ref(owed_looks_).store(looks_.owed(), std::memory_order_relaxed);
    return go_out();
  }
  if (std::exchange(looks_unpaid_, false)) then = Looks::Then::catches_up;
  if (then == Looks::Then::waits && shows_datagrams()) return go_out();
  if (then == Looks::Then::waits) {
    data_is_vain_ = data_is_vain_ || woken_by_data_;
    // One that watches the clock has a time in mind.
    const bool watched = looks_.is_watched();
    if (!watched) clock_looks_ = 0;
    // Then the reading waits, however many looks are between two. Where other threads communicate too it lets
    // them in now and then.
    if (!watched && helpers_post_.load(std::memory_order_relaxed))
      wait_by_looking(now_ + kShortestQuantum, true, false);
    else if (!watched)
      wait_by_looking(kNever, true, true);
  } else if (then == Looks::Then::catches_up) {
    pay_looks(true);
  } else {
    std::atomic_ref(owed_looks_).store(looks_.owed(), std::memory_order_relaxed);
  }
  go_out();
}

void VirtualClock::found() {
  if (is_helper()) return;
  lock();
  if (!peeking_) {
    // What came with it is no reason to look for more.
    if (!finished_) (void)take_touch();
    something_done();
  }
  unlock();
}

// What happens to a PE at one time, datagrams and all else, is found in the order in which its program looks.
// Where that order is an accident, the program finds a datagram when it has nothing else to do.
bool VirtualClock::holds_back_datagram() {
  if (is_helper()) return false;
  lock();
  const bool holds = rounds_unknown_ && !shown_ && !peeking_ && !finished_ && ++held_back_ < kMostHeldBack;
  unlock();
  return holds;
}

void VirtualClock::datagram_taken() {
  if (is_helper()) return;
  lock();
  shown_ = false;
  held_back_ = 0;
  unlock();
}

// The program would wait now. Whether it is to look for a datagram instead.
bool VirtualClock::shows_datagrams() {
  if (held_back_ == 0) return false;
  held_back_ = 0;
  shown_ = true;
  looks_.news();
  return true;
}

void VirtualClock::idle_outside() {
  if (is_helper()) return static_cast<void>(help_wait(std::nullopt, true));
  come_in(true, true);
  rounds_unknown_ = true;
  if (finished_) return go_out();
  if (peeking_) {
    look_again(&kOutside);
  } else {
    pay_looks(true);
    if (thread_waits_.awake() != 0) let_the_woken_go_on();
    if (!shows_datagrams()) wait_by_looking(kNever, true, true);
    if (!peeking_ && !finished_ && work_ != nullptr && is_leader()) do_work();
  }
  go_out();
}

ORRERY_TIMED_PATH bool VirtualClock::wait(std::optional<Picos> deadline) {
  if (is_helper()) return help_wait(deadline, false);
  // Where other threads may want in, it comes out now and then.
  const bool peeks = has_helpers_.load(std::memory_order_relaxed);
  come_in(peeking_);
  bool touched = true;
  if (peeking_) {
    look_again(&kEvent);
  } else {
    something_done();
    (void)shows_datagrams();
    touched = run_until(deadline ? std::max(deadline->count(), now_) : kNever, true, WaitsFor::event, peeks);
  }
  touched = touched || peeking_;
  go_out();
  return touched;
}

void VirtualClock::watch_program() {
  std::call_once(watching_, [this] { page_watch::start(this); });
}

bool VirtualClock::wait_for_store(bool surely) {
  come_in(peeking_);
  bool waited = true;
  if (peeking_) {
    look_again(&kMemory);
  } else {
    something_done();
    (void)run_until(kNever, true, WaitsFor::memory, true);
  }
  // Nothing else happens in the job, so it may be this one that computes: it goes on.
  if (peeking_ && !surely) {
    looks_.done();
    const std::int64_t before = now_;
    take_turn();
    // While it was taken for one that waits the others have gone on.
    if (now_ != before) shared_->board().header.overtaken.fetch_add(1, std::memory_order_relaxed);
    waited = false;
  }
  if (look_ != nullptr && !peeking_) look_(look_argument_);
  go_out();
  return waited;
}

void VirtualClock::step_out() {
  come_in();
  something_done();
  do_all();
  if (!finished_) turns_.step_out();
  unlock();
}

void VirtualClock::step_in() {
  come_in();
  go_out();
}

ORRERY_TIMED_PATH Picos VirtualClock::read() {
  if (is_helper()) return now();
  come_in(looks_.in_a_row() != 0 && !peeking_, true);
  if (looks_.owed() != 0) pay_looks(true);
  if (clock_looks_++ == 0) streak_from_ = now_;
  looks_.clock_read();
  // What has been computed in between counts as time by itself (measured).
  const bool beside = thread_waits_.awake() != 0 && thread_waits_.only_new() && others_may_go_on();
  if (clock_looks_ + looks_.in_a_row() > kClockLooks && !finished_ && !compute_.measured && !beside)
    wait_by_looking(now_ + quantum(), true, false);
  const Picos time{now_};
  go_out();
  return time;
}

void VirtualClock::sleep_until(Picos at) {
  while (is_helper()) {
    if (!help_wait(at, false)) return;
  }
  come_in(false, true);
  something_done();
  if (at.count() > now_) pass_working(at.count(), WaitsFor::sleep);
  go_out();
}

void VirtualClock::nap(Picos duration) {
  if (is_helper()) return sleep_until(Picos{at_or_never(now().count(), duration.count())});
  const bool waits = looked_ && clock_looks_ == 0 && duration > Picos{} && ++naps_ > kNaps;
  // Not one of many between looks: the program has found what it looked for, in memory maybe, and left.
  come_in(waits, true);
  rounds_unknown_ = true;
  if (!looked_ || clock_looks_ != 0) something_done();
  looked_ = false;
  if (finished_) return go_out();
  const std::int64_t from = now_ + looks_.take_owed();
  std::atomic_ref(owed_looks_).store(0, std::memory_order_relaxed);
  if (peeking_) {
    look_again(&kNap);
  } else if (waits) {
    if (!shows_datagrams()) wait_by_looking(kNever, true, true);
    // It wakes at the end of one of its sleeps.
    const std::int64_t each = duration.count();
    if (!peeking_) pass_working(from + (now_ - from + each) / each * each, WaitsFor::sleep);
  } else {
    pass_working(at_or_never(from, duration.count()), WaitsFor::sleep);
    const std::uint32_t naps = naps_;
    something_done();
    naps_ = naps;
  }
  go_out();
}

// ---- the launcher's barrier ----

void VirtualClock::barrier_arrive() {
  come_in(false, true);
  something_done();
  if (finished_) return go_out();
  // Arrivals are counted in the order of time.
  if (ahead_ != 0) (void)run_until(now_, false, WaitsFor::barrier);
  turns_.barrier_arrive();
  go_out();
}

void VirtualClock::barrier_wait(Picos takes) {
  come_in(false, true);
  while (!finished_ && !turns_.barrier_over()) {
    if (peeking_) {
      look_again(&kBarrier);
      if (!peeking_) continue;
      // Other threads of this PE may want in; none takes this one's place.
      mu_.unlock();
      yield_cpu();
      mu_.lock();
      if (!peeking_ && !turns_.enter()) catch_up();
      if (work_ != nullptr) do_work();
      continue;
    }
    // What one of them does may come at any time.
    const bool peeks = has_helpers_.load(std::memory_order_relaxed);
    if (run_until(kNever, true, WaitsFor::barrier, peeks) && work_ != nullptr) do_work();
  }
  // What ended it was done by another PE while this one looked without the turn.
  if (peeking_) take_turn();
  if (takes != Picos{})
    (void)run_until(std::max(now_, turns_.barrier_time() + takes.count()), false, WaitsFor::barrier);
  go_out();
}

}  // namespace orrery::clock
