// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <string>

namespace orrery::tool {

// What is made of a run under virtual time when it has ended, out of what its PEs recorded.
struct RecordUses {
  std::string trace;  // files to write; empty: not asked for
  std::string record;
  std::string link_report;
  std::string json;
  bool optimistic = false;  // say how exact the run was
  std::string machine;

  bool any() const {
    return !trace.empty() || !record.empty() || !link_report.empty() || !json.empty() || optimistic;
  }
  // Where the PEs' records go, beside the first of the files, else in a new folder for temporary ones, which
  // use_records() removes; the PE's number stands behind. Empty, and a line in *problem: no folder can be
  // made.
  std::string prefix(std::string* problem) const;
  // The line to show when one of the files cannot be written, or two are the same; asked before the run; else
  // empty.
  std::string problem() const;
};

// Writes what was asked for and removes the records. Records that are not whole are said, and *exit_code is
// 1, where it was 0; those of a job that failed need not be there.
void use_records(const RecordUses& uses, const std::string& prefix, std::uint32_t pes, int* exit_code);

}  // namespace orrery::tool
