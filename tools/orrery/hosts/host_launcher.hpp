// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/unique_fd.hpp"
#include "emu/job/pmi_server.hpp"
#include "tools/orrery/hosts/agent_message.hpp"
#include "tools/orrery/hosts/hosts.hpp"
#include "tools/orrery/run/job_control.hpp"
#include "tools/orrery/run/labelled_output.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/types.h>

namespace orrery::tool {

struct HostRunOptions {
  std::vector<HostShare> hosts;
  std::string launcher_exec;                  // words before HOST COMMAND; empty: ssh
  std::int64_t timeout_ns = 0;                // 0: none
  std::int64_t patience_ns = 60'000'000'000;  // how long a host may take for each step until its PEs run
  bool label = false;
  bool keep_going = false;
  bool bind_to_cores = false;
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> command;  // argv
};

// `orrery run --hosts`: runs one job on several hosts. Starts an agent (agent.hpp) on each by ssh or another
// program, serves PMI-1 to the PEs through them, writes what the PEs write, and ends them all.
//   1. One thread, one poll loop.
//   2. Every agent ends its PEs when it no longer hears us: nothing is left when run() returns or this
//      process is killed, but on hosts that are cut off, as soon as their connection is known to be lost.
//   3. The exit code is that of the first PE seen to fail, 128 + n for signal n.
// Usage: return HostLauncher(options).run();
class HostLauncher : private JobControl {
 public:
  explicit HostLauncher(HostRunOptions options);
  ~HostLauncher() override;

  // Blocks until the job has ended. Returns the exit code.
  int run();

 private:
  struct Host {
    HostShare share;
    pid_t pid = -1;  // of ssh, or what stands for it
    UniqueFd to, from;
    std::string to_send;
    AgentMessageBuffer messages;
    std::int64_t silent_at = 0;  // when it counts as lost, unless its PEs run by then; 0: they do
    std::uint32_t to_begin = 0;  // PEs that it has neither started nor refused
    bool greeted = false;
    bool said_bye = false;
    bool exited = false;  // ssh has
    int status = 0;
  };
  struct Pe {
    std::uint32_t host = 0;
    std::uint32_t pid = 0;  // on its host; 0: not started yet
    bool exited = false;
    int status = 0;
    LabelledOutput out, err;
  };

  bool prepare();
  bool start_agent(Host& host);
  void serve();
  void poll_once();
  void read_from(std::uint32_t index);
  void write_to(Host& host);
  void handle(Host& host, const AgentMessage& message);
  void send_start(Host& host);
  void hand_on(LabelledOutput& labelled, int to, std::string_view bytes);
  void read_input();
  void on_pmi(std::uint32_t rank, std::string_view bytes);
  void on_exit(std::uint32_t rank, int status);
  void reap();
  void begun(Host& host);
  void lose_silent(std::int64_t now);
  int wait_for_hosts_ms() const;
  void lose(Host& host, const std::string& why);
  void cut_off();
  bool has_exited(std::uint32_t rank) const override;
  // The agents do not tell which of a PE's processes has finalised.
  bool may_return(std::uint32_t rank) const override { return !has_exited(rank); }
  bool may_come(std::uint32_t rank) const override;
  std::uint32_t running() const override;
  std::string who(std::uint32_t rank) const override;
  PeFacts facts_of(std::uint32_t rank) const override;
  void signal_all(int signal) override;
  void ease_the_end() override;
  bool is_open(const Host& host) const { return !host.exited || host.from.valid(); }

  const HostRunOptions options_;
  std::vector<Host> hosts_;
  std::vector<Pe> pes_;
  bool wants_input_ = false;  // PE 0 has room for more of ours
  int kills_ = 0;             // how often what was asked to end was killed
};

}  // namespace orrery::tool
