// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/launcher.hpp"

#include "emu/base/wait.hpp"
#include "emu/job/cores.hpp"
#include "emu/job/domain_list.hpp"
#include "tools/orrery/pe_process.hpp"
#include "tools/orrery/subcommand.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool {

Launcher::Launcher(RunOptions options) : options_(std::move(options)), self_(getpid()) {}

Launcher::~Launcher() = default;

int Launcher::run() {
  if (!prepare()) return code_.value_or(kExitFailure);
  for (std::uint32_t rank = 0; rank < options_.pes && !code_; ++rank) {
    if (!start_pe(rank)) break;
  }
  serve();
  sweep();
  guardian_.dismiss();
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  return code_.value_or(0);
}

bool Launcher::prepare() {
  if (!raise_descriptor_limit()) return false;
  auto directory = job::HostDirectory::create(
      {.pes = options_.placement.pes(), .allowed_cores = job::allowed_cores().usable()});
  if (!directory.ok()) return false;
  directory_ = std::move(directory).value();
  if (!job::declare_domains(*directory_, job::make_domains()).ok()) return false;
  directory_fd_ = fcntl(directory_->fd(), F_DUPFD_CLOEXEC, kInheritedFrom);
  if (directory_fd_ < 0) directory_fd_ = directory_->fd();
  server_ =
      std::make_unique<job::PmiServer>(options_.pes, fmt::format("orrery_{:016x}", directory_->job_id()),
                                       options_.placement.process_mapping());
  pes_.resize(options_.pes);

  const sigset_t mine = take_signals({SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT}, &mask_before_);
  signal(SIGPIPE, SIG_IGN);
  signals_.reset(signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK));
  children_before_ = children();
  // Descendants whose parents have gone become our children, so that none of them gets away.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!signals_.valid() || !guardian_.start()) {
    say(fmt::format("cannot start: {}", std::strerror(errno)));
    return false;
  }
  if (options_.timeout_ns > 0) deadline_ = monotonic_ns() + options_.timeout_ns;
  return true;
}

bool Launcher::raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  descriptor_limit_before_ = limit.rlim_cur;
  const std::uint64_t needed = 32 + kInheritedFrom + std::uint64_t{options_.pes} * (options_.label ? 3 : 1);
  if (limit.rlim_cur >= needed) return true;
  if (limit.rlim_max < needed) {
    code_ = usage_error(
        fmt::format("{} PEs need {} descriptors: the limit is {}; raise it (ulimit -Hn) or start fewer",
                    options_.pes, needed, limit.rlim_max));
    return false;
  }
  limit.rlim_cur = needed;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return true;
  say(fmt::format("the limit of {} descriptors cannot be raised to {}: {}", descriptor_limit_before_, needed,
                  std::strerror(errno)));
  return false;
}

// Pipe ends of a PE's output; the PE's own ends are closed in the launcher.
struct Launcher::Pipes {
  UniqueFd out, err;
};

bool Launcher::start_pe(std::uint32_t rank) {
  Pe& pe = pes_[rank];
  Pipes pipes;
  int pmi[2];
  const auto refuse = [&](const char* what) {
    fail(kExitFailure, fmt::format("PE {} cannot be started: {}: {}", rank, what, std::strerror(errno)));
    return false;
  };
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pmi) != 0) return refuse("socketpair");
  pe.pmi.reset(pmi[0]);
  const UniqueFd pe_side(pmi[1]);
  fcntl(pe.pmi.get(), F_SETFL, O_NONBLOCK);
  if (options_.label) {
    for (auto [output, pe_end, to] :
         {std::tuple{&pe.out, &pipes.out, STDOUT_FILENO}, {&pe.err, &pipes.err, STDERR_FILENO}}) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) return refuse("pipe");
      pe_end->reset(ends[1]);
      fcntl(ends[0], F_SETFL, O_NONBLOCK);
      *output = LabelledOutput(UniqueFd(ends[0]), to, fmt::format("[{}] ", rank));
    }
  }
  PeStart start;
  const auto clique = options_.placement.clique_of(rank);
  start.rank = rank;
  start.size = options_.pes;
  start.local_size = static_cast<std::uint32_t>(clique.size());
  start.local_rank =
      static_cast<std::uint32_t>(std::find(clique.begin(), clique.end(), rank) - clique.begin());
  start.program = options_.program;
  start.command = options_.command;
  start.variables = options_.variables;
  start.pmi = pe_side.get();
  start.directory = directory_fd_;
  // Only PE 0 reads our input, and not from a terminal: it is not in the terminal's foreground group.
  if (rank == 0 && isatty(STDIN_FILENO) != 1) start.input = STDIN_FILENO;
  if (pipes.out.valid()) start.out = pipes.out.get();
  if (pipes.err.valid()) start.err = pipes.err.get();
  if (options_.bind_to_cores) start.core = rank;
  start.signal_mask = mask_before_;
  start.descriptor_limit = descriptor_limit_before_;
  int error = 0;
  pe.pid = start_pe_process(start, guardian_, &error);
  if (pe.pid < 0) return refuse("fork");
  if (error != 0) {
    fail(kExitUsage, fmt::format("{} cannot be run: {}", options_.command[0], std::strerror(error)));
    return false;
  }
  return true;
}

void Launcher::serve() {
  const auto busy = [this] {
    if (running() > 0) return true;
    return std::any_of(pes_.begin(), pes_.end(),
                       [](const Pe& pe) { return pe.out.fd() >= 0 || pe.err.fd() >= 0; });
  };
  while (busy()) {
    poll_once();
    const std::int64_t now = monotonic_ns();
    if (deadline_ != 0 && now >= deadline_) {
      deadline_ = 0;
      report(fmt::format("timeout after {} s", static_cast<double>(options_.timeout_ns) / 1e9));
      if (!code_) code_ = kExitTimeout;
      stop(SIGTERM);
    }
    if (kill_at_ != 0 && now >= kill_at_) {
      signal_all(SIGKILL);
      kill_at_ = now + kGraceNs;
      if (running() == 0) {
        // Only pipes are open: whoever holds them left the PE's group. What is written is written.
        sweep();
        for (Pe& pe : pes_) {
          pe.out.drain();
          pe.out.finish();
          pe.err.drain();
          pe.err.finish();
        }
      }
    }
  }
}

std::int64_t Launcher::next_deadline() const {
  if (deadline_ == 0) return kill_at_;
  return kill_at_ == 0 ? deadline_ : std::min(deadline_, kill_at_);
}

int Launcher::poll_once() {
  std::vector<pollfd> fds{{signals_.get(), POLLIN, 0}};
  std::vector<std::pair<std::uint32_t, int>> what;  // PE; 0 = pmi, 1 = out, 2 = err
  for (std::uint32_t rank = 0; rank < pes_.size(); ++rank) {
    const Pe& pe = pes_[rank];
    const int candidates[] = {pe.pmi.get(), pe.out.fd(), pe.err.fd()};
    for (int kind = 0; kind < 3; ++kind) {
      if (candidates[kind] < 0) continue;
      fds.push_back({candidates[kind], POLLIN, 0});
      what.emplace_back(rank, kind);
    }
  }
  int wait = -1;
  if (const std::int64_t at = next_deadline(); at != 0) {
    wait = static_cast<int>(std::clamp<std::int64_t>((at - monotonic_ns()) / 1'000'000 + 1, 0, INT_MAX));
  }
  const int ready = poll(fds.data(), fds.size(), wait);
  if (ready <= 0) return ready;
  // What PEs have said before they died counts: their bytes first, then who has exited.
  for (std::size_t i = 0; i < what.size(); ++i) {
    if (fds[i + 1].revents == 0) continue;
    const auto [rank, kind] = what[i];
    if (kind == 0) on_pmi(rank);
    if (kind == 1) pes_[rank].out.pump();
    if (kind == 2) pes_[rank].err.pump();
  }
  if (fds[0].revents != 0) on_signal();
  return ready;
}

void Launcher::on_pmi(std::uint32_t rank) {
  Pe& pe = pes_[rank];
  std::array<char, 8192> bytes;
  while (pe.pmi.valid()) {
    const ssize_t got = read(pe.pmi.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      pe.pmi.reset();
      break;
    }
    for (const auto& output : server_->receive(rank, {bytes.data(), static_cast<std::size_t>(got)})) {
      const int fd = pes_[output.rank].pmi.get();
      // An answer is shorter than the socket's buffer, and each PE has one request under way: a PE for which
      // this fails has gone or floods us.
      if (fd >= 0 && send(fd, output.text.data(), output.text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
                         static_cast<ssize_t>(output.text.size())) {
        pes_[output.rank].pmi.reset();
      }
    }
  }
  check_pmi();
}

// Ends the job when PMI says so: an abort, a client that speaks something else, a barrier that cannot end.
void Launcher::check_pmi() {
  bool reported = false;
  if (!code_) {
    const auto trouble = pmi_trouble(
        *server_, options_.pes, [this](std::uint32_t rank) { return pes_[rank].exited; },
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

// Whether all that run are in the barrier: whom it waits for has gone, or was never started.
bool Launcher::all_wait_in_vain() const {
  for (std::uint32_t rank = 0; rank < pes_.size(); ++rank) {
    const bool runs = pes_[rank].pid > 0 && !pes_[rank].exited;
    if (runs && server_->phase(rank) != job::PmiServer::Phase::in_barrier) return false;
  }
  return running() > 0;
}

void Launcher::on_signal() {
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
        signal_all(SIGCONT);
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
  reap();
}

void Launcher::reap() {
  while (true) {
    siginfo_t info{};
    // Left a zombie at first: its pid, and so the number of its group, cannot be reused yet.
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
    const pid_t pid = info.si_pid;
    const auto found = std::find_if(pes_.begin(), pes_.end(), [&](const Pe& pe) { return pe.pid == pid; });
    if (found != pes_.end()) {
      kill(-pid, SIGKILL);  // what it left in its group
      guardian_.release(pid);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) break;
    if (found != pes_.end()) on_exit(static_cast<std::uint32_t>(found - pes_.begin()), status);
  }
}

void Launcher::on_exit(std::uint32_t rank, int status) {
  Pe& pe = pes_[rank];
  on_pmi(rank);  // what it said last
  pe.out.drain();
  pe.err.drain();
  pe.exited = true;
  pe.status = status;
  pe.pmi.reset();
  const auto process = directory_->process_of_rank(static_cast<std::int32_t>(rank));
  if (process.ok()) {
    const auto info = directory_->info_of(process.value());
    if (info.ok() && info.value().pid == pe.pid) directory_->mark_dead(process.value());
  }
  // Descendants that left the group may hold its pipes open: they do not keep the job alive for long.
  if (running() == 0 && kill_at_ == 0) kill_at_ = monotonic_ns() + kGraceNs;
  const int code = exit_code_of(status);
  if (code == 0) return check_pmi();
  if (WIFSIGNALED(status)) {
    fail(code, fmt::format("{} was killed by signal {} ({})", who(rank), WTERMSIG(status),
                           strsignal(WTERMSIG(status))));
  } else {
    fail(code, fmt::format("{} exited with code {}", who(rank), code));
  }
  check_pmi();
}

void Launcher::fail(int code, const std::string& why) {
  if (code_) return;  // the first failure decides, and what follows is its consequence
  code_ = code;
  const std::uint32_t others = running();
  const bool stopping = !options_.keep_going && others > 0;
  say(why + (stopping ? fmt::format("; stopping {} that still run{}", others, others == 1 ? "s" : "") : ""));
  if (!options_.keep_going) stop(SIGTERM);
}

void Launcher::stop(int signal) {
  signal_all(signal);
  signal_all(SIGCONT);  // a stopped PE could not heed it
  if (kill_at_ == 0) kill_at_ = monotonic_ns() + kGraceNs;
}

void Launcher::signal_all(int signal) {
  for (const Pe& pe : pes_) {
    if (pe.pid > 0 && !pe.exited) kill(-pe.pid, signal);
  }
}

// Kills what descends from PEs but left their groups.
void Launcher::sweep() {
  std::vector<pid_t> keep = children_before_;
  keep.push_back(guardian_.pid());
  for (const Pe& pe : pes_) {
    if (!pe.exited) keep.push_back(pe.pid);
  }
  sweep_descendants(keep);
}

std::uint32_t Launcher::running() const {
  return static_cast<std::uint32_t>(
      std::count_if(pes_.begin(), pes_.end(), [](const Pe& pe) { return pe.pid > 0 && !pe.exited; }));
}

}  // namespace orrery::tool
