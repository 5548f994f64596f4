// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/job/placement.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What `orrery run` looks at before it starts anything. Each answer is one line for the user, empty when
// there is nothing to say. Not thread-safe against setenv().
namespace orrery::tool {

// The first ORRERY_ variable of this process whose value is not accepted, and what would be. `set_otherwise`:
// names and values that the command line sets for the PEs, in whose place the environment's do not count.
std::string wrong_variable(const std::vector<std::pair<std::string, std::string>>& set_otherwise);

// The same of one variable, which the command line does not set.
std::string wrong_value(std::string_view variable);

// What cannot be had together with a machine's clock: faults (`option`: the value of --fault, or empty for
// that of ORRERY_FAULT), and the wire between all processes.
std::string refused_with_clock(const std::string& option);

// The NIC addresses that `faults` (a list that parse_faults() accepts) declares dead and no PE has, with
// those that they have.
std::string dead_and_absent(std::string_view faults, const job::Placement& placement);

// A number 1..most, and nothing else.
std::optional<std::uint32_t> parse_count(std::string_view text, std::uint32_t most);
// A time of 0.001..kMaxTimeout seconds, in nanoseconds.
inline constexpr double kMaxTimeout = 1e6;  // seconds; eleven days
std::optional<std::int64_t> parse_seconds(std::string_view text);

// Why find_program() has found nothing for `name`.
std::string why_not_run(const std::string& name);

}  // namespace orrery::tool
