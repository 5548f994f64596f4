// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "tools/orrery/run/guardian.hpp"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/types.h>

// A PE as an operating system's process: how its starter (the launcher, or its agent on another host)
// makes it, and clears up behind it.
namespace orrery::tool {

// What a process is started with. Descriptors stay the caller's; they need not be inheritable.
struct ChildStart {
  std::string program;               // path
  std::vector<std::string> command;  // argv
  int input = -1;                    // -1: nothing to read
  int out = -1;                      // -1: the caller's own
  int err = -1;
  sigset_t signal_mask{};
  std::uint64_t descriptor_limit = 0;  // soft limit; 0: the caller's
};

// Starts a process as leader of a group of its own, which `guardian` watches before the program runs; it dies
// with the calling one. `prepare` runs in it before the program. Returns its pid, and in `error` the errno of
// an exec that failed, else 0; -1 (errno) when no process could be made.
pid_t start_child(const ChildStart& start, const std::function<void()>& prepare, Guardian& guardian,
                  int* error);

// A PE: what it is told by its environment.
struct PeStart : ChildStart {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;  // among those of its node
  std::uint32_t local_size = 1;
  std::vector<std::pair<std::string, std::string>> variables;
  int pmi = -1;                       // its end of the PMI-1 wire
  int directory = -1;                 // the host directory; -1: it looks for one itself
  std::optional<std::uint32_t> core;  // the core it is bound to, among those allowed here
};

// As start_child().
pid_t start_pe_process(const PeStart& start, Guardian& guardian, int* error);

// Where execvp() would find a program of that name; empty when nowhere.
std::string find_program(const std::string& name);

// The children of this process; none where the kernel does not tell.
std::vector<pid_t> children();

// Takes in the children that have ended. Of each that `leads` says is the leader of a group of ours, what it
// left in its group is killed and `guardian` is told, while its number cannot be another's; then `ended`
// hears of it, with what waitpid gave.
void reap_children(Guardian& guardian, const std::function<bool(pid_t)>& leads,
                   const std::function<void(pid_t, int)>& ended);

// Kills the children of this process that are not in `keep`: descendants of PEs that left their groups, which
// this process, a subreaper, was given as orphans. A child from before the first PE belongs in `keep`: a
// shell that executes us leaves us what it has started, such as tee of `orrery run ... > >(tee log)`.
void sweep_descendants(std::span<const pid_t> keep);

// Blocks those of `signals` that this process heeds, for a signalfd: what it was started to ignore (SIGHUP
// under nohup, SIGINT in a script's background) it goes on ignoring, though a blocked signal is never
// ignored. SIGCHLD is heeded always: where it is ignored the kernel reaps children, and their end goes
// unseen. Returns what is blocked; `before`: the mask until now.
sigset_t take_signals(std::initializer_list<int> signals, sigset_t* before);

// Exit code of a process as shells have it, from waitpid's status: 128 + n for signal n.
int exit_code_of(int status);

// Exit code of a job that ran out of time, as timeout(1) has it.
inline constexpr int kExitTimeout = 124;

// Number from which on descriptors that PEs inherit are made: shell scripts use small ones for their own.
inline constexpr int kInheritedFrom = 64;

}  // namespace orrery::tool
