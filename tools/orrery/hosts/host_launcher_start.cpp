// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// How the launcher of several hosts reaches them, and what its agents are to start.
#include "tools/orrery/hosts/host_launcher.hpp"

#include "emu/base/wait.hpp"
#include "tools/orrery/run/pe_process.hpp"
#include "tools/orrery/subcommand.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

constexpr std::string_view kLocalHost = "localhost";

// `text` as one word of a shell.
std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto blank = std::min(text.find(' '), text.size());
    if (blank > 0) words.emplace_back(text.substr(0, blank));
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  return words;
}

// What belongs to this host, this shell or a job around us, and says something wrong elsewhere.
bool stays_here(std::string_view variable) {
  static constexpr std::string_view kNames[] = {
      "HOSTNAME",      "PWD",           "OLDPWD",        "SHLVL",        "_", "DISPLAY", "XDG_RUNTIME_DIR",
      "ORRERY_JOB_FD", "ORRERY_JOB_AT", "ORRERY_PMI_AT", "ORRERY_GNI_OF"};
  const std::string_view name = variable.substr(0, variable.find('='));
  for (const std::string_view prefix : {"PMI_", "PMIX_", "SLURM_", "OMPI_", "MPI_LOCAL", "SSH_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

bool HostLauncher::start_agent(Host& host) {
  std::error_code error;
  const std::string ourselves = std::filesystem::read_symlink("/proc/self/exe", error).string();
  std::vector<std::string> words = words_of(options_.launcher_exec);
  if (words.empty() && host.share.name == kLocalHost) {
    words = {ourselves, "agent"};
  } else {
    // A host that is switched off is noticed within half a minute, by us here and by ssh's server there.
    if (words.empty())
      words = {"ssh", "-x",
               "-o",  "BatchMode=yes",
               "-o",  "ConnectTimeout=20",
               "-o",  "ServerAliveInterval=10",
               "-o",  "ServerAliveCountMax=3"};
    words.push_back(host.share.name);
    words.push_back("exec " + shell_word(ourselves) + " agent");
  }
  int to[2];
  int from[2];
  if (pipe2(to, O_CLOEXEC) != 0) {
    fail(kExitFailure, fmt::format("pipe: {}", std::strerror(errno)));
    return false;
  }
  const UniqueFd to_end(to[0]);
  host.to.reset(to[1]);
  if (pipe2(from, O_CLOEXEC) != 0) {
    fail(kExitFailure, fmt::format("pipe: {}", std::strerror(errno)));
    return false;
  }
  host.from.reset(from[0]);
  const UniqueFd from_end(from[1]);
  for (const int fd : {host.to.get(), host.from.get()}) fcntl(fd, F_SETFL, O_NONBLOCK);
  std::string program = find_program(words.front());
  if (program.empty()) {
    fail(kExitUsage,
         fmt::format("--launcher-exec '{}' cannot be run: expected an executable file", words.front()));
    return false;
  }
  ChildStart child;
  child.program = std::move(program);
  child.command = std::move(words);
  child.input = to_end.get();
  child.out = from_end.get();
  child.signal_mask = mask_before_;
  int why = 0;
  host.to_begin = host.share.count;
  host.silent_at = monotonic_ns() + options_.patience_ns;
  host.pid = start_child(child, {}, guardian_, &why);
  if (host.pid > 0 && why == 0) return true;
  fail(kExitFailure, fmt::format("host {}: '{}' cannot be run: {}", host.share.name, child.command.front(),
                                 std::strerror(why != 0 ? why : errno)));
  return false;
}

void HostLauncher::send_start(Host& host) {
  if (code_ && !options_.keep_going) {  // the job has failed before
    host.to.reset();
    return;
  }
  StartRequest request;
  request.size = pe_count_;
  request.first = host.share.first;
  request.count = host.share.count;
  request.bind_to_cores = options_.bind_to_cores;
  std::error_code error;
  request.folder = std::filesystem::current_path(error).string();
  request.command = options_.command;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!stays_here(*variable)) request.environment.emplace_back(*variable);
  }
  for (const auto& [name, value] : options_.variables) request.environment.push_back(name + "=" + value);
  const std::string bytes = encode_start(request);
  if (bytes.size() + 5 > kAgentMessageMax)
    return fail(kExitFailure, fmt::format("arguments and environment are too long: {} bytes", bytes.size()));
  write_message(host.to_send, AgentKind::start, 0, bytes);
  write_to(host);
}

}  // namespace orrery::tool
