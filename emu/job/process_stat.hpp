// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <string_view>

#include <sys/types.h>

// What /proc says about a process.
namespace orrery::job {

struct ProcessStat {
  bool exists = false;           // there is such a process and it is not a zombie
  char state = '?';              // as in proc(5): R, S, D, T, t, Z ...
  std::uint64_t start_time = 0;  // clock ticks since boot; with the pid it names a process for ever
  bool known = true;  // false: /proc could not be read (none, or descriptors used up); exists is true then

  // Whether it is the process that began at `start` (0: it could not tell itself). Where that is unknown, it
  // is: a death may be seen late, but is never made up.
  bool is_from(std::uint64_t start) const { return exists && (!known || start == 0 || start_time == start); }
};

// Of a process that /proc does not show, the kernel is asked by pidfd_open(2) and kill(2).
ProcessStat process_stat(pid_t pid);

// Parses the content of /proc/PID/stat. exists is false when it is not one.
ProcessStat parse_process_stat(std::string_view text);

// "running", "sleeping", "stopped", ...
std::string_view process_state_name(char state);

// Whether every thread of the process is stopped by a signal: none is in a system call. False when that is
// unknown.
bool is_stopped(pid_t pid);

// Whether there was a moment, in this call, at which every thread of this process but the calling one slept
// in a system call, and every thread of the process `and_of` too (0: of none). So none of them was about to
// wake another one. False when that is not known of this process; of another one, of another user say, it is
// taken for granted.
bool other_threads_sleep(pid_t and_of = 0);
// Whether a debugger, or another tracer, is told of the signals of this process, where /proc tells.
bool is_traced();

// A mark of such a moment of this process and its children: the same mark again means that no thread of
// theirs has run in between but the calling one and the runtime's own (named orrery-...). 0: there was none.
std::uint64_t others_at_rest();

// Number of this process's pid namespace; 0 when it cannot be read. Pids of another one mean nothing here.
std::uint64_t pid_namespace();
std::uint64_t network_namespace();

}  // namespace orrery::job
