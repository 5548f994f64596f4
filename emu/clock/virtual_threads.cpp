// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The threads of a PE beside the one that makes time pass.
#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "emu/clock/virtual_clock.hpp"
#include "emu/job/process_stat.hpp"

#include <bit>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace orrery::clock {

namespace {

constexpr std::int64_t kMomentNs = 500'000;
constexpr std::uint32_t kQuietLooks = 20;  // in a row at which all threads were asleep
constexpr int kMoments = 20;               // of a wait; then it looks in any case
// How long the one that makes time pass waits, in real time, for another thread: until it sleeps in something
// else, which is looked after in steps, or has computed for so long.
constexpr std::int64_t kStepNs = 200'000, kPatienceNs = 200'000'000;
// And for those that were woken.
constexpr std::int64_t kWokenPatienceNs = 2'000'000'000;
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
bool VirtualClock::help_wait(std::optional<Picos> deadline) {
  thread_waits_.sleeps_again();
  if (deadline && now() >= *deadline) return false;
  int moments = 0;
  const auto goes_on = [&] {
    // The one that makes time pass may be asleep, and know nothing of this deadline.
    if (deadline && moments == 0) turns_.ask(deadline->count());
    if (deadline && now() >= *deadline) return false;
    const bool quiet = leads_sleep();
    if (!quiet) quiet_.store(0, std::memory_order_relaxed);
    return ++moments < kMoments && leader_.load(std::memory_order_relaxed) != 0 &&
           !(quiet && quiet_.fetch_add(1, std::memory_order_relaxed) + 1 >= kQuietLooks);
  };
  (void)waiters_.wait(deadline ? deadline->count() : Waiters::kNoDeadline, own_tid(), kMomentNs, goes_on);
  return !deadline || now() < *deadline;
}

// Gives the threads that were woken the processor, between looks of the one that makes time pass. Less and
// less often: it may hold a lock in each look for which one of them spins, and has to lose the processor
// without it. False: they have had time enough, and are waited for no more.
bool VirtualClock::others_may_go_on() {
  const std::int64_t now = monotonic_ns();
  if (looks_beside_++ == 0) awake_since_ = now;
  if (now - awake_since_ > kWokenPatienceNs) {
    looks_beside_ = 0;
    thread_waits_.give_up();
    shared_->board().header.overtaken.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  if (std::has_single_bit(looks_beside_)) yield_cpu();
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

// Lets others in until `done()`, or until they sleep in something else. REQUIRES: mu_ is held, with the turn.
template <typename Done>
void VirtualClock::stand_aside(Done done) {
  turns_.leave();
  turns_.hold();
  mu_.unlock();
  const std::int64_t limit = monotonic_ns() + kPatienceNs;
  while (!done()) {
    // A thread that has the lock gives the turn away and waits for it, maybe.
    const auto knocks = [&] { return knocks_.load(std::memory_order_seq_cst) != 0; };
    if (!knocks() && mu_.try_lock()) {
      mu_.unlock();
      if (job::other_threads_sleep() && !knocks()) break;
    }
    if (monotonic_ns() < limit) continue;
    shared_->board().header.overtaken.fetch_add(1, std::memory_order_relaxed);
    break;
  }
  mu_.lock();
  turns_.let_go();
  take_turn();
}

// The threads that another one has woken, maybe without a processor yet. REQUIRES: as stand_aside().
void VirtualClock::let_the_woken_go_on() {
  int tries = 0;
  stand_aside([&] {
    if (thread_waits_.awake() == 0) return true;
    if (++tries <= kEagerTries)
      yield_cpu();
    else
      sleep_really(kTryNs);
    return thread_waits_.awake() == 0;
  });
  // Where they did not sleep, stand_aside() has counted it.
  if (thread_waits_.awake() != 0) thread_waits_.give_up();
}

// What has happened to the PE by now is news for its other threads first. REQUIRES: as stand_aside().
void VirtualClock::let_others_look() {
  if (finished_) return;
  if (const std::uint32_t knocks = knocks_.load(std::memory_order_seq_cst); knocks != 0) {
    const std::uint32_t from = let_in_.load(std::memory_order_relaxed);
    stand_aside([&] {
      if (let_in_.load(std::memory_order_relaxed) - from >= knocks) return true;
      sleep_really(kTryNs);
      return false;
    });
  }
  const Touch what = turns_.take_touch();
  kept_ = std::max(kept_, what);
  if (what != Touch::nothing) waiters_.note_news();
  const std::uint64_t round = waiters_.begin_round();
  while (waiters_.let_next(round, now_, what != Touch::nothing)) {
    stand_aside([&] {
      if (!waiters_.is_back()) waiters_.await_back(kStepNs);
      return waiters_.is_back();
    });
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
