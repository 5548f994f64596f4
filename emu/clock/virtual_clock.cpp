// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/virtual_clock.hpp"

#include "emu/base/check.hpp"
#include "emu/base/log.hpp"
#include "emu/base/timed_path.hpp"
#include "emu/clock/data_touch.hpp"
#include "emu/clock/page_watch.hpp"

#include <algorithm>
#include <utility>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace orrery::clock {

namespace {

constexpr std::size_t kUsualEffects = 4;  // of a PE on one node
constexpr std::uint32_t kSpins = 2000;    // some microseconds: what a sleep and its end would cost

// initial-exec: no call to reach them.
__attribute__((tls_model("initial-exec"))) thread_local constinit bool t_inside = false;
__attribute__((tls_model("initial-exec"))) thread_local constinit int t_holds = 0;
__attribute__((tls_model("initial-exec"))) thread_local constinit std::int32_t t_tid = 0;
__attribute__((tls_model("initial-exec"))) thread_local constinit bool t_known = false;
std::atomic<void (*)()> g_new_thread{nullptr};
// ns of processor time when this thread went on in its program; -1: it was not in the clock yet.
__attribute__((tls_model("initial-exec"))) thread_local constinit std::int64_t t_cpu_at_exit = -1;
// In the work of a NIC that works by itself: the processor time that it takes is not the program's.
__attribute__((tls_model("initial-exec"))) thread_local constinit bool t_works = false;

std::int64_t thread_cpu_ns() {
  timespec used{};
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<std::int64_t>(used.tv_sec) * 1'000'000'000 + used.tv_nsec;
}

}  // namespace

VirtualClock::VirtualClock(std::unique_ptr<SharedClock> shared, const Choice& choice,
                           const WaitBudget& budget, std::uint32_t process_slot, const std::string& record)
    : leader_(own_tid()),
      shared_(std::move(shared)),
      compute_(choice.compute),
      ahead_(choice.ahead_ns * 1000),
      least_latency_(std::max<std::int64_t>(shared_->least_latency().count(), 1)),
      self_(shared_->pe()),
      turns_(shared_->board(), shared_->owed(), shared_->pe(),
             TurnSpins(budget.spins == 0 ? 0 : kSpins,
                       compute_.measured ? -1 : static_cast<int>(shared_->board().header.core)),
             *this),
      machine_(choice.machine),
      effects_(shared_->pes()),
      firsts_(shared_->pes(), kNever),
      // Optimistic: news come in another order, and the more looks are free behind them the more hangs on
      // that.
      looks_(shared_->look_time().count(), ahead_ == 0 ? Looks::kFree : Looks::kFewFree) {
  // Now, so that they are together in few pages.
  for (Agenda& there : effects_) there.reserve(kUsualEffects);
  if (!record.empty()) recorder_ = std::make_unique<Recorder>(record, self_);
  turns_.join(shared_->node(), process_slot);
  if (compute_.measured) t_cpu_at_exit = thread_cpu_ns();
}

// ---- coming and going ----

std::int32_t VirtualClock::own_tid() {
  if (t_tid == 0) t_tid = static_cast<std::int32_t>(syscall(SYS_gettid));
  return t_tid;
}

bool VirtualClock::knows_thread() { return t_known; }
void VirtualClock::note_thread() {
  if (std::exchange(t_known, true)) return;
  thread_waits_.comes_in();
  if (auto* const call = g_new_thread.load(std::memory_order_relaxed); call != nullptr) call();
}
void VirtualClock::tell_of_threads(void (*call)()) { g_new_thread.store(call, std::memory_order_relaxed); }

void VirtualClock::lock() {
  t_inside = true;
  // A thread that waits for the launcher takes the place of one that waits for that thread.
  if (leader_.load(std::memory_order_relaxed) == own_tid() || takes_lead(0)) [[likely]]
    leader_inside_.store(true, std::memory_order_relaxed);
  else
    note_thread();
  if (!mu_.try_lock()) [[unlikely]]
    knock();
}
void VirtualClock::unlock() {
  mu_.unlock();
  if (leader_.load(std::memory_order_relaxed) == own_tid())
    leader_inside_.store(false, std::memory_order_relaxed);
  t_inside = false;
}
void VirtualClock::hold() {
  ++t_holds;
  turns_.hold();
}
void VirtualClock::let_go() {
  turns_.let_go();
  --t_holds;
}
ORRERY_TIMED_PATH bool VirtualClock::is_inside() { return t_inside || t_holds != 0; }

// `looks`: for a look in vain, whose time may be owed.
ORRERY_TIMED_PATH void VirtualClock::come_in(bool looks, bool works) {
  page_watch::program_calls();
  lock();
  // What exit handlers of the program still ask for happens after the PE's last turn.
  if (finished_) return;
  if (peeking_ && looks) return;
  // It has found what came from outside.
  if (peeking_) looks_.done();
  take_turn();
  if (compute_.measured && !t_works) {
    const std::int64_t used = t_cpu_at_exit < 0 ? 0 : thread_cpu_ns() - t_cpu_at_exit;
    const auto passed = static_cast<std::int64_t>(static_cast<double>(used) * 1e3 * compute_.factor);
    if (passed > 0 && works)
      pass_working(now_ + passed, WaitsFor::nothing);
    else if (passed > 0)
      (void)run_until(now_ + passed, false, WaitsFor::nothing);
  }
  if (!looks) pay_looks(false);
}

// The work of the NIC, between two calls of the program's. REQUIRES: come_in() was called; it is again.
void VirtualClock::do_work() {
  const bool peeks = peeking_;
  go_out();
  t_works = true;
  work_(work_argument_);
  come_in(peeks);
  t_works = false;
}

// Lets time pass to `until`, whatever happens; the NIC's work is done on the way. The program sees later what
// has happened meanwhile.
void VirtualClock::pass_working(std::int64_t until, WaitsFor why) {
  if (work_ == nullptr || t_works || !is_leader()) {
    (void)run_until(until, false, why);
    return;
  }
  Touch seen = Touch::nothing;
  while (!finished_ && run_until(std::max(until, now_), true, why)) {
    seen = std::max(seen, touched_);
    do_work();
  }
  kept_ = std::max(kept_, seen);
}

void VirtualClock::compute_passes() {
  if (!compute_.measured || work_ == nullptr || is_helper()) return;
  come_in(peeking_, true);
  go_out();
}

// The turn is this PE's, whichever of its threads had it last, and though its program looks without it.
// REQUIRES: mu_ is held.
ORRERY_TIMED_PATH void VirtualClock::take_turn() {
  if (peeking_) [[unlikely]] {
    peeking_ = false;
    turns_.come_back();
    catch_up();
  } else if (!turns_.enter()) {
    catch_up();
  }
}

// The others went on without it.
void VirtualClock::catch_up() {
  pass_to(turns_.time());
  for (std::uint32_t row = 0; row < effects_.size(); ++row) owe(row);
  run_due();
}

// The time that looks in vain took passes. `wakes`: up to when something happens.
void VirtualClock::pay_looks(bool wakes) {
  const std::int64_t until = now_ + looks_.take_owed();
  std::atomic_ref(owed_looks_).store(0, std::memory_order_relaxed);
  if (until > now_) wait_by_looking(until, wakes, false);
}

ORRERY_TIMED_PATH void VirtualClock::go_out() {
  if (ahead_ != 0 && !finished_)
    turns_.note_seen(turns_.row_of(self_), now_, woken_at_ == now_ ? UINT32_MAX : self_ + 1);
  if (!finished_ && !peeking_) turns_.leave();
  if (compute_.measured) t_cpu_at_exit = thread_cpu_ns();
  unlock();
  page_watch::program_goes_on();
}

// Something other than a look in vain.
void VirtualClock::something_done() {
  turns_.note_done();
  looks_.done();
  clock_looks_ = 0;
  naps_ = 0;
  woken_by_data_ = false;
}

// Time does not go back. REQUIRES: mu_ is held.
void VirtualClock::pass_to(std::int64_t at) {
  if (at > now_) std::atomic_ref(now_).store(at, std::memory_order_relaxed);
}

Touch VirtualClock::take_touch() {
  const Touch what = turns_.take_touch();
  if (what != Touch::nothing && has_helpers_.load(std::memory_order_relaxed)) waiters_.note_news();
  return std::max(what, std::exchange(kept_, Touch::nothing));
}

bool VirtualClock::is_touched() {
  touched_ = take_touch();
  return touched_ != Touch::nothing;
}

// Lets time pass to `until`, doing what is due on the way. True: ended early by a touch. With `peeks` it may
// end in peeking_.
ORRERY_TIMED_PATH bool VirtualClock::run_until(std::int64_t until, bool wakes, WaitsFor why, bool peeks) {
  if (finished_) {
    if (until != kNever) pass_to(until);
    return wakes;
  }
  // Optimistic: what only this PE's own time waits for may pass before the others have come so far. What it
  // owes them by then is done in passing, and may be late.
  if (ahead_ != 0 && !wakes && why != WaitsFor::barrier && why != WaitsFor::end &&
      agenda_.first_for_others() > until && turns_.run_ahead(until, ahead_)) {
    pass_to(until);
    run_due();
    return false;
  }
  // A thread beside the one that makes time pass, which only lets a call's own time pass: none of the others
  // comes in meanwhile, least of all the one that would wait, with the lock, for something else.
  const bool is_guest = why == WaitsFor::nothing && !wakes && !is_leader();
  if (is_guest) [[unlikely]]
    soon_out_.store(true, std::memory_order_relaxed);
  const bool ended_early = pass_until(until, wakes, why, peeks, is_guest);
  if (is_guest) [[unlikely]]
    soon_out_.store(false, std::memory_order_relaxed);
  return ended_early;
}

ORRERY_TIMED_PATH bool VirtualClock::pass_until(std::int64_t until, bool wakes, WaitsFor why, bool peeks,
                                                bool is_guest) {
  // A call that only takes its own time may be made with a lock of the program's, for which a thread spins.
  const bool waits = why != WaitsFor::nothing && why != WaitsFor::poll;
  for (;;) {
    if (waits && thread_waits_.awake() != 0 && !finished_) [[unlikely]]
      let_the_woken_go_on();
    // The other threads wait for a time of their own, or to be woken.
    const bool alone = is_guest || is_alone();
    if (!alone) [[unlikely]] {
      let_others_look();
      // What they posted has taken time.
      until = std::max(until, now_);
    }
    if (wakes && is_touched()) return true;
    // A turn for each task costs a switch of processes. Where the program goes on at `until` in any case,
    // no PE can see before then whether this PE's own events were there.
    // Beside other threads it is woken for them, which changes nothing for the program: when the first of
    // them comes is the host's business.
    const bool woken = wakes || has_helpers_.load(std::memory_order_relaxed);
    // Else it would count as seen, and what others owe at that time would not be asked for (owed_before).
    if (woken && !wakes) kept_ = take_touch();
    std::int64_t own = woken ? agenda_.first() : agenda_.first_for_others();
    if (!alone) own = std::min(own, std::max(now_, waiters_.first_deadline()));
    turns_.self().pending.store(static_cast<std::uint32_t>(agenda_.size()), std::memory_order_relaxed);
    const Wakes how = wakes ? Wakes::yes : woken ? Wakes::before : Wakes::no;
    if (!turns_.turn_at(std::min(until, own), how, why, peeks)) {
      peeking_ = true;
      return false;
    }
    pass_to(turns_.time());
    if (wakes) woken_at_ = now_;
    run_due();
    if (!is_guest && !is_alone()) [[unlikely]]
      let_others_look();
    if (wakes && is_touched()) return true;
    if (now_ >= until) return false;
  }
}

// What is due, before the program goes on. What it owes to other nodes need not be done for that; but it has
// the turn now, and would have to be given another.
ORRERY_TIMED_PATH void VirtualClock::run_due() {
  for (;;) {
    if (effects_left_ != 0) run_effects(now_, false);
    settle_row(turns_.row_of(self_), now_);
    const std::int64_t at = agenda_.first();
    if (at > now_) return;
    run(at, agenda_.take());
  }
}

ORRERY_TIMED_PATH void VirtualClock::run(std::int64_t at, Task* task) {
  shared_->board().header.tasks.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t outer = std::exchange(task_at_, at);
  task->run();
  task_at_ = outer;
}

// The first effect that this PE owes to that row.
ORRERY_TIMED_PATH void VirtualClock::run_effect(std::uint32_t row) {
  Agenda& there = effects_[row];
  const std::int64_t at = there.first();
  Task* const task = there.take();
  --effects_left_;
  if (ahead_ != 0) turns_.note_changed(row, at, self_);
  run(at, task);
  owe(row);
}

// Says what this PE owes to that row.
ORRERY_TIMED_PATH void VirtualClock::owe(std::uint32_t row) {
  firsts_[row] = effects_[row].first();
  turns_.owe(row, firsts_[row]);
}

// What this PE owes by then, but for what comes behind the effects of others on the same node. Optimistic: a
// PE that runs ahead keeps owing, unless it is asked for it (`asked`), what PEs behind it would see too
// early.
// And what it owes later than that, where no PE can tell: the node's PEs wait for a later time
// already, and no operation that is yet to begin does anything there so soon. Else a turn would be needed for
// it before they go on.
ORRERY_TIMED_PATH void VirtualClock::run_effects(std::int64_t until, bool asked) {
  const bool early = ahead_ == 0 && !turns_.nodes_are_asked();
  for (std::uint32_t row = 0; row < effects_.size(); ++row) {
    for (std::int64_t at = firsts_[row]; at < until + least_latency_; at = firsts_[row]) {
      if (at > until && !(early && turns_.sleeps_until(row, at))) break;
      if (turns_.first_effect(row).pe != self_) break;
      if (ahead_ != 0 && !asked && turns_.has_earlier(row, at)) break;
      run_effect(row);
    }
  }
}

// All effects on that row that come before this PE at `until`, its own ones too.
ORRERY_TIMED_PATH void VirtualClock::settle_row(std::uint32_t row, std::int64_t until) {
  for (;;) {
    const Turns::Effect first = turns_.first_effect(row);
    if (!first.before(until, self_ + 1)) return;
    if (first.pe == self_)
      run_effect(row);
    else
      turns_.collect_from(first.pe, first.at);
  }
}

// Everything that it has under way, at its time: when the others have come so far.
void VirtualClock::do_all() {
  while (effects_left_ != 0 || !agenda_.empty()) {
    std::int64_t at = agenda_.first();
    for (const std::int64_t first : firsts_) at = std::min(at, first);
    (void)run_until(std::max(at, now_), false, WaitsFor::end);
    for (std::uint32_t row = 0; row < effects_.size(); ++row) {
      if (firsts_[row] <= now_) settle_row(row, now_);
    }
  }
}

ORRERY_TIMED_PATH void VirtualClock::settle(std::uint32_t process_slot) {
  const std::uint32_t pe = shared_->board().pe_of_process[process_slot].load(std::memory_order_acquire);
  if (finished_ || pe == 0 || pe > shared_->pes()) return;
  if (task_at_ == kNever) turns_.ask_nodes();
  settle_row(turns_.row_of(pe - 1), time_of_task());
  if (ahead_ != 0) turns_.note_seen(turns_.row_of(pe - 1), time_of_task(), self_ + 1);
}

// ---- operations ----

ORRERY_TIMED_PATH void VirtualClock::enter() {
  if (leader_.load(std::memory_order_relaxed) != own_tid() && !takes_lead(0)) [[unlikely]]
    helpers_post_.store(true, std::memory_order_relaxed);
  come_in();
  if (thread_waits_.is_late()) [[unlikely]]
    count_overtaken();
  something_done();
  busy_until_ = now_;
}

ORRERY_TIMED_PATH Times VirtualClock::start(const Operation& operation) {
  const std::int64_t begun = std::max(busy_until_, operation.not_before.count());
  const Priced priced = shared_->price(operation, Picos{begun}, operations_++);
  if (recorder_ != nullptr) {
    recorder_->add({.called = turns_.time(),
                    .pe = self_,
                    .number = shared_->board().header.operations.fetch_add(1, std::memory_order_relaxed),
                    .uncontended = operation.uncontended,
                    .request = priced.request,
                    .quote = priced.quote});
  }
  if (!operation.uncontended) busy_until_ += priced.quote.cpu_busy.count();
  return priced.times;
}

ORRERY_TIMED_PATH void VirtualClock::schedule(Picos at, Task* task, Concerns concerns) {
  if (concerns == Concerns::its_node) concerns = turns_.shares_node() ? Concerns::others : Concerns::itself;
  agenda_.add(std::max(at.count(), time_of_task()), task, concerns);
}

ORRERY_TIMED_PATH void VirtualClock::schedule_there(Picos at, Task* task, std::uint32_t process_slot) {
  const std::uint32_t pe = shared_->board().pe_of_process[process_slot].load(std::memory_order_acquire);
  if (pe == 0 || pe > shared_->pes()) return schedule(at, task, Concerns::others);
  const std::uint32_t row = turns_.row_of(pe - 1);
  const std::int64_t due = std::max(at.count(), time_of_task());
  effects_[row].add(due, task);
  ++effects_left_;
  owe(row);
  turns_.expect(pe - 1, due);
}

ORRERY_TIMED_PATH void VirtualClock::leave() {
  (void)run_until(busy_until_, false, WaitsFor::nothing);
  go_out();
}

Picos VirtualClock::collective_time(model::Collective collective, std::uint64_t bytes) {
  return shared_->collective_time(collective, bytes);
}

ORRERY_TIMED_PATH void VirtualClock::touch(std::uint32_t process_slot) {
  tell(process_of_touch(process_slot), is_data_touch(process_slot) ? Touch::data : Touch::news);
}

void VirtualClock::stir(std::uint32_t process_slot) { tell(process_slot, Touch::stirred); }

ORRERY_TIMED_PATH void VirtualClock::tell(std::uint32_t process_slot, Touch what) {
  Board& board = shared_->board();
  const std::uint32_t pe = board.pe_of_process[process_slot].load(std::memory_order_acquire);
  if (pe == 0 || pe > shared_->pes()) return;
  // Optimistic: one that is further has looked, or waited, without it.
  if (ahead_ != 0 && pe - 1 != self_ &&
      board.pes[pe - 1].now.load(std::memory_order_relaxed) > time_of_task())
    board.header.late.fetch_add(1, std::memory_order_relaxed);
  turns_.touch(pe - 1, time_of_task(), what);
}

void VirtualClock::touch_all() {
  if (ahead_ != 0) turns_.note_seen_by_all(time_of_task());
  for (std::uint32_t pe = 0; pe < shared_->pes(); ++pe) turns_.touch(pe, time_of_task(), Touch::news);
}

void VirtualClock::watch(std::uint64_t begin, std::uint64_t end) {
  watch_program();
  page_watch::watch(begin, end);
}

void VirtualClock::unwatch(std::uint64_t begin, std::uint64_t end) { page_watch::unwatch(begin, end); }

void VirtualClock::before_inspection() { page_watch::open_all(); }

void VirtualClock::finish() {
  if (finished_) return;
  come_in();
  do_all();
  page_watch::stop();
  const bool last = turns_.is_last();
  turns_.finish();
  finished_ = true;
  const Inexactness found = inexactness();
  if (recorder_ != nullptr) recorder_->write(machine_, found);
  if (last) report(found);
  unlock();
}

Inexactness VirtualClock::inexactness() const {
  const BoardHeader& h = shared_->board().header;
  return {.outside = h.overtaken.load(std::memory_order_relaxed),
          .merged = shared_->links().merged(),
          .late = h.late.load(std::memory_order_relaxed)};
}

// A run that is not exact says so.
void VirtualClock::report(const Inexactness& found) const {
  const BoardHeader& h = shared_->board().header;
  log::info("virtual time: {} turns, {} tasks, {} operations recorded", h.turns.load(), h.tasks.load(),
            h.operations.load());
  if (ahead_ != 0) {
    log::info("virtual time, optimistic: {} late events", found.late);
    if (recorder_ == nullptr)
      log::warn(
          "virtual time, optimistic: whether this run is exact is not known without `orrery run`, which "
          "counts conflicts");
  }
  if (found.none()) return;
  log::warn(
      "virtual time: this run is not exact: {} times a PE was outside the clock, {} intervals of links "
      "were united, {} events were late",
      found.outside, found.merged, found.late);
}

}  // namespace orrery::clock
