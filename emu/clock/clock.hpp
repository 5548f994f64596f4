// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/units.hpp"
#include "emu/base/wait.hpp"
#include "emu/model/operation.hpp"
#include "emu/model/routing.hpp"

#include <cstdint>
#include <optional>

// When an operation counts as having got there: what emu/nic asks of a clock. Raw time has no clock at all
// (a null pointer), so it costs nothing. docs/timing.md has the rules.
namespace orrery::clock {

enum class Kind : std::uint8_t { raw = 0, paced = 1, virtual_time = 2 };

// One operation as the machine is asked about it.
struct Operation {
  model::Op op = model::Op::fma_put;
  model::Routing routing = model::Routing::adaptive_0;
  std::uint32_t target = 0;  // process slot of the target
  std::uint64_t bytes = 0;
  Picos not_before;          // it starts then at the earliest (a fence); the processor is not held for it
  bool uncontended = false;  // takes no link and no processor time: credits that ride on other packets
};

// Points in the clock's time.
struct Times {
  Picos turn_at;          // gets and fetching AMOs: the target's memory is read
  Picos data_at;          // data visible at its destination
  Picos remote_event_at;  // event in the target's queue
  Picos local_event_at;   // event in the initiator's queue
};

// Something that is done at a point in time, on behalf of this process. Owns itself from schedule() on.
class Task {
 public:
  // May schedule itself again. Not blocking, but for answers of a peer's service thread.
  virtual void run() = 0;

 protected:
  ~Task() = default;
};

// Whose business a task is. What concerns its own process alone (an event in a queue that only its own posts
// fill) cannot be seen before that process's program goes on, and is done then at the latest. What concerns
// its node (memory of its own changes) is as good as that unless other PEs are on that node and may share it.
enum class Concerns : std::uint8_t { others = 0, itself = 1, its_node = 2 };

// The clock of one process. Threads: the program's thread that uses the NIC; paced also a thread of its own,
// which runs tasks. Invariants: (1) tasks run in order of their times, and tasks of one time in the order of
// schedule(); (2) now() never goes back.
// Usage: clock->enter(); auto t = clock->start(op); clock->schedule(t.data_at, task, all); clock->leave();
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Kind kind() const = 0;
  bool is_virtual() const { return kind() == Kind::virtual_time; }

  virtual Picos now() = 0;
  // What CLOCK_MONOTONIC tells the program at now(), in ns.
  virtual std::int64_t program_ns() { return monotonic_ns(); }
  // What start() to leave() do is one call of the program's. start() prices the operation as begun now;
  // leave() lets the processor time that it takes pass.
  virtual void enter() = 0;
  virtual Times start(const Operation& operation) = 0;
  virtual void schedule(Picos at, Task* task, Concerns concerns) = 0;
  // A task whose effect is on the node of that process, and nowhere else: done at its time for all PEs that
  // can see it. Of an operation: not sooner than the machine's least latency from when it begins.
  virtual void schedule_there(Picos at, Task* task, std::uint32_t process_slot) = 0;
  // Everything that is to happen on the node of that process by now has happened.
  virtual void settle(std::uint32_t process_slot) = 0;
  virtual void leave() = 0;
  // What a collective of the job's PEs takes on the machine, entered by all at once.
  virtual Picos collective_time(model::Collective collective, std::uint64_t bytes) = 0;

  // Where that process stands in the job: of two at one time the one with the smaller number comes first.
  // Slots are taken in whatever order the host starts processes.
  virtual std::uint32_t place_of(std::uint32_t process_slot) const { return process_slot; }

  // Something of that process has changed at this moment: waiters there look again.
  virtual void touch(std::uint32_t process_slot) = 0;
  // The same of something that a program looks for only where it waits for nothing else: a credit has come
  // back.
  virtual void stir(std::uint32_t process_slot) { touch(process_slot); }
  // The same for every process of the job.
  virtual void touch_all() = 0;

  // The program looked at `source` (an address that tells it from others) for something that is not there.
  // Lets the time pass that a look takes; where the program can only wait, until something happens to this
  // process.
  virtual void idle(const void* source) = 0;
  // Right after idle(): what the program looked for was there.
  virtual void found() {}
  // A datagram has come, and the program looks for one: whether the program is not to see it yet. Any thread.
  virtual bool holds_back_datagram() { return false; }
  // The program has taken one. Any thread.
  virtual void datagram_taken() {}
  // Waits until something happens to this process (true) or `deadline` comes (false). Virtual time only.
  virtual bool wait(std::optional<Picos> deadline) = 0;

  // A barrier that is not the NIC's (the launcher's): every PE of the job arrives once, and goes on when the
  // last one has, at its time. barrier_arrive() when it has been entered; barrier_wait() returns when all
  // have and, under virtual time, what the machine takes for it has passed; paced time has no common moment
  // of the last arrival to count it from.
  virtual void barrier_arrive() = 0;
  virtual void barrier_wait(Picos takes) = 0;

  // From hold() to let_go() this PE waits, in real time, for a thread that needs no PE's turn to answer (the
  // launcher, a service thread): it keeps its turn, however long that takes, and the thread has real time
  // meanwhile. Any thread, the same for both; may be nested.
  virtual void hold() {}
  virtual void let_go() {}

  // Peers may write [begin, end) of this process's memory from now on, directly; or no more.
  virtual void watch(std::uint64_t begin, std::uint64_t end) = 0;
  virtual void unwatch(std::uint64_t begin, std::uint64_t end) = 0;
  // `look` is called when something has happened to this PE while its program waits without a call.
  virtual void set_look(void (*look)(void*), void* argument) = 0;
  // The mappings of this process are about to be looked at.
  virtual void before_inspection() = 0;

  // Threads of this process that wait in the clock look again: what they wait for has come some other way.
  virtual void rouse() {}

  // Everything that this process has scheduled is done; it takes no further part. Once, at its end.
  virtual void finish() = 0;
};

// Clock::hold() while it lives; nothing without a clock.
class RealWait {
 public:
  explicit RealWait(Clock* clock) : clock_(clock) {
    if (clock_ != nullptr) clock_->hold();
  }
  ~RealWait() {
    if (clock_ != nullptr) clock_->let_go();
  }
  RealWait(const RealWait&) = delete;
  RealWait& operator=(const RealWait&) = delete;

 private:
  Clock* const clock_;
};

}  // namespace orrery::clock
