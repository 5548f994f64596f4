// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

// A system call that is entered only while a word in memory has a certain value, with nothing between the
// look and the kernel: a thread that is preempted, stopped or sent a signal in between starts again with the
// look, however long it was away (restartable sequences, rseq(2), as glibc registers them for every thread).
// A thread that changes the word, and then finds this thread not running and not in the kernel, knows that
// the call will not be made any more.
namespace orrery {

// Whether the calling thread can: x86-64, Linux 4.18, glibc 2.35, and neither switched off
// (glibc.pthread.rseq=0) nor refused by the kernel (a sandbox, valgrind).
bool can_call_while();

struct CallWhile {
  enum class Outcome {
    called,       // `result` is the kernel's: a count, or -errno
    changed,      // the word has another value; nothing was called
    interrupted,  // again and again (a debugger that steps through it): nothing was called
  };
  Outcome outcome;
  long result = 0;
};

// Makes the system call `number` while `word` is `expected`. REQUIRES: can_call_while(). Any thread; not
// blocking but for the call. The look is an acquiring load.
CallWhile call_while(const std::atomic<std::uint64_t>& word, std::uint64_t expected, long number,
                     const std::array<std::uint64_t, 6>& arguments);

}  // namespace orrery
