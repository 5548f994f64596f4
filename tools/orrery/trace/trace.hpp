// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/record.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::tool {

struct Records {
  std::vector<clock::Recorded> operations;  // in the order in which the machine was asked
  clock::Inexactness inexactness;           // what the last PE knew at its end
};

// Reads what the PEs of a job recorded (ORRERY_RECORD). The line to show when something is not acceptable
// goes to `*problem`.
Records read_all_records(const std::string& prefix, std::uint32_t pes, std::string* problem);
// The operations alone.
std::vector<clock::Recorded> read_records(const std::string& prefix, std::uint32_t pes, std::string* problem);

// The Chrome trace format, which Perfetto opens: a process for each PE, with a track for its processor and as
// many for its NIC as it has operations under way at once. Times in microseconds.
std::string trace_json(const std::vector<clock::Recorded>& records);

}  // namespace orrery::tool
