// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/unique_fd.hpp"
#include "emu/job/entrance.hpp"
#include "emu/job/host_directory.hpp"
#include "emu/job/placement.hpp"
#include "emu/job/pmi_server.hpp"
#include "tools/orrery/run/job_control.hpp"
#include "tools/orrery/run/labelled_output.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

namespace orrery::tool {

struct RunOptions {
  std::uint32_t pes = 1;
  job::Placement placement;
  std::int64_t timeout_ns = 0;  // 0: none
  bool label = false;
  bool keep_going = false;  // a PE that fails does not end the others
  bool bind_to_cores = false;
  // ORRERY_ variables that the command line sets for the PEs.
  std::vector<std::pair<std::string, std::string>> variables;
  std::string program;               // as found in PATH
  std::vector<std::string> command;  // argv
};

// Runs one job: makes the host directory, starts the PEs, serves PMI-1 to them, and ends them all. Owns the
// PEs, each the leader of its own process group.
//   1. One thread, one poll loop; every descriptor but those of a PE's own is close-on-exec.
//   2. When run() returns, or when this process is killed, no process of the job is left and no file.
//   3. The exit code is that of the first PE seen to fail, 128 + n for signal n.
// Usage: return Launcher(options).run();
class Launcher : private JobControl {
 public:
  explicit Launcher(RunOptions options);
  ~Launcher() override;

  // Blocks until the job has ended. Returns the exit code.
  int run();

 private:
  struct Pe {
    pid_t pid = -1;
    bool exited = false;
    int status = 0;           // as waitpid gives it, once exited
    bool may_return = false;  // what finalised last was not the process that was started: a shell's program
    UniqueFd pmi;
    LabelledOutput out;
    LabelledOutput err;
  };
  struct Pipes;

  bool prepare();
  bool raise_descriptor_limit();
  bool start_pe(std::uint32_t rank);
  void serve();
  int poll_once();
  void reap();
  void on_exit(std::uint32_t rank, int status);
  void on_pmi(std::uint32_t rank);
  UniqueFd new_pmi_for(std::uint32_t rank);
  void sweep();
  bool has_exited(std::uint32_t rank) const override;
  bool may_return(std::uint32_t rank) const override;
  bool may_come(std::uint32_t rank) const override;
  std::uint32_t running() const override;
  std::string who(std::uint32_t rank) const override;
  PeFacts facts_of(std::uint32_t rank) const override;
  void signal_all(int signal) override;
  void ease_the_end() override;

  const RunOptions options_;
  const pid_t self_;
  std::unique_ptr<job::HostDirectory> directory_;
  std::unique_ptr<job::Entrance> entrance_;
  std::string entrance_name_;
  std::uint64_t descriptor_limit_before_ = 0;
  int directory_fd_ = -1;  // number under which the PEs inherit it
  std::vector<Pe> pes_;
};

}  // namespace orrery::tool
