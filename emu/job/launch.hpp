// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace orrery::job {

// What started this process.
enum class LaunchKind : std::uint8_t {
  singleton,
  pmi1,
  pmix,
  slurm,     // srun that serves no PMI
  unserved,  // one of several processes, whose way to the launcher is not here
};

// What the environment says about the launch. A value; reads only, communicates with no process.
struct Launch {
  using GetEnv = const char* (*)(const char* name);
  // What is asked about the end of a wire, to tell an inner launcher from one around it.
  struct Probe {
    // The process that made the socket open at that number here; 0: it cannot be told; nothing: there is no
    // Unix socket.
    std::optional<pid_t> (*maker_of)(int fd);
    // A variable of another process's environment; nothing: that process may not be looked at.
    std::optional<std::string> (*variable_of)(pid_t pid, const char* name);
  };
  static const Probe kOfProcess;

  LaunchKind kind = LaunchKind::singleton;
  int pmi_fd = -1;      // pmi1: the descriptor of the text wire
  int rank = -1;        // -1: unknown
  int size = -1;        // -1: unknown
  int local_size = -1;  // processes of the job on this host; -1: unknown
  // `orrery run`: descriptor of the host directory; -1: none. Of a process whose descriptors were closed on
  // the way to it the number is open for something else, or not at all: the directory is had at `entrance`
  // then.
  int directory_fd = -1;
  std::string entrance;  // `orrery run`: where it listens (entrance.hpp); empty: nowhere
  std::string pmi_at;    // its agent on this host, which gives out PMI alone; empty: there is none
  // pmix: the launcher's server on this host, which all its processes name; empty: unknown.
  std::string server;
  // unserved: the variable that says so.
  std::string sign;

  // In this order: PMI_FD, PMIX_NAMESPACE, SLURM_PROCID with more than one task, PMI_PORT or a size of more
  // than one; else a singleton. Of two launchers, one inside the other, the inner one counts: PMI_FD is of
  // the outer one when it is not open here, or when the process that serves it does not itself run under the
  // PMIX_NAMESPACE that is set here; `orrery run` hands on nothing of a launcher around it. Errors:
  // invalid_param (a variable that should hold a number does not; the log names it).
  static Result<Launch> detect(GetEnv get_env, const Probe& probe = kOfProcess);
  // What stands in the way of PMI in this launch: a line that names the launcher and what to use instead;
  // none when PMI works. Never is a process of a larger job taken for rank 0 of 1.
  std::optional<std::string> pmi_problem() const;
};

}  // namespace orrery::job
