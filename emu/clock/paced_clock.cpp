// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/paced_clock.hpp"

#include "emu/base/log.hpp"
#include "emu/base/start_thread.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace orrery::clock {

namespace {

constexpr std::int64_t kPsPerNs = 1000;
constexpr std::int64_t kCalibrationNs = 2'000'000;
constexpr std::int64_t kAhead = 100'000'000;  // ps: what a sleeper needs to be awake in time
// ps: the longest time between two looks for which the first of them waits for what is due before the second.
constexpr std::int64_t kMostPatience = 300'000;
// ps: no call of ours takes longer; a program that does so between two looks does something of its own.
constexpr std::int64_t kMostWay = 100'000;
// What a program that polls gets to do it itself, in ps: more while it does, so that its core is left to it.
constexpr std::int64_t kSlack = 50'000'000, kMostSlack = 1'000'000'000;

}  // namespace

WallTime::WallTime(std::int64_t epoch_ns) : epoch_ns_(epoch_ns) {
#if defined(__x86_64__)
  // The best of some tries: a thread that loses its core in between spoils one.
  double best = 0;
  std::int64_t shortest = kNever;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t from = monotonic_ns();
    const std::uint64_t first = rough_ticks();
    while (monotonic_ns() < from + kCalibrationNs) {
    }
    const std::uint64_t last = rough_ticks();
    const std::int64_t took = monotonic_ns() - from;
    if (took >= shortest || last <= first) continue;
    shortest = took;
    best = static_cast<double>(took * kPsPerNs) / static_cast<double>(last - first);
  }
  ps_per_tick_ = best;
#endif
  start_ = (monotonic_ns() - epoch_ns_) * kPsPerNs;
  ticks_ = rough_ticks();
}

std::int64_t WallTime::now() const {
  if (ps_per_tick_ == 0) return (monotonic_ns() - epoch_ns_) * kPsPerNs;
  return start_ + static_cast<std::int64_t>(static_cast<double>(rough_ticks() - ticks_) * ps_per_tick_);
}

std::string Lateness::report() {
  if (samples_.empty()) return "nothing was timed";
  std::sort(samples_.begin(), samples_.end());
  const auto at = [&](double part) {
    return static_cast<double>(
               samples_[static_cast<std::size_t>(part * static_cast<double>(samples_.size() - 1))]) /
           1e3;
  };
  return fmt::format(
      "{} points in time, achieved after asked by p50 {:.0f} ns, p99 {:.0f} ns, worst {:.0f} ns",
      samples_.size(), at(0.5), at(0.99), std::max(at(1.0), static_cast<double>(worst_) / 1e3));
}

PacedClock::PacedClock(std::unique_ptr<SharedClock> shared, bool may_spin, std::uint32_t process_slot)
    : shared_(std::move(shared)),
      may_spin_(may_spin),
      time_(shared_->board().header.epoch_ns),
      first_at_(kNever),
      slack_(kSlack) {
  if (const long cores = sysconf(_SC_NPROCESSORS_ONLN);
      shared_->pe() == 0 && cores > 0 && shared_->pes() > static_cast<std::uint32_t>(cores))
    log::warn(
        "paced time: {} PEs cannot be paced on {} cores: one that waits for a core is late by milliseconds. "
        "Virtual time needs no cores: ORRERY_CLOCK=virtual, `orrery run --clock virtual`",
        shared_->pes(), cores);
  Board& board = shared_->board();
  board.pes[shared_->pe()].node.store(shared_->node(), std::memory_order_relaxed);
  board.pe_of_process[process_slot].store(shared_->pe() + 1, std::memory_order_release);
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (start_thread(thread_, [this] { run(); })) pthread_setname_np(thread_.native_handle(), "orrery-pacer");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PacedClock::~PacedClock() { finish(); }

void PacedClock::enter() {
  // The call began a way earlier.
  const std::int64_t begun = time_.now() - way();
  posting_mu_.lock();
  busy_until_ = std::max(busy_until_, begun);
}

Times PacedClock::start(const Operation& operation) {
  const std::int64_t begun = std::max(busy_until_, operation.not_before.count());
  const Priced priced = shared_->price(operation, Picos{begun}, operations_++);
  if (!operation.uncontended) busy_until_ += priced.quote.cpu_busy.count();
  return priced.times;
}

Picos PacedClock::collective_time(model::Collective collective, std::uint64_t bytes) {
  return shared_->collective_time(collective, bytes);
}

// REQUIRES: agenda_mu_.
void PacedClock::set_first() {
  const std::int64_t at = agenda_.first();
  const bool none = agenda_.empty();
  first_at_.store(none ? kNever : at - leads_[static_cast<std::size_t>(agenda_.first_concerns())].ps(),
                  std::memory_order_release);
}

void PacedClock::schedule(Picos at, Task* task, Concerns concerns) {
  bool sooner = false;
  if (concerns == Concerns::its_node) concerns = Concerns::others;
  {
    const std::lock_guard lock(agenda_mu_);
    sooner = at.count() < agenda_.first();
    agenda_.add(at.count(), task, concerns);
    if (sooner) set_first();
  }
  if (!sooner) return;
  changed_.fetch_add(1, std::memory_order_seq_cst);
  // Woken only when it would come too late by itself: on a core that it shares, it is in the program's way.
  if (sleeping_.load(std::memory_order_seq_cst) &&
      looks_at_.load(std::memory_order_seq_cst) >
          at.count() + (may_spin_ ? 0 : slack_.load(std::memory_order_relaxed)))
    futex_wake(changed_, 1);
}

void PacedClock::leave() {
  // The processor is held: what the machine's own would do meanwhile is nothing else.
  while (time_.now() < busy_until_) cpu_relax();
  posting_mu_.unlock();
}

// What lies between the program and this clock, in or out of a post or of a poll that finds something: about
// what a look in vain takes as a whole, which can be seen from here.
std::int64_t PacedClock::way() const {
  return std::clamp<std::int64_t>(way_.load(std::memory_order_relaxed), 0, kMostWay);
}

void PacedClock::idle(const void* /*source*/) {
  // The next look comes as long after this one as this one after the last, if it is a loop that looks.
  const std::int64_t now = time_.now();
  const std::int64_t since = now - looked_at_.exchange(now, std::memory_order_relaxed);
  const bool loops = since < kMostPatience;
  // The shortest lately.
  const std::int64_t way = way_.load(std::memory_order_relaxed);
  if (loops) way_.store(std::min(since, way + (since - way) / 64), std::memory_order_relaxed);
  run_due(false, loops ? since : 0);
}

// Runs what is to be begun by now, or `patience` ps later. `must`: waits for another thread that is at it.
void PacedClock::run_due(bool must, std::int64_t patience) {
  if (first_at_.load(std::memory_order_acquire) > time_.now() + patience) return;
  std::unique_lock running(running_mu_, std::defer_lock);
  if (must)
    running.lock();
  else if (!running.try_lock())
    return;
  for (std::int64_t found = 0;
       first_at_.load(std::memory_order_acquire) <= (found = time_.now()) + patience;) {
    std::int64_t at = 0, begin = 0;
    Task* task = nullptr;
    Concerns concerns{};
    {
      const std::lock_guard lock(agenda_mu_);
      at = agenda_.first();
      begin = first_at_.load(std::memory_order_relaxed);
      concerns = agenda_.first_concerns();
      task = agenda_.take();
      set_first();
    }
    while (time_.now() < begin) {
    }
    task->run();
    // Done is what others can see: what was stored has left this core.
    (void)visible_.fetch_add(1, std::memory_order_seq_cst);
    std::int64_t late = time_.now() - at;
    // The program has it when its call has returned.
    if (concerns == Concerns::itself && !must) late += way();
    lateness_.add(late);
    // Where no thread was there when it should have been begun, there is nothing to learn.
    if (begin > found) leads_[static_cast<std::size_t>(concerns)].learn(late);
  }
}

void PacedClock::run() {
  mark_runtime_thread();
  std::uint32_t before = changed_.load(std::memory_order_seq_cst);
  while (!stopping_.load(std::memory_order_seq_cst)) {
    const std::uint32_t seen = changed_.load(std::memory_order_seq_cst);
    const std::int64_t at = first_at_.load(std::memory_order_seq_cst);
    const std::int64_t now = time_.now();
    const std::int64_t slack = may_spin_ ? 0 : slack_.load(std::memory_order_relaxed);
    if (at != kNever && at + slack <= now) {
      run_due(true, 0);
      slack_.store(kSlack, std::memory_order_relaxed);
      continue;
    }
    if (at != kNever && may_spin_ && at - now < kAhead) {
      cpu_relax();
      continue;
    }
    // Without a task, but with tasks since the last look, this thread sleeps for one slack and not for good:
    // the next task comes soon then, and schedule() need not wake a thread that looks in time by itself.
    const bool active = !may_spin_ && seen != before;
    before = seen;
    const std::int64_t until = at != kNever ? at + slack - (may_spin_ ? kAhead : 0)
                               : active     ? now + slack
                                            : kNever;
    looks_at_.store(until, std::memory_order_seq_cst);
    sleeping_.store(true, std::memory_order_seq_cst);
    bool in_time = true;
    if (changed_.load(std::memory_order_seq_cst) == seen && !stopping_.load(std::memory_order_seq_cst)) {
      std::optional<std::int64_t> deadline;
      if (until != kNever) deadline = monotonic_ns() + std::max<std::int64_t>(until - now, 0) / kPsPerNs;
      in_time = futex_wait(changed_, seen, deadline);
    }
    sleeping_.store(false, std::memory_order_relaxed);
    // Everything was done when it came to look.
    const std::int64_t next = first_at_.load(std::memory_order_relaxed);
    if (!in_time && (next == kNever || next + slack > time_.now()))
      slack_.store(std::min(2 * slack, kMostSlack), std::memory_order_relaxed);
  }
}

void PacedClock::finish() {
  if (stopping_.load(std::memory_order_relaxed)) return;
  while (first_at_.load(std::memory_order_acquire) != kNever) {
    run_due(true, 0);
    cpu_relax();
  }
  stopping_.store(true, std::memory_order_seq_cst);
  changed_.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(changed_, 1);
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(running_mu_);
  std::fprintf(stderr, "orrery: pe %u: paced as %s: %s\n", shared_->pe(),
               shared_->machine().description.name.c_str(), lateness_.report().c_str());
}

}  // namespace orrery::clock
