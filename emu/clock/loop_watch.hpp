// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <atomic>
#include <cstdint>

#include <ucontext.h>

// Finds a loop that reads memory which no peer can write through the NIC: memory that processes share, a flag
// of another thread's, a descriptor that does not block. page_watch sees nothing of it.
//
// A program that has used processor time for long without a call is single-stepped for a while. A loop of
// which several rounds have the same general registers after each instruction, and the same vector registers
// at their end, computes nothing: what ends it comes from elsewhere. When it is found again at the same place
// a moment later, with every other thread of the process asleep, the program waits, as one that looks in
// memory, and looks once more after each wait.
//
// Threads: the program's, in signal handlers.
// Invariants: (1) no step is made into a call of the clock's, nor over a system call that a step would harm,
// nor in a child process. (2) a program that computes is left alone for twice as long after each try.
// LIMITATIONS: x86-64; a loop that counts its looks, or is longer than kSteps / 2 instructions, is not found.
namespace orrery::clock {

class VirtualClock;

namespace loop_watch {

// A millisecond of processor time has passed; `calls` of the program's have been made so far. True: it is
// time for a try.
bool tick(std::uint64_t calls);
// The program of that context, which is interrupted, is stepped from now on.
void begin(std::uint64_t calls, ucontext_t& context);
// Whether it is.
bool steps();
// A millisecond of processor time has passed while it is: where no step was made in many there are none.
void tick_in_steps(ucontext_t& context);
// A step of it is done. `inside`: it is in a call of the clock's.
void step(VirtualClock& clock, const std::atomic<std::uint64_t>& calls, bool inside, ucontext_t& context);
// In a child process: no steps.
void end(ucontext_t& context);
// How many loops were made to wait.
std::uint64_t waits();

}  // namespace loop_watch
}  // namespace orrery::clock
