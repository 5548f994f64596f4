// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/subcommand.hpp"

#include "emu/base/printable.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

// Every subcommand, in the order of the help text.
constexpr AddSubcommand kSubcommands[] = {add_run,  add_info, add_machines, add_explain, add_validate,
                                          add_draw, add_sim,  add_figures,  add_agent};

}  // namespace

namespace {

// What is opened next must not become standard input, output or error of the PEs, where the command was
// started without them.
void fill_standard_descriptors() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd >= 0) close(fd);
}

}  // namespace

int usage_error(const std::string& line) {
  std::fprintf(stderr, "orrery: %s\n", printable(line).c_str());
  return kExitUsage;
}

}  // namespace orrery::tool

namespace orrery::tool {

namespace {

int perform(int argc, char** argv) {
  int exit_code = 0;
  CLI::App root{"Runs and explains programs for the networks that Orrery emulates", "orrery"};
  root.set_version_flag("--version", "orrery " ORRERY_VERSION);
  for (const AddSubcommand add : kSubcommands) add(root, exit_code);
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  // As words too: `orrery help`, `orrery help run`, `orrery version`.
  if (!args.empty() && args[0] == "help") {
    args.erase(args.begin());
    args.insert(args.size() > 1 ? args.begin() + 1 : args.end(), "--help");
  } else if (args.size() == 1 && args[0] == "version") {
    args[0] = "--version";
  }
  std::string names;
  bool known = args.empty() || args[0].starts_with('-');
  for (const CLI::App* command : root.get_subcommands({})) {
    names += (names.empty() ? "" : ", ") + command->get_name();
    known = known || command->get_name() == args[0];
  }
  if (!known) {
    return usage_error("unknown subcommand '" + args[0] + "': expected one of " + names);
  }
  try {
    drop_separator(args);
    root.parse(std::vector<std::string>(args.rbegin(), args.rend()));  // CLI11 takes words from the back
  } catch (const CLI::Success& asked) {                                // --help and --version
    return root.exit(asked);
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string> extras;
    for (const CLI::App* command : root.get_subcommands()) extras = command->remaining();
    if (extras.empty()) extras = root.remaining();
    std::string words;
    for (const std::string& one : extras) words += (words.empty() ? "" : " ") + one;
    return usage_error(
        (extras.size() > 1 ? "arguments that are not expected: " : "an argument that is not expected: ") +
        words + "; try 'orrery " + (args.empty() || args[0].starts_with('-') ? "" : args[0] + " ") +
        "--help'");
  } catch (const CLI::ParseError& error) {
    const std::string of = args.empty() || args[0].starts_with('-') ? "" : args[0] + " ";
    return usage_error(std::string(error.what()) + "; try 'orrery " + of + "--help'");
  }
  if (root.get_subcommands().empty()) return usage_error("no subcommand given: expected one of " + names);
  return exit_code;
}

// The exit code of a command that may have written to standard output. Without the look a full disk would
// leave half a table behind, and success.
int look_at_output(int exit_code) {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return exit_code;
  std::fprintf(stderr, "orrery: standard output cannot be written%s%s\n", errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  return exit_code == 0 ? kExitFailure : exit_code;
}

}  // namespace

}  // namespace orrery::tool

int main(int argc, char** argv) {
  using namespace orrery::tool;
  fill_standard_descriptors();
  try {
    return look_at_output(perform(argc, argv));
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) throw;
    std::fprintf(stderr, "orrery: standard output cannot be written: %s\n", error.code().message().c_str());
    return kExitFailure;
  }
}
