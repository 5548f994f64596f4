// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/unique_fd.hpp"
#include "emu/job/entrance.hpp"
#include "tools/orrery/hosts/agent_message.hpp"
#include "tools/orrery/run/guardian.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/types.h>

namespace orrery::tool {

// `orrery agent`: starts the PEs that `orrery run --hosts` wants on this host, and carries their PMI, output
// and exit to it (agent_message.hpp), over standard input and output.
//   1. One thread, one poll loop. It decides nothing about the job: that is the launcher's.
//   2. When run() returns, or this process is killed, or the launcher is gone (the end of our input), no
//      process that was started here is left.
// Usage: return Agent().run();
class Agent {
 public:
  // Blocks until the PEs have ended. Returns the exit code: 0 when all was said, else 1.
  int run();

 private:
  struct Pe {
    pid_t pid = -1;
    bool exited = false;
    UniqueFd pmi, out, err;
    bool speaks = false;  // a program of it is in the job: it has spoken PMI, and has neither left nor died
    UniqueFd input;       // of PE 0, ours is the writing end
    std::string held;     // input that is not written yet
    bool input_ends = false;
    std::string to_pmi;  // bytes for it that its socket had no room for
  };

  bool prepare();
  void poll_once();
  void read_messages();
  void handle(const AgentMessage& message);
  void start(const std::string& bytes);
  void start_pe(const StartRequest& request, std::uint32_t index);
  void forward(Pe& pe, UniqueFd& from, AgentKind kind, std::uint32_t rank);
  void drain(std::uint32_t index);
  void write_input(Pe& pe, std::uint32_t rank);
  void write_pmi(Pe& pe);
  UniqueFd new_pmi_for(std::uint32_t rank);
  void reap();
  void signal_all(int signal);
  void say(AgentKind kind, std::uint32_t rank, std::string_view bytes);
  void flush();
  bool anybody_runs() const;
  bool anything_open() const;

  UniqueFd in_, out_, signals_;
  std::unique_ptr<job::Entrance> entrance_;  // for processes whose PMI wire was closed on the way to them
  std::string entrance_name_;
  Guardian guardian_;
  std::vector<pid_t> children_before_;  // of the shell that executed us: not the job's
  sigset_t mask_before_{};
  std::uint64_t descriptor_limit_before_ = 0;
  AgentMessageBuffer messages_;
  std::string to_say_;
  std::uint32_t first_ = 0;  // rank of pes_[0]
  std::vector<Pe> pes_;
  bool started_ = false;
  bool broken_ = false;        // the launcher is gone, or does not speak our language
  std::int64_t close_at_ = 0;  // when pipes that are still open after the last PE's end are given up
};

}  // namespace orrery::tool
