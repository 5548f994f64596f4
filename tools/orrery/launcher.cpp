// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/launcher.hpp"

#include "emu/base/wait.hpp"
#include "emu/job/cores.hpp"
#include "emu/job/domain_list.hpp"
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

namespace {

constexpr std::int64_t kGraceNs = 2'000'000'000;  // between asking a PE to end and killing it
constexpr int kInheritedFrom = 64;                // shell scripts use small descriptor numbers for their own

void say(const std::string& line) { std::fprintf(stderr, "orrery: %s\n", line.c_str()); }

int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace

Launcher::Launcher(RunOptions options) : options_(std::move(options)), self_(getpid()) {}

Launcher::~Launcher() = default;

int Launcher::run() {
  if (!prepare()) return kExitFailure;
  for (std::uint32_t rank = 0; rank < options_.pes && !code_; ++rank) {
    if (!start_pe(rank)) break;
  }
  serve();
  sweep_descendants();
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

  sigset_t mine;
  sigemptyset(&mine);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT}) sigaddset(&mine, signal);
  sigprocmask(SIG_BLOCK, &mine, &mask_before_);
  signal(SIGPIPE, SIG_IGN);
  signals_.reset(signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK));
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
    usage_error(
        fmt::format("{} PEs need {} descriptors: the limit is {}; raise it (ulimit -Hn) or start fewer",
                    options_.pes, needed, limit.rlim_max));
    return false;
  }
  limit.rlim_cur = needed;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// Pipe ends of a PE's output; the PE's own ends are closed in the launcher.
struct Launcher::Pipes {
  UniqueFd out, err;
};

bool Launcher::start_pe(std::uint32_t rank) {
  Pe& pe = pes_[rank];
  Pipes pipes;
  int pmi[2];
  int error_pipe[2];
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
  if (pipe2(error_pipe, O_CLOEXEC) != 0) return refuse("pipe");
  const UniqueFd error_in(error_pipe[0]);
  UniqueFd error_out(error_pipe[1]);
  pe.pid = fork();
  if (pe.pid < 0) return refuse("fork");
  if (pe.pid == 0) become_pe(rank, pe_side.get(), pipes, error_out.get());
  setpgid(pe.pid, pe.pid);  // here as well: whoever is first
  guardian_.watch(pe.pid);
  error_out.reset();
  int error = 0;
  if (read(error_in.get(), &error, sizeof error) == sizeof error) {
    fail(kExitUsage, fmt::format("{} cannot be run: {}", options_.command[0], std::strerror(error)));
    return false;
  }
  return true;
}

void Launcher::become_pe(std::uint32_t rank, int pmi, const Pipes& pipes, int error_pipe) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != self_) _exit(1);  // it died before the line above
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  rlimit limit{};
  if (descriptor_limit_before_ != 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = descriptor_limit_before_;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  // Only PE 0 reads our input, and not from a terminal: it is not in the terminal's foreground group.
  if (rank != 0 || isatty(STDIN_FILENO) == 1) {
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0 && null != STDIN_FILENO) {
      dup2(null, STDIN_FILENO);
      close(null);
    }
  }
  if (pipes.out.valid()) dup2(pipes.out.get(), STDOUT_FILENO);
  if (pipes.err.valid()) dup2(pipes.err.get(), STDERR_FILENO);
  int pmi_number = fcntl(pmi, F_DUPFD, kInheritedFrom);
  if (pmi_number < 0) {
    pmi_number = pmi;
    fcntl(pmi, F_SETFD, 0);
  }
  fcntl(directory_fd_, F_SETFD, 0);

  for (const char* name :
       {"PMI_PORT", "PMI_ID", "PMIX_NAMESPACE", "PMIX_RANK", "SLURM_PROCID", "SLURM_NTASKS",
        "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
        "PMI_GNI_PTAG", "PMI_GNI_COOKIE", "PMI_GNI_DEV_ID", "PMI_GNI_LOC_ADDR"}) {
    unsetenv(name);  // of a job around this one
  }
  const auto set = [](const char* name, std::uint64_t value) {
    setenv(name, std::to_string(value).c_str(), 1);
  };
  const auto clique = options_.placement.clique_of(rank);
  set("PMI_FD", static_cast<std::uint64_t>(pmi_number));
  set("PMI_RANK", rank);
  set("PMI_SIZE", options_.pes);
  set("MPI_LOCALNRANKS", clique.size());
  set("MPI_LOCALRANKID",
      static_cast<std::uint64_t>(std::find(clique.begin(), clique.end(), rank) - clique.begin()));
  set("ALPS_APP_PE", rank);
  for (const auto& [name, value] : options_.variables) setenv(name.c_str(), value.c_str(), 1);
  set("ORRERY_JOB_FD", static_cast<std::uint64_t>(directory_fd_));
  if (!options_.device.empty()) setenv("ORRERY_DEVICE", options_.device.c_str(), 1);
  if (!options_.limits.empty()) setenv("ORRERY_LIMITS", options_.limits.c_str(), 1);
  if (!options_.faults.empty()) setenv("ORRERY_FAULT", options_.faults.c_str(), 1);
  if (options_.bind_to_cores) (void)job::bind_to_core(rank);  // logged there; the PE runs unbound
  std::vector<char*> argv;
  for (const std::string& word : options_.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(options_.program.c_str(), argv.data());
  const int error = errno;
  [[maybe_unused]] const auto written = write(error_pipe, &error, sizeof error);
  _exit(127);
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
        sweep_descendants();
        for (Pe& pe : pes_) {
          pe.out.pump();
          pe.out.finish();
          pe.err.pump();
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
  if (code_) return;
  if (const auto& aborted = server_->aborted()) {
    const int code = aborted->code & 0xff;
    return fail(code == 0 ? kExitFailure : code, fmt::format("{} called PMI_Abort", who(aborted->rank)));
  }
  for (std::uint32_t rank = 0; rank < pes_.size(); ++rank) {
    if (server_->phase(rank) == job::PmiServer::Phase::broken) {
      return fail(kExitFailure,
                  fmt::format("{} does not speak PMI-1: it sent '{}'", who(rank), server_->complaint(rank)));
    }
  }
  if (!server_->anybody_in_barrier()) return;
  for (std::uint32_t rank = 0; rank < pes_.size(); ++rank) {
    const bool gone = pes_[rank].exited || server_->phase(rank) == job::PmiServer::Phase::finalised;
    if (!gone) continue;
    report("a PMI barrier can never end");
    return fail(kExitFailure, fmt::format("{} has left without entering it", who(rank)));
  }
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
  const int code = code_of(status);
  if (code == 0) return check_pmi();
  if (WIFSIGNALED(status)) {
    fail(code, fmt::format("{} was killed by signal {} ({})", who(rank), WTERMSIG(status),
                           strsignal(WTERMSIG(status))));
  } else {
    fail(code, fmt::format("{} exited with code {}", who(rank), code));
  }
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

// Kills what descends from PEs but left their groups: as orphans they are our children now.
void Launcher::sweep_descendants() {
  for (int round = 0; round < 100; ++round) {
    std::FILE* file = std::fopen(fmt::format("/proc/self/task/{}/children", self_).c_str(), "re");
    if (file == nullptr) return;
    bool any = false;
    long pid = 0;
    while (std::fscanf(file, "%ld", &pid) == 1) {
      const bool pe =
          std::any_of(pes_.begin(), pes_.end(), [&](const Pe& one) { return one.pid == pid && !one.exited; });
      if (pid == guardian_.pid() || pe) continue;
      any = true;
      kill(static_cast<pid_t>(pid), SIGKILL);
      waitpid(static_cast<pid_t>(pid), nullptr, 0);
    }
    std::fclose(file);
    if (!any) return;
  }
}

std::uint32_t Launcher::running() const {
  return static_cast<std::uint32_t>(
      std::count_if(pes_.begin(), pes_.end(), [](const Pe& pe) { return pe.pid > 0 && !pe.exited; }));
}

}  // namespace orrery::tool
