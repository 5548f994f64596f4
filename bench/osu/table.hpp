// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

// Options and output of the OSU-style programs: two columns first, as every parser of such tables expects;
// percentiles only when asked for.
namespace bench {

struct OsuOptions {
  std::size_t smallest = 8;
  std::size_t largest = 4u << 20;
  int iterations = 10'000;
  int warm_up = 100;
  std::string format = "osu";
  bool percentiles = false;
  bool pinned = false;
  bool model = false;
  // What a program has besides: name, what it sets, help.
  struct Flag {
    const char* name;
    bool* set;
    const char* help;
  };
  std::vector<Flag> extra_flags;
  bool has_sizes = true;  // no: one line of one size

  // Ends the program with 2 and one line when an option is not accepted. `least`, `unit`: the shortest
  // message that this program sends, and what its length is a multiple of; --min is rounded up to both.
  void parse(const char* about, int argc, char** argv, std::size_t least = 1, std::size_t unit = 1);
  int iterations_for(std::size_t bytes) const {
    return bytes > 8192 ? std::max(iterations / 10, 10) : iterations;
  }
};

// One line a size; `value` is the average in the table's unit, samples are single measurements.
class OsuTable {
 public:
  OsuTable(const OsuOptions& options, const char* title, const char* unit);
  ~OsuTable();
  OsuTable(const OsuTable&) = delete;
  OsuTable& operator=(const OsuTable&) = delete;
  // model: the machine's word on the same, where it was asked for.
  void line(std::size_t bytes, double average, const std::vector<double>& samples,
            std::optional<double> model = std::nullopt);

 private:
  const OsuOptions& options_;
  std::string unit_;
  bool first_ = true;
};

}  // namespace bench
