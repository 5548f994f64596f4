// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The threads of a PE beside the one that makes time pass.
#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "emu/clock/virtual_clock.hpp"
#include "emu/job/process_stat.hpp"

#include <bit>
#include <utility>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace orrery::clock {

namespace {

constexpr std::int64_t kMomentNs = 500'000;
constexpr std::uint32_t kQuietLooks = 20;  // in a row at which all threads were asleep
// Moments of a wait; then it looks in any case, for what may come from outside, or from a thread of its own.
// While it does the one that makes time pass knows nothing of it: one that waits for the NIC does so rarely.
constexpr int kMoments = 20, kManyMoments = 1000;
// How long the one that makes time pass waits, in real time, for another thread: until it sleeps in something
// else, which is looked after in steps, or has computed for so long.
constexpr std::int64_t kStepNs = 200'000, kPatienceNs = 200'000'000;
// And for those that were woken. New ones, which may do anything, are not waited for so long.
constexpr std::int64_t kWokenPatienceNs = 2'000'000'000;
// Looks beside new ones before it finds out whether they sleep in something else.
constexpr std::uint32_t kLooksBeside = 1024;
// Between two tries to get in.
constexpr int kEagerTries = 16;
constexpr std::int64_t kTryNs = 20'000;

// The calling thread has ended, but for what its destructors do.
// initial-exec: no call to reach it.
__attribute__((tls_model("initial-exec"))) thread_local constinit bool t_ended = false;

void sleep_really(std::int64_t ns) {
  const timespec moment{0, static_cast<long>(ns)};
  syscall(SYS_nanosleep, &moment, nullptr);
}

}  // namespace

// Whether the calling thread is not the one. It becomes it when that one is asleep in something else.
bool VirtualClock::is_helper() {
  const std::int32_t self = own_tid();
  if (leader_.load(std::memory_order_relaxed) == self) [[likely]]
    return false;
  if (finished_) return false;
  note_thread();
  // The one that waited for another thread comes back to its place, as long as no other has taken it.
  if (takes_lead(0)) return false;
  has_helpers_.store(true, std::memory_order_relaxed);
  helpers_came_.fetch_add(1, std::memory_order_relaxed);
  if (quiet_.load(std::memory_order_relaxed) < kQuietLooks) return true;
  quiet_.store(0, std::memory_order_relaxed);
  const std::int32_t leader = leader_.load(std::memory_order_relaxed);
  return leader_inside_.load(std::memory_order_relaxed) || !takes_lead(leader);
}

// The calling thread makes time pass from now on, in the place of `from`. False: another one has that place,
// or the thread ends.
bool VirtualClock::takes_lead(std::int32_t from) {
  if (t_ended) return false;
  // Acquire: what the one before it left is there.
  if (!leader_.compare_exchange_strong(from, own_tid(), std::memory_order_acq_rel)) return false;
  note_thread();  // it gives the place back when it ends
  thread_waits_.sleeps_again();
  waiters_.come_back();
  turns_.self().tid.store(own_tid(), std::memory_order_relaxed);
  return true;
}

void VirtualClock::give_lead() {
  note_thread();
  // Release: see takes_lead().
  leader_.store(0, std::memory_order_release);
  waiters_.rouse();
}

void VirtualClock::begin_thread_wait(const void* on) {
  thread_waits_.begin(on);
  waiters_.come_back();
  if (is_leader()) give_lead();
}

// What it calls later, in destructors that run behind this, finds the time, and waits for another thread.
void VirtualClock::thread_ends() {
  t_ended = true;
  thread_waits_.sleeps_again();
  waiters_.come_back();
  if (is_leader() && !finished_) give_lead();
}

// Whether no thread of the process does anything but this one.
bool VirtualClock::leads_sleep() {
  if (leader_inside_.load(std::memory_order_relaxed) ||
      turns_.self().held.load(std::memory_order_relaxed) != 0)
    return false;
  return job::other_threads_sleep();
}

// Until it is let look, or for a while of real time. False: the deadline has come.
bool VirtualClock::help_wait(std::optional<Picos> deadline, bool looks_outside) {
  if (deadline && now() >= *deadline) {
    thread_waits_.sleeps_again();
    return false;
  }
  const int most = looks_outside ? kMoments : kManyMoments;
  int moments = 0;
  const auto goes_on = [&] {
    // The one that makes time pass may be asleep, and know nothing of this deadline.
    if (deadline && moments % kMoments == 0) turns_.ask(deadline->count());
    if (deadline && now() >= *deadline) return false;
    const bool quiet = leads_sleep();
    if (!quiet) quiet_.store(0, std::memory_order_relaxed);
    return ++moments < most && leader_.load(std::memory_order_relaxed) != 0 &&
           !(quiet && quiet_.fetch_add(1, std::memory_order_relaxed) + 1 >= kQuietLooks);
  };
  // Awake until it can be let look: else time could pass to its deadline, or what it looks for, without it.
  (void)waiters_.wait(
      deadline ? deadline->count() : Waiters::kNoDeadline, own_tid(), kMomentNs,
      [this] { thread_waits_.sleeps_again(); }, goes_on);
  return !deadline || now() < *deadline;
}

// Gives the threads that were woken the processor, between looks of the one that makes time pass. Less and
// less often: it may hold a lock in each look for which one of them spins, and has to lose the processor
// without it. False: they have had time enough, and are waited for no more.
bool VirtualClock::others_may_go_on() {
  const std::int64_t now = monotonic_ns();
  if (const std::uint32_t spell = thread_waits_.spells(); std::exchange(spell_, spell) != spell)
    looks_beside_ = 0;
  if (looks_beside_++ == 0) {
    awake_since_ = now;
    at_rest_ = 0;
  }
  const bool only_new = thread_waits_.only_new();
  const bool is_time = std::has_single_bit(looks_beside_);
  const bool busy = now - awake_since_ > (only_new ? kPatienceNs : kWokenPatienceNs);
  bool gives_up = busy;
  // One that waits for the program's lock runs when that is free for a moment.
  if (only_new && is_time && looks_beside_ >= kLooksBeside) {
    const bool some_hold = turns_.self().held.load(std::memory_order_relaxed) != 0;
    const std::uint64_t at_rest = some_hold ? 0 : job::others_at_rest();
    gives_up = gives_up || (at_rest != 0 && std::exchange(at_rest_, at_rest) == at_rest);
  }
  if (gives_up) {
    looks_beside_ = 0;
    thread_waits_.give_up(busy);
    if (!only_new) count_overtaken();
    return false;
  }
  if (is_time) yield_cpu();
  return true;
}

// Gets the lock from a thread that has it, maybe while it waits for a turn.
void VirtualClock::knock() {
  has_helpers_.store(true, std::memory_order_relaxed);
  knocks_.fetch_add(1, std::memory_order_seq_cst);
  for (int tries = 0; !mu_.try_lock(); ++tries) {
    if (tries < kEagerTries) {
      yield_cpu();
      continue;
    }
    if (!soon_out_.load(std::memory_order_relaxed)) turns_.ask(now().count());
    sleep_really(kTryNs);
  }
  knocks_.fetch_sub(1, std::memory_order_relaxed);
  let_in_.fetch_add(1, std::memory_order_relaxed);
}

// The program goes on without a thread of its own that may still do something.
void VirtualClock::count_overtaken() {
  shared_->board().header.overtaken.fetch_add(1, std::memory_order_relaxed);
}

// Lets others in until `done()`, or until they sleep in something else. False: they have had time enough.
// REQUIRES: mu_ is held, with the turn.
template <typename Done>
bool VirtualClock::stand_aside(Done done) {
  turns_.leave();
  turns_.hold();
  mu_.unlock();
  const std::int64_t limit = monotonic_ns() + kPatienceNs;
  bool in_time = true;
  while (in_time && !done()) {
    // A thread that has the lock gives the turn away and waits for it, maybe.
    const auto knocks = [&] { return knocks_.load(std::memory_order_seq_cst) != 0; };
    // One that waits for another process's service thread is not asleep: it meets a peer, say.
    const auto others_hold = [&] { return turns_.self().held.load(std::memory_order_seq_cst) > 1; };
    if (!knocks() && !others_hold() && mu_.try_lock()) {
      mu_.unlock();
      if (job::other_threads_sleep() && !knocks() && !others_hold()) break;
    }
    in_time = monotonic_ns() < limit;
  }
  mu_.lock();
  turns_.let_go();
  take_turn();
  return in_time;
}

// The threads that another one has woken or created, maybe without a processor yet. REQUIRES: as
// stand_aside().
void VirtualClock::let_the_woken_go_on() {
  // The one that waits here may be one of them.
  thread_waits_.sleeps_again();
  if (thread_waits_.awake() == 0) return;
  int tries = 0;
  const bool in_time = stand_aside([&] {
    if (thread_waits_.awake() == 0) return true;
    if (++tries <= kEagerTries)
      yield_cpu();
    else
      sleep_really(kTryNs);
    return thread_waits_.awake() == 0;
  });
  if (!in_time && !thread_waits_.only_new()) count_overtaken();
  if (thread_waits_.awake() != 0) thread_waits_.give_up(!in_time);
}

// What has happened to the PE by now is news for its other threads first. REQUIRES: as stand_aside().
void VirtualClock::let_others_look() {
  if (finished_) return;
  if (const std::uint32_t knocks = knocks_.load(std::memory_order_seq_cst); knocks != 0) {
    const std::uint32_t from = let_in_.load(std::memory_order_relaxed);
    const bool in_time = stand_aside([&] {
      if (let_in_.load(std::memory_order_relaxed) - from >= knocks) return true;
      sleep_really(kTryNs);
      return false;
    });
    if (!in_time) count_overtaken();
  }
  const Touch what = turns_.take_touch();
  kept_ = std::max(kept_, what);
  if (what != Touch::nothing) waiters_.note_news();
  const std::uint64_t round = waiters_.begin_round();
  while (waiters_.let_next(round, now_, what != Touch::nothing)) {
    const bool in_time = stand_aside([&] {
      if (!waiters_.is_back()) waiters_.await_back(kStepNs);
      return waiters_.is_back();
    });
    if (!in_time) count_overtaken();
    if (!waiters_.is_back()) waiters_.give_up();
  }
}

void VirtualClock::rouse() {
  if (leader_.load(std::memory_order_relaxed) != own_tid()) {
    // The one that makes time pass may be what is to look.
    if (!mu_.try_lock()) {
      turns_.touch(self_, now().count(), Touch::news);
      turns_.ask(now().count());
    } else {
      mu_.unlock();
    }
  }
  waiters_.rouse();
}

}  // namespace orrery::clock
