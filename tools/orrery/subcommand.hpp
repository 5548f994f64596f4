// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

// What a subcommand of `orrery` is: a function that adds itself to the command line. To add one: write
// add_x() in x.cpp, declare it here, and name it in the table of main.cpp.
namespace orrery::tool {

// Exit codes of the command itself; `orrery run` otherwise returns its program's code.
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;  // what was asked for is not accepted: one line on stderr says why

// Adds a subcommand to `root`. Its callback runs after parsing and stores the exit code in `exit_code`, which
// outlives `root`.
using AddSubcommand = void (*)(CLI::App& root, int& exit_code);

void add_run(CLI::App& root, int& exit_code);
void add_agent(CLI::App& root, int& exit_code);
void add_info(CLI::App& root, int& exit_code);
void add_draw(CLI::App& root, int& exit_code);
void add_explain(CLI::App& root, int& exit_code);
void add_machines(CLI::App& root, int& exit_code);
void add_validate(CLI::App& root, int& exit_code);
void add_sim(CLI::App& root, int& exit_code);
void add_figures(CLI::App& root, int& exit_code);

// Takes the "--" between the options of `run` and its program out of the command line `args` (without the
// command's own name): CLI11 would hand what follows it to the wrong place.
void drop_separator(std::vector<std::string>& args);

// Writes "orrery: <line>\n" to stderr and returns kExitUsage.
int usage_error(const std::string& line);

}  // namespace orrery::tool
