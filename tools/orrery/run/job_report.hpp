// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/job/pmi_server.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

// What a launcher says about a job, from what its PMI server has seen and what the launcher knows of the PEs,
// wherever they run.
namespace orrery::tool {

// Between asking a PE to end and killing it.
inline constexpr std::int64_t kGraceNs = 2'000'000'000;

// A line of the launcher's own, to standard error.
void say(const std::string& line);

// The launcher's knowledge of a PE.
struct PeFacts {
  bool exited = false;
  int status = 0;         // as waitpid gives it, once exited
  std::string name;       // "PE 3 (pid 71)"
  std::string place;      // "node 1", "host b"
  std::string doing;      // of one that runs: its state, "running"; may be empty
  std::string waits_for;  // ... and the call that it waits in; may be empty
};
using AskPe = std::function<PeFacts(std::uint32_t rank)>;

// `reason`, then which PEs are missing at which PMI barrier, then a line for each PE, missing ones first.
std::string job_report(const std::string& reason, const job::PmiServer& server, std::uint32_t pes,
                       const AskPe& ask);

// Why PMI says that the job must end: an abort, a client that speaks something else, a barrier that cannot
// end. Asked after every message: the two functions are cheap.
struct PmiTrouble {
  int code = 0;  // the job's exit code
  std::string why;
  bool barrier = false;  // a barrier can never end: a report says which PEs are missing
};
std::optional<PmiTrouble> pmi_trouble(const job::PmiServer& server, std::uint32_t pes,
                                      const std::function<bool(std::uint32_t)>& has_left,
                                      const std::function<std::string(std::uint32_t)>& name_of);

}  // namespace orrery::tool
