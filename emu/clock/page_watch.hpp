// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>

// Programs that wait by reading memory make no call, so nothing would tell the clock that they wait. This
// unit finds a loop that can only end when another thread writes, and lets it wait in virtual time.
//
// A program that has used processor time without a call has its registered pages taken away (mprotect). Each
// access to them then traps and is let through by a single step. The same instruction at the same address
// with the same registers twice is a loop that makes no progress by itself: it waits until something happens
// to this PE. The page that it reads stays watched from then on.
//
// Threads: watch() and unwatch() from any; the rest happens on the program's thread, in signal handlers.
// Invariants: (1) what the handlers read lies in static memory, so pages that they need are never watched by
// mistake for long: an access by anything but the program opens the page. (2) an access that is not part of
// such a loop is carried out exactly once, and no time passes for it. (3) an access fails for good only if
// what is in its way is not ours, however many accesses of how many threads found pages closed before.
// LIMITATIONS: x86-64; memory in the memory file alone, up to 1 TiB a registration; a loop that counts its
// looks is taken for one that waits after kSameSite looks in a row; a system call that is handed a watched
// page fails with EFAULT.
namespace orrery::clock {

class VirtualClock;

namespace page_watch {

// Starts watching on behalf of the calling thread. No effect on other processors than x86-64.
void start(VirtualClock* clock);
// Peers may write [begin, end), page aligned, from now on; so may the program: it is given back as that.
void watch(std::uint64_t begin, std::uint64_t end);
void unwatch(std::uint64_t begin, std::uint64_t end);
// Every page is accessible, and stays so for a moment; called before memory is looked at or unwatch()ed.
void open_all();
// Every page is accessible from now on: code that reads memory after the program's end (a leak checker) has
// no loop to be found.
void stop();
// The program comes into the clock, and goes on.
void program_calls();
void program_goes_on();
// How many loops were made to wait.
std::uint64_t waits();

}  // namespace page_watch
}  // namespace orrery::clock
