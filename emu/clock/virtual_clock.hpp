// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/agenda.hpp"
#include "emu/clock/board.hpp"
#include "emu/clock/clock.hpp"
#include "emu/clock/looks.hpp"
#include "emu/clock/record.hpp"
#include "emu/clock/shared_clock.hpp"
#include "emu/clock/thread_waits.hpp"
#include "emu/clock/waiters.hpp"

#include <atomic>
#include <memory>
#include <mutex>

namespace orrery::clock {

// Virtual time, conservatively: the PEs of the job take turns in the order of their times, so that every
// operation is begun, every link taken and every event delivered in the order of time, whatever the hosts'
// processors do. Wall time does not matter.
//
// Threads: any. One of them makes time pass, the one that joined. While it waits for another thread, the next
// one that looks or waits here takes its place; and when it has slept in something else for a moment, with no
// other thread running, one that waits here. The others wait in waiters_:
// they look when something has happened to the PE, and at the end of their waits, at that very time, before
// the one that makes time pass goes on. What they post is posted at the time of the PE; for one that posts
// without having been let look, the PE takes a turn at whatever time the job has reached: not exact, and
// counted.
// Invariant: while the program runs, everything on its node that is due by now() has been done, by one
// PE or another.
class VirtualClock final : public Clock, private Debtor {
 public:
  // `record`: what the run did is written to `record`.PE in the end; empty: it is not.
  VirtualClock(std::unique_ptr<SharedClock> shared, const Choice& choice, const WaitBudget& budget,
               std::uint32_t process_slot, const std::string& record);

  Kind kind() const override { return Kind::virtual_time; }
  // Any thread, also while another is in the clock.
  Picos now() override {
    return Picos{std::atomic_ref(now_).load(std::memory_order_relaxed) +
                 std::atomic_ref(owed_looks_).load(std::memory_order_relaxed)};
  }
  std::int64_t program_ns() override;
  void enter() override;
  Times start(const Operation& operation) override;
  void schedule(Picos at, Task* task, Concerns concerns) override;
  void schedule_there(Picos at, Task* task, std::uint32_t process_slot) override;
  void settle(std::uint32_t process_slot) override;
  void leave() override;
  Picos collective_time(model::Collective collective, std::uint64_t bytes) override;
  std::uint32_t place_of(std::uint32_t process_slot) const override {
    return shared_->board().pe_of_process[process_slot].load(std::memory_order_acquire);
  }
  void touch(std::uint32_t process_slot) override;
  void touch_all() override;
  void stir(std::uint32_t process_slot) override;
  void idle(const void* source) override;
  void found() override;
  bool holds_back_datagram() override;
  void datagram_taken() override;
  bool wait(std::optional<Picos> deadline) override;
  void barrier_arrive() override;
  void barrier_wait(Picos takes) override;
  void hold() override;
  void let_go() override;
  void watch(std::uint64_t begin, std::uint64_t end) override;
  void unwatch(std::uint64_t begin, std::uint64_t end) override;
  void before_inspection() override;
  void rouse() override;
  // `work` is called, without the clock's lock, when something has happened to this PE while its program
  // computes, sleeps, waits for what comes from outside, or is in the launcher's barrier: a NIC that works
  // by itself goes on there, at that time. It may begin operations. No other call of the clock's calls it.
  void set_work(void (*work)(void*), void* argument) {
    work_ = work;
    work_argument_ = argument;
  }
  // The processor time that the program has used since its last call passes (Compute::measured), and the work
  // that comes meanwhile is done at its time. A library whose NIC works by itself begins its calls with it.
  void compute_passes();
  void set_look(void (*look)(void*), void* argument) override {
    look_ = look;
    look_argument_ = argument;
  }
  void finish() override;

  // Whether the calling thread is in a call of a virtual clock's, or holds one: what reads the time from in
  // there (an allocator, the launcher's library) is not the program.
  static bool is_inside();

  // ---- what the program's own clock calls ask for ----
  // The time; a look at the clock that follows many others with nothing in between waits a moment.
  Picos read();
  // The program waits, without a limit, for something that may come from outside: returns when it is to look
  // for it, at once or when something has happened to this PE, or nothing happens to any.
  void idle_outside();
  // Whether the calling thread is the one that makes time pass.
  bool is_leader() const { return leader_.load(std::memory_order_relaxed) == own_tid(); }
  // Whether the calling thread has been in the clock of this process beside the one that makes time pass, or
  // has been that one.
  static bool knows_thread();
  // `call` is called by each thread that becomes known so, once.
  static void tell_of_threads(void (*call)());
  // ---- threads that wait for one another, in calls of pthreads or C11 ----
  // The calling thread waits for another one, at `on`: an object, or a thread. Followed by end_thread_wait().
  void begin_thread_wait(const void* on);
  void end_thread_wait(const void* on) { thread_waits_.end(on); }
  // One thread that waits there is woken, or all of them.
  void wake_threads(const void* on, bool all) { thread_waits_.wake(on, all); }
  // Whether a thread that was woken has not waited again. A snapshot.
  bool any_awake() const { return thread_waits_.awake() != 0; }
  // ---- threads that the program creates ----
  // One is being created: awake from now on. Returns ThreadStart::awake.
  std::uint64_t thread_is_created() { return thread_waits_.create(); }
  void thread_is_not_created(std::uint64_t awake) { thread_waits_.create_failed(awake); }
  // The calling thread, which was created so, ends.
  void new_thread_ends() { thread_waits_.sleeps_again(); }
  // Whether the calling thread's waits for others count: knows_thread(), or it was created so.
  bool counts_thread() { return knows_thread() || is_leader() || thread_waits_.is_new(); }
  // The calling thread ends.
  void thread_ends();
  // Looks in vain that the leader has made, but for free ones. The leader.
  std::uint64_t looks_made() const { return looks_made_; }
  // The program sleeps for so long between looks in vain. As sleep_until(); one that does nothing else waits
  // for something to happen, and sleeps on to the end of a sleep then.
  void nap(Picos duration);
  // Returns when that time has come.
  void sleep_until(Picos at);
  // From now on the calling thread is one whose loops without a call are found; once.
  void watch_program();
  // The program polls memory of its own that another PE may write. Returns when something has happened to
  // this PE, or it is to look in real time. Where it is not `surely` so, and time stands still: returns
  // false, and the program goes on, as one that computes.
  bool wait_for_store(bool surely);
  // Runs `body`, which blocks in something that has no virtual time, while the others go on without this PE.
  // It comes back at whatever time they have reached: not exact, and counted.
  template <typename Body>
  auto outside(Body body) {
    step_out();
    const auto result = body();
    step_in();
    return result;
  }

 private:
  void step_out();
  void step_in();
  void lock();
  void unlock();
  static std::int32_t own_tid();
  bool is_helper();
  void note_thread();
  bool takes_lead(std::int32_t from);
  void give_lead();
  bool leads_sleep();
  bool help_wait(std::optional<Picos> deadline, bool looks_outside);
  void knock();
  bool is_alone() const { return !waiters_.any() && knocks_.load(std::memory_order_relaxed) == 0; }
  bool others_may_go_on();
  void let_the_woken_go_on();
  void let_others_look();
  template <typename Done>
  bool stand_aside(Done done);
  void count_overtaken();
  // Something happened to that PE.
  void tell(std::uint32_t process_slot, Touch what);
  Touch take_touch();
  // Whether a program that waits by looking goes on for it.
  bool ends_looking(Touch what) const {
    return what == Touch::news || (what == Touch::data && !data_is_vain_);
  }
  bool is_news() {
    const auto touched = static_cast<Touch>(turns_.self().touched.load(std::memory_order_relaxed));
    return ends_looking(std::max(kept_, touched));
  }
  // `works`: the work may be done here; the caller holds nothing that it takes.
  void come_in(bool looks = false, bool works = false);
  void pass_working(std::int64_t until, WaitsFor why);
  void do_work();
  void pay_looks(bool wakes);
  void take_turn();
  void catch_up();
  bool is_touched();
  void wait_by_looking(std::int64_t until, bool wakes, bool peeks);
  void look_again(const void* source);
  bool shows_datagrams();
  void go_out();
  bool run_until(std::int64_t until, bool wakes, WaitsFor why, bool peeks = false);
  bool pass_until(std::int64_t until, bool wakes, WaitsFor why, bool peeks, bool is_guest);
  void run_due();
  void run_effects(std::int64_t until, bool asked);
  void run_effect(std::uint32_t row);
  void owe(std::uint32_t row);
  void settle_row(std::uint32_t row, std::int64_t until);
  void do_all();
  void pay(std::int64_t until) override { run_effects(until, true); }
  void run(std::int64_t at, Task* task);
  std::int64_t time_of_task() const { return task_at_ != kNever ? task_at_ : now_; }
  std::int64_t quantum() const;
  void something_done();
  void pass_to(std::int64_t at);
  Inexactness inexactness() const;
  void report(const Inexactness& found) const;

  std::mutex mu_;
  std::atomic<std::int32_t> leader_;  // the thread that makes time pass; 0: it waits for another one
  std::atomic<bool> leader_inside_{false};
  std::atomic<bool> has_helpers_{false}, helpers_post_{false};
  // How often a thread beside that one has come, and how often that one has seen it.
  std::atomic<std::uint32_t> helpers_came_{0};
  std::uint32_t helpers_seen_ = 0;
  std::atomic<std::uint32_t> quiet_{0};  // looks in a row at which no thread ran
  Waiters waiters_;                      // the other threads
  ThreadWaits thread_waits_;             // those of all that wait for one another
  // Those of them that want in, to post, while mu_ is taken; and that got in.
  std::atomic<std::uint32_t> knocks_{0}, let_in_{0};
  std::atomic<bool> soon_out_{false};  // the thread that has mu_ waits for the end of its call only
  // Looks in vain beside a thread that is awake, in a row, in one of its spells(), and monotonic_ns() of the
  // first.
  std::uint32_t looks_beside_ = 0, spell_ = 0;
  std::int64_t awake_since_ = 0;
  std::uint64_t at_rest_ = 0;    // job::others_at_rest(), as it was last
  bool looks_unpaid_ = false;    // the time of some has not passed that was to
  Touch kept_ = Touch::nothing;  // what they have seen, and the one that makes time pass has not
  const std::unique_ptr<SharedClock> shared_;
  const Compute compute_;
  const std::int64_t ahead_;          // ps that this PE may run ahead of the others; 0: it does not
  const std::int64_t least_latency_;  // ps; 1 at least
  const std::uint32_t self_;
  Turns turns_;
  const std::string machine_;
  std::unique_ptr<Recorder> recorder_;  // null: no record was asked for
  Agenda agenda_;                       // but for the effects:
  std::vector<Agenda> effects_;         // by row (Owed)
  std::vector<std::int64_t> firsts_;    // when the first of each row is due, all in a few cache lines
  std::size_t effects_left_ = 0;        // of all rows
  std::int64_t task_at_ = kNever;       // when the task that runs was due
  std::int64_t now_ = 0;                // guarded by mu_; now() reads it without, pass_to() alone writes it
  std::int64_t busy_until_ = 0;         // of the call under way
  std::uint64_t operations_ = 0;        // begun; makes the random choices of each its own
  std::int64_t woken_at_ = -1;          // then it sees all that is due at that time, whichever PE did it
  // The row of looks that found nothing.
  Looks looks_;
  std::uint64_t looks_made_ = 0;
  std::int64_t owed_looks_ = 0;     // of looks_, as now() sees it; guarded as now_ is
  Touch touched_ = Touch::nothing;  // what ended run_until() last
  // The program went on for data alone, and has done nothing since; it once waited again then: it looks for
  // the event that follows.
  bool woken_by_data_ = false, data_is_vain_ = false;
  bool peeking_ = false;  // the program looks without the turn
  // The program has looked in real time, or slept between looks: in which round its engine looks for
  // datagrams next is not known any more.
  bool rounds_unknown_ = false;
  std::uint32_t held_back_ = 0;  // looks in a row that would have found a datagram
  bool shown_ = false;           // the next one is not held back
  // Looks at the clock in the same row.
  std::int64_t streak_from_ = 0;
  std::uint32_t clock_looks_ = 0;
  std::uint32_t naps_ = 0;  // in a row, with looks between them
  bool looked_ = false;     // since the last nap
  void (*look_)(void*) = nullptr;
  void* look_argument_ = nullptr;
  void (*work_)(void*) = nullptr;
  void* work_argument_ = nullptr;
  std::once_flag watching_;
  bool finished_ = false;
};

}  // namespace orrery::clock
