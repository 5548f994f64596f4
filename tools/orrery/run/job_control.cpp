// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/run/job_control.hpp"

#include "emu/base/printable.hpp"
#include "emu/base/wait.hpp"
#include "tools/orrery/run/pe_process.hpp"
#include "tools/orrery/subcommand.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool {

bool JobControl::take_charge(std::int64_t timeout_ns) {
  const sigset_t mine =
      take_signals({SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2}, &mask_before_);
  signal(SIGPIPE, SIG_IGN);
  signals_.reset(signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK));
  children_before_ = children();
  // Descendants whose parents have gone become our children, so that none of them gets away.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!signals_.valid() || !guardian_.start()) {
    say(fmt::format("cannot start: {}", std::strerror(errno)));
    return false;
  }
  if (timeout_ns > 0) deadline_ = monotonic_ns() + timeout_ns;
  return true;
}

int JobControl::wait_ms() const {
  std::int64_t at = kill_at_;
  if (deadline_ != 0) at = at == 0 ? deadline_ : std::min(at, deadline_);
  if (at == 0) return -1;
  return static_cast<int>(std::clamp<std::int64_t>((at - monotonic_ns()) / 1'000'000 + 1, 0, INT_MAX));
}

void JobControl::heed_signals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    switch (signal) {
      case SIGCHLD:
        break;
      case SIGTSTP:
        signal_all(SIGSTOP);
        raise(SIGSTOP);
        break;
      case SIGCONT:
      case SIGUSR1:
      case SIGUSR2:
        signal_all(signal);
        break;
      default:
        if (kill_at_ != 0) {  // asked a second time
          signal_all(SIGKILL);
          break;
        }
        if (server_->anybody_in_barrier()) report(fmt::format("stopped by signal {}", signal));
        if (!code_) code_ = 128 + signal;
        stop(signal);
    }
  }
}

void JobControl::check_pmi() {
  bool reported = false;
  if (!code_) {
    const auto trouble = pmi_trouble(
        *server_, pe_count_,
        [this](std::uint32_t rank) {
          return has_exited(rank) ||
                 (server_->phase(rank) == job::PmiServer::Phase::finalised && !may_return(rank));
        },
        [this](std::uint32_t rank) { return who(rank); });
    if (!trouble) return;
    reported = trouble->barrier;
    if (reported) report("a PMI barrier can never end");
    fail(trouble->code, trouble->why);
  }
  // With --keep-going the others run on, as long as one of them can.
  if (kill_at_ != 0 || !all_wait_in_vain()) return;
  if (!reported) report("all that still run wait in a PMI barrier that can never end");
  stop(SIGTERM);
}

// Whether all that run are in the barrier: the PE that it waits for has gone, or was never started.
bool JobControl::all_wait_in_vain() const {
  for (std::uint32_t rank = 0; rank < pe_count_; ++rank) {
    if (may_come(rank) && server_->phase(rank) != job::PmiServer::Phase::in_barrier) return false;
  }
  return running() > 0;
}

void JobControl::judge(std::uint32_t rank, int status) {
  const int code = exit_code_of(status);
  if (code == 0) return;
  if (WIFSIGNALED(status)) {
    fail(code, fmt::format("{} was killed by signal {} ({})", who(rank), WTERMSIG(status),
                           strsignal(WTERMSIG(status))));
  } else {
    fail(code, fmt::format("{} exited with code {}", who(rank), code));
  }
}

void JobControl::fail(int code, const std::string& why) {
  if (code_) return;  // the first failure decides, and what follows is its consequence
  code_ = code;
  const std::uint32_t others = running();
  const bool stopping = !keep_going_ && others > 0;
  say(why + (stopping ? fmt::format("; stopping {} that still run{}", others, others == 1 ? "s" : "") : ""));
  if (!keep_going_) stop(SIGTERM);
}

void JobControl::judge_output(int error) {
  if (error == EPIPE) {
    fail(128 + SIGPIPE, "the PEs' output has no reader any more");
    stop(SIGTERM);  // though they are to go on: each would be ended so by itself
  } else if (error != 0) {
    fail(kExitFailure, fmt::format("the PEs' output cannot be written: {}", std::strerror(error)));
  }
}

void JobControl::stop(int signal) {
  signal_all(signal);
  ease_the_end();
  if (kill_at_ == 0) kill_at_ = monotonic_ns() + kGraceNs;
}

void JobControl::report(const std::string& reason) const {
  const std::string text =
      job_report(reason, *server_, pe_count_, [this](std::uint32_t rank) { return facts_of(rank); });
  std::fputs(printable(text).c_str(), stderr);
}

void JobControl::check_deadline(std::int64_t now, std::int64_t timeout_ns) {
  if (deadline_ == 0 || now < deadline_) return;
  deadline_ = 0;
  report(fmt::format("timeout after {} s", static_cast<double>(timeout_ns) / 1e9));
  if (!code_) code_ = kExitTimeout;
  stop(SIGTERM);
}

}  // namespace orrery::tool
