// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/loop_watch.hpp"

#include "emu/clock/virtual_clock.hpp"
#include "emu/job/process_stat.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <signal.h>
#include <sys/syscall.h>

namespace orrery::clock::loop_watch {

#if defined(__x86_64__)

namespace {

constexpr std::uint32_t kSteps = 1024;  // without a loop: the program computes
// Rounds of a loop, all the same: more than a counter in memory has without another parity of its low byte.
constexpr std::uint32_t kRounds = 8, kStepsOfRounds = 8192;
constexpr std::uint32_t kFirstPatience = 16, kShortPatience = 4, kLongestPatience = 1024;  // ticks
constexpr std::uint32_t kTicksWithout = 32;  // a step: there are none
constexpr greg_t kTrapFlag = 0x100, kResumeFlag = 0x10000;
constexpr std::size_t kGeneral = 18;        // they stand first in a context: up to the flags
constexpr std::size_t kMostVector = 4096;   // bytes; AVX-512 has 2,696
constexpr std::size_t kLegacyVector = 512;  // of them, what each processor has
// Of the last of those: what the kernel says of the rest (struct _fpx_sw_bytes).
constexpr std::size_t kSaysAt = 464, kSizeAt = kSaysAt + 16;
constexpr std::uint32_t kSaysSize = 0x46505853;

// All registers at one instruction.
struct Registers {
  std::array<greg_t, kGeneral> general;
  alignas(64) std::array<std::byte, kMostVector> vector;
  std::size_t vector_bytes;
};

std::array<greg_t, kGeneral> general_of(const mcontext_t& machine) {
  std::array<greg_t, kGeneral> general;
  std::copy_n(machine.gregs, general.size(), general.begin());
  general[REG_EFL] &= ~(kTrapFlag | kResumeFlag);
  return general;
}

// 0: there are more than are compared.
std::size_t vector_bytes(const std::byte* vector) {
  std::uint32_t says = 0, bytes = 0;
  std::memcpy(&says, vector + kSaysAt, sizeof says);
  std::memcpy(&bytes, vector + kSizeAt, sizeof bytes);
  if (says != kSaysSize) return kLegacyVector;
  return bytes >= kLegacyVector && bytes <= kMostVector ? bytes : 0;
}

void keep(const mcontext_t& machine, Registers& into) {
  const auto* const vector = reinterpret_cast<const std::byte*>(machine.fpregs);
  into.general = general_of(machine);
  into.vector_bytes = vector_bytes(vector);
  std::memcpy(into.vector.data(), vector, into.vector_bytes);
}

bool are(const Registers& kept, const mcontext_t& machine) {
  const auto* const vector = reinterpret_cast<const std::byte*>(machine.fpregs);
  return kept.general[REG_RIP] == machine.gregs[REG_RIP] && kept.general == general_of(machine) &&
         kept.vector_bytes != 0 && kept.vector_bytes == vector_bytes(vector) &&
         std::memcmp(kept.vector.data(), vector, kept.vector_bytes) == 0;
}

// The program's way from one instruction back to it. What it loads, or computes out of memory, is in its
// registers or flags somewhere on the way.
class Way {
 public:
  void begin(const mcontext_t& machine) {
    keep(machine, from_);
    start(true);
  }
  // From the same instruction, which it has yet to come to.
  void begin_again() { start(false); }
  // After each step: whether it is there again, with the same registers.
  bool comes_round(const mcontext_t& machine) {
    for (const greg_t one : general_of(machine))
      way_ = (way_ ^ static_cast<std::uint64_t>(one)) * 0x9e3779b97f4a7c15u + (way_ >> 29);
    if (!are(from_, machine)) return false;
    if (!std::exchange(is_there_, true))
      rounds_ = 0;
    else if (rounds_ != 0 && way_ == first_)
      ++rounds_;
    else
      rounds_ = 1, first_ = way_;
    way_ = 0;
    return true;
  }
  // Those that were the same, all the way.
  std::uint32_t rounds() const { return rounds_; }

 private:
  void start(bool is_there) {
    is_there_ = is_there;
    rounds_ = 0;
    way_ = 0;
  }
  Registers from_{};
  bool is_there_ = false;
  std::uint32_t rounds_ = 0;
  std::uint64_t way_ = 0, first_ = 0;  // all general registers of a round, in one number
};

// A look at what another process may bring.
bool may_bring(greg_t system_call) {
  constexpr std::array kCalls = {SYS_read, SYS_pread64, SYS_readv, SYS_recvfrom, SYS_recvmsg, SYS_wait4};
  return std::ranges::find(kCalls, system_call) != kCalls.end();
}
// That, or one that changes nothing.
bool only_looks(greg_t system_call) {
  constexpr std::array kLooks = {SYS_stat, SYS_fstat,  SYS_lstat,   SYS_access, SYS_lseek,
                                 SYS_kill, SYS_getpid, SYS_getppid, SYS_gettid, SYS_newfstatat};
  return may_bring(system_call) || std::ranges::find(kLooks, system_call) != kLooks.end();
}

// Whether the next instruction is to be made without a step: one that would leave the flag for steps where
// nothing takes it away (in a child, on the stack), or that blocks the signal of the step's end, which
// is the process's end then.
bool steps_would_harm(const mcontext_t& machine) {
  constexpr std::uint64_t kPage = 4096;
  const auto at = static_cast<std::uint64_t>(machine.gregs[REG_RIP]);
  const auto* const code = reinterpret_cast<const unsigned char*>(at);
  const unsigned first = code[0];
  if (first == 0x9c || first == 0xcd) return true;  // pushf, int
  if (first != 0x0f) return false;
  if (at % kPage == kPage - 1) return true;  // the next byte may not be there
  return code[1] == 0x34 || (code[1] == 0x05 && !only_looks(machine.gregs[REG_RAX]));  // sysenter, syscall
}

// Whether the next instruction is a system call that may bring something.
bool asks(const mcontext_t& machine) {
  const auto* const code = reinterpret_cast<const unsigned char*>(machine.gregs[REG_RIP]);
  return code[0] == 0x0f && code[1] == 0x05 && may_bring(machine.gregs[REG_RAX]);
}

struct State {
  bool steps = false;
  bool asked = false;  // the step was such a call
  // It was found, and is to be found again a tick later, from the same instruction; then it waits, each time
  // that it comes round.
  bool found = false, waits = false;
  std::uint32_t made = 0, made_at_tick = 0, ticks_without = 0;  // steps
  std::uint32_t ticks = 0;                                      // since the last call or try
  std::uint64_t calls_at_tick = 0, calls_at_begin = 0;
  std::uint32_t patience = kFirstPatience;  // ticks before a try
  Way way;
  std::atomic<std::uint64_t> waits_made{0};
};
State g;

void stop(ucontext_t& context) {
  context.uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  g.steps = false;
}

// The program computes, or did something else than look.
void give_up(ucontext_t& context) {
  stop(context);
  g.found = false;
  if (!g.waits) g.patience = std::min(g.patience * 2, kLongestPatience);
  g.waits = false;
}

}  // namespace

bool tick(std::uint64_t calls) {
  if (calls != g.calls_at_tick) {
    g.calls_at_tick = calls;
    g.ticks = 0;
    g.found = false;
    return false;
  }
  return ++g.ticks >= (g.found ? 1 : g.patience);
}

void begin(std::uint64_t calls, ucontext_t& context) {
  // The signal of a step's end, blocked, is the process's end; and a debugger takes it for its own.
  if (sigismember(&context.uc_sigmask, SIGTRAP) != 0 || (!g.found && job::is_traced())) {
    g.ticks = 0;
    g.patience = kLongestPatience;
    return;
  }
  g.steps = true;
  g.waits = g.asked = false;
  g.made = 0;
  g.ticks_without = 0;
  g.ticks = 0;
  g.calls_at_begin = calls;
  if (g.found)
    g.way.begin_again();
  else
    g.way.begin(context.uc_mcontext);
  context.uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
}

bool steps() { return g.steps; }

void tick_in_steps(ucontext_t& context) {
  if (std::exchange(g.made_at_tick, g.made) != g.made) g.ticks_without = 0;
  if (++g.ticks_without < kTicksWithout) return;
  // The flag was set in a copy of the context (a sanitizer hands signals on later), or has no effect here.
  stop(context);
  g.found = g.waits = false;
  g.patience = kLongestPatience;
}

void step(VirtualClock& clock, const std::atomic<std::uint64_t>& calls, bool inside, ucontext_t& context) {
  mcontext_t& machine = context.uc_mcontext;
  if (inside || calls.load(std::memory_order_relaxed) != g.calls_at_begin || steps_would_harm(machine) ||
      !clock.is_leader())
    return give_up(context);
  // It was brought something, as by each read of a file: no loop that waits.
  if (std::exchange(g.asked, asks(machine)) && machine.gregs[REG_RAX] > 0) return give_up(context);
  if (g.way.comes_round(machine) && (g.waits || g.way.rounds() >= kRounds)) {
    if (!g.waits) {
      if (!g.found) {
        g.found = true;
        return stop(context);
      }
      // What it looks for may be the business of a thread that runs.
      if (!job::other_threads_sleep()) return give_up(context);
      g.waits = true;
      g.found = false;
      g.patience = kShortPatience;
      g.waits_made.fetch_add(1, std::memory_order_relaxed);
    }
    const int saved = errno;
    (void)clock.wait_for_store(true);
    errno = saved;
    g.calls_at_begin = calls.load(std::memory_order_relaxed);
    g.made = 0;
    g.ticks_without = 0;
    return;
  }
  const bool goes_round = g.way.rounds() != 0;
  if (++g.made > (goes_round ? kStepsOfRounds : kSteps)) return give_up(context);
  // Instructions to come back to, of ever later steps: so that a loop of any length is found.
  if (!g.found && !g.waits && !goes_round && std::has_single_bit(g.made)) g.way.begin(machine);
}

void end(ucontext_t& context) { stop(context); }

std::uint64_t waits() { return g.waits_made.load(std::memory_order_relaxed); }

#else

bool tick(std::uint64_t) { return false; }
void begin(std::uint64_t, ucontext_t&) {}
bool steps() { return false; }
void tick_in_steps(ucontext_t&) {}
void step(VirtualClock&, const std::atomic<std::uint64_t>&, bool, ucontext_t&) {}
void end(ucontext_t&) {}
std::uint64_t waits() { return 0; }

#endif

}  // namespace orrery::clock::loop_watch
