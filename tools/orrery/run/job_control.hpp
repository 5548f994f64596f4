// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/unique_fd.hpp"
#include "emu/job/pmi_server.hpp"
#include "tools/orrery/run/guardian.hpp"
#include "tools/orrery/run/job_report.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/types.h>

namespace orrery::tool {

// How a job ends, wherever its PEs run: the first failure decides the exit code and stops the others, a
// signal to the launcher goes on to all, a barrier that cannot end is found, a PE that does not heed a
// request is killed. One thread.
class JobControl {
 public:
  JobControl(const JobControl&) = delete;
  JobControl& operator=(const JobControl&) = delete;

 protected:
  JobControl(std::uint32_t pes, bool keep_going) : pe_count_(pes), keep_going_(keep_going) {}
  virtual ~JobControl() = default;

  // ---- what a launcher knows of its PEs, and does to them ----
  virtual bool has_exited(std::uint32_t rank) const = 0;
  // Whether the program of `rank` that has finalised was one of several: a shell may start the next.
  virtual bool may_return(std::uint32_t) const { return false; }
  // Whether it runs or may yet be started, so that it may come to a barrier.
  virtual bool may_come(std::uint32_t rank) const = 0;
  virtual std::uint32_t running() const = 0;
  virtual std::string who(std::uint32_t rank) const = 0;  // "PE 3 (pid 71)"
  virtual PeFacts facts_of(std::uint32_t rank) const = 0;
  virtual void signal_all(int signal) = 0;
  // Besides the signal: whatever keeps PEs from ending, or lets more of them begin.
  virtual void ease_the_end() = 0;

  // ---- what is the same for all ----
  // Takes signals, makes whatever loses its parent a child of ours, starts the guardian and the clock of
  // --timeout (0: none). False: it cannot, and has said so.
  bool take_charge(std::int64_t timeout_ns);
  // How long poll() may wait, in milliseconds; -1: for ever.
  int wait_ms() const;
  // Takes in the signals that have come. SIGCHLD: nothing but that a child may have ended.
  void heed_signals();
  // Ends the job when PMI says so: an abort, a client that speaks something else, a barrier that cannot end.
  void check_pmi();
  // A PE has ended that way: a failure decides, unless one has before.
  void judge(std::uint32_t rank, int status);
  void fail(int code, const std::string& why);
  // What PEs wrote could not be written on, as write_whole() tells it; 0: it could.
  void judge_output(int error);
  void stop(int signal);
  // Which PEs are missing at which barrier, and what each PE does, to standard error.
  void report(const std::string& reason) const;
  // Ends the job when --timeout is over.
  void check_deadline(std::int64_t now, std::int64_t timeout_ns);

  const std::uint32_t pe_count_;
  const bool keep_going_;
  std::unique_ptr<job::PmiServer> server_;
  Guardian guardian_;
  UniqueFd signals_;
  std::vector<pid_t> children_before_;  // of the shell that executed us: not the job's
  sigset_t mask_before_{};
  std::optional<int> code_;    // decided by the first failure
  std::int64_t deadline_ = 0;  // of --timeout; 0: none
  std::int64_t kill_at_ = 0;   // when what has been asked to end is killed; 0: nothing has

 private:
  bool all_wait_in_vain() const;
};

}  // namespace orrery::tool
