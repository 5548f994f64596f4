// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <string>

namespace orrery::tool {

// What is made of a run under virtual time when it has ended, out of what its PEs recorded.
struct RecordUses {
  std::string trace;  // files to write; empty: not asked for
  std::string link_report;
  std::string json;
  bool optimistic = false;  // say how exact the run was
  std::string machine;

  bool any() const { return !trace.empty() || !link_report.empty() || !json.empty() || optimistic; }
  // Where the PEs' records go, beside the first of the files; the PE's number stands behind.
  std::string prefix() const;
  // The line to show when one of the files cannot be written, asked before the run; else empty.
  std::string problem() const;
};

// Writes what was asked for and removes the records. A job that failed has no records: that is said, and
// *exit_code is 1 where it was 0.
void use_records(const RecordUses& uses, const std::string& prefix, std::uint32_t pes, int* exit_code);

}  // namespace orrery::tool
