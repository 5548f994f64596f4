// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Every ORRERY_ variable, in one table: name, default, unit or accepted values, help. `orrery info`
// prints it; a variable with the prefix that is not in it is warned about, with the nearest name.
namespace orrery::config {

enum class Kind : std::uint8_t { text, number, choice, faults };

struct Knob {
  std::string_view name;  // "ORRERY_ADOPT"
  Kind kind;
  std::string_view default_value;  // as the user would write it; empty = unset
  std::string_view accepts;        // unit of a number with its range "1..64 PEs", or "a|b|c"
  std::string_view help;           // one line
  std::uint64_t low = 0;           // numbers only: accepted range
  std::uint64_t high = UINT64_MAX;
};

// The table, sorted by name.
std::span<const Knob> knobs();

// Value of a knob: the environment's if it is set and acceptable, else the default.
// An unacceptable value is an error line that names the value and what is accepted, the first time that a
// process meets it, and the default is used. REQUIRES: `name` is in the table. Thread-safe as long as no
// thread calls setenv at the same time.
std::string text(std::string_view name);
std::uint64_t number(std::string_view name);

// As above, but an unacceptable value comes back as a message instead of a log line.
std::optional<std::string> problem_with(const Knob& knob, std::string_view value);

// One message per ORRERY_ variable of `environment` (a null-terminated "NAME=value" array) that the table
// does not know or whose value it does not accept. None in a program with more rights than its caller has.
std::vector<std::string> check_environment(const char* const* environment);

// Logs each of those: an unknown name as a warning, an unacceptable value as text() does, which then does not
// say it again. Threads: as text().
void tell_of_environment(const char* const* environment);

}  // namespace orrery::config
