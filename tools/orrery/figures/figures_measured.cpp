// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Points of a figure that a running program measures under virtual time, beside the model's curve.
#include "tools/orrery/figures/figures_measured.hpp"

#include "tools/orrery/temporary_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

// What a shell takes for one word.
std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// A folder of its own with two files, gone at the end.
class Inputs {
 public:
  bool there() const { return folder_.there(); }
  std::string machine() const { return folder_.path() + "/machine.toml"; }
  std::string place() const { return folder_.path() + "/place"; }

 private:
  TemporaryFolder folder_;
};

bool write_text(const std::string& name, const std::string& text) {
  std::ofstream file(name, std::ios::binary);
  file << text;
  return file.flush().good();
}

// The second number of the last line that begins with the size: the program prints sizes and microseconds.
std::optional<double> latency_in(const std::string& output) {
  std::optional<double> found;
  std::size_t at = 0;
  while (at < output.size()) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    int bytes = 0;
    double us = 0;
    if (std::sscanf(output.substr(at, end - at).c_str(), "%d %lf", &bytes, &us) == 2 && bytes == 8)
      found = us;
    at = end + 1;
  }
  return found;
}

}  // namespace

MeasuredPoints measure_latency(const std::string& program, const std::string& machine_text,
                               const std::map<int, model::NodeId>& nodes) {
  MeasuredPoints measured;
  const Inputs inputs;
  if (!inputs.there() || !write_text(inputs.machine(), machine_text)) {
    measured.problem = fmt::format("{} cannot be written: expected a folder in TMPDIR for files of our own",
                                   inputs.machine());
    return measured;
  }
  // The shell is a process of its own: it is told the name behind ours.
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  for (const auto& [hops, node] : nodes) {
    if (!write_text(inputs.place(), fmt::format("node 0 pes 0\nnode {} pes 1\n", node))) {
      measured.problem = inputs.place() + " cannot be written";
      return measured;
    }
    // Without its warning about rdtsc at each of the nodes: the program has it for paced time.
    const std::string command = fmt::format(
        "ORRERY_LOG=${{ORRERY_LOG:-error}} {} run -n 2 --timeout 100 --machine {} --place {} {} -m 8 -M 8",
        quoted(self), quoted(inputs.machine()), quoted(inputs.place()), quoted(program));
    std::FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) {
      measured.problem = "no shell to run the program with";
      return measured;
    }
    std::string output;
    char part[4096];
    for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, pipe)) != 0;) output.append(part, got);
    const int status = pclose(pipe);
    const auto us = latency_in(output);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !us) {
      measured.problem =
          fmt::format("{} on nodes 0 and {} did not print a latency of 8 B and end well: it ended with {}",
                      program, node, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
      return measured;
    }
    measured.points.emplace_back(hops, *us);
  }
  return measured;
}

}  // namespace orrery::tool
