// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace orrery::job {

// Who started this process.
enum class LaunchKind : std::uint8_t {
  singleton,
  pmi1,
  pmix,
  slurm,     // srun that serves no PMI
  unserved,  // one of several processes, whose way to the launcher is not here
};

// What the environment says about the launch. A value; reads only, speaks to nobody.
struct Launch {
  using GetEnv = const char* (*)(const char* name);

  LaunchKind kind = LaunchKind::singleton;
  int pmi_fd = -1;        // pmi1: the descriptor of the text wire
  int rank = -1;          // -1: unknown
  int size = -1;          // -1: unknown
  int local_size = -1;    // processes of the job on this host; -1: unknown
  int directory_fd = -1;  // `orrery run`: descriptor of the host directory; -1: none
  // pmix: the launcher's server on this host, which all its processes name; empty: unknown.
  std::string server;
  // unserved: the variable that says so.
  std::string sign;

  // In this order: PMI_FD, PMIX_NAMESPACE, SLURM_PROCID with more than one task, PMI_PORT or a size of more
  // than one; else a singleton. Errors: invalid_param (a variable that should hold a number does not; the log
  // names it).
  static Result<Launch> detect(GetEnv get_env);
  // What stands in the way of PMI in this launch: a line that names the launcher and what to use instead;
  // none when PMI works. Never is a process of a larger job taken for rank 0 of 1.
  std::optional<std::string> pmi_problem() const;
};

}  // namespace orrery::job
