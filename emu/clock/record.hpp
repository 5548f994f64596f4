// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/clock.hpp"
#include "emu/model/quote.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What a PE's clock was asked and what it answered, for tools that look at a run afterwards: the trace, and
// the oracle that computes every time again in one process.
namespace orrery::clock {

// One operation. The job's were begun in the order of `number`, and so in that of `called`.
struct Recorded {
  std::int64_t called = 0;  // ps: when the PE's turn was
  std::uint32_t pe = 0;
  std::uint64_t number = 0;  // of the job's operations
  bool uncontended = false;
  model::QuoteRequest request;
  model::Quote quote;
};

// Why a run's times may not be the model's to the last picosecond: how often each happened so far.
struct Inexactness {
  std::uint64_t outside = 0;  // a PE was outside the clock
  std::uint64_t merged = 0;   // intervals of links were united
  std::uint64_t late = 0;     // optimistic: an event came behind what had been seen
  bool none() const { return outside + merged + late == 0; }
};

// One line a record, as numbers in the order of the fields; `# ` starts a line that is not one.
std::string line_of(const Recorded& record);
// nullopt for anything that line_of() does not write.
std::optional<Recorded> parse_line(std::string_view line);
// The same of what a PE knew at its end, as a line that starts with `# `.
std::string line_of(const Inexactness& found);
std::optional<Inexactness> parse_inexactness(std::string_view line);

// Keeps what a PE did and writes `prefix`.PE in the end. One thread.
class Recorder {
 public:
  Recorder(std::string prefix, std::uint32_t pe) : prefix_(std::move(prefix)), pe_(pe) {}
  void add(const Recorded& record) { records_.push_back(record); }
  // Says so when the file cannot be written.
  void write(std::string_view machine, const Inexactness& found) const;

 private:
  const std::string prefix_;
  const std::uint32_t pe_;
  std::vector<Recorded> records_;
};

}  // namespace orrery::clock
