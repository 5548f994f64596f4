// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// `orrery run --via LAUNCHER`: the PEs are another launcher's, and find what `orrery run` would have given
// them.
namespace orrery::tool {

struct ViaOptions {
  std::vector<std::string> launcher;  // its program, and options of its own
  std::uint32_t pes = 1;
  bool has_virtual_time = false;
  // What the command line sets for the PEs.
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> command;  // argv
};

// Splits the value of --via at blanks. The line to show when it names no program, else empty.
std::string read_launcher(const std::string& words, std::vector<std::string>* launcher);

// Starts `LAUNCHER -n PES env VARIABLES COMMAND` and waits for it. The PEs get, besides `variables`: the
// folders of this Orrery's libraries before the others in LD_LIBRARY_PATH; the domain of a job of its own
// (PMI_GNI_PTAG, PMI_GNI_COOKIE); under virtual time liborrery.so in LD_PRELOAD. The launcher itself gets
// what Open MPI needs (OMPI_MCA_...), where the environment does not say it already. SIGTERM and SIGHUP are
// handed on. Returns the launcher's exit code, 128 + n for signal n; kExitUsage, with a line on stderr, when
// the libraries are not found. Changes this process's environment: not thread-safe.
int run_via(const ViaOptions& options);

}  // namespace orrery::tool
