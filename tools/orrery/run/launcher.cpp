// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/run/launcher.hpp"

#include "emu/base/wait.hpp"
#include "emu/job/cores.hpp"
#include "emu/job/domain_list.hpp"
#include "tools/orrery/run/pe_process.hpp"
#include "tools/orrery/subcommand.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool {

Launcher::Launcher(RunOptions options)
    : JobControl(options.pes, options.keep_going), options_(std::move(options)), self_(getpid()) {}

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
  const job::EntranceName entrance{self_, directory_->job_id()};
  auto opened = job::Entrance::open(entrance);
  if (!opened.ok()) return false;
  entrance_ = std::move(opened).value();
  entrance_name_ = entrance.text();
  directory_fd_ = fcntl(directory_->fd(), F_DUPFD_CLOEXEC, kInheritedFrom);
  if (directory_fd_ < 0) directory_fd_ = directory_->fd();
  server_ =
      std::make_unique<job::PmiServer>(options_.pes, fmt::format("orrery_{:016x}", directory_->job_id()),
                                       options_.placement.process_mapping());
  pes_.resize(options_.pes);

  return take_charge(options_.timeout_ns);
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
  auto domains = directory_->domains();
  domains.resize(std::min<std::size_t>(domains.size(), 2));
  const auto gni = job::domain_variables(domains, options_.placement.of_pe(rank).nic_address);
  start.variables.insert(start.variables.end(), {{"ORRERY_JOB_AT", entrance_name_},
                                                 {"ORRERY_GNI_OF", entrance_name_},
                                                 {"PMI_GNI_PTAG", gni.ptag},
                                                 {"PMI_GNI_COOKIE", gni.cookie},
                                                 {"PMI_GNI_DEV_ID", gni.dev_id},
                                                 {"PMI_GNI_LOC_ADDR", gni.loc_addr}});
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
    check_deadline(now, options_.timeout_ns);
    if (kill_at_ != 0 && now >= kill_at_) {
      signal_all(SIGKILL);
      kill_at_ = now + kGraceNs;
      if (running() == 0) {
        // Only pipes are open: the processes that hold them left the PE's group. What is written is written.
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

int Launcher::poll_once() {
  std::vector<pollfd> fds{{signals_.get(), POLLIN, 0}, {entrance_->fd(), POLLIN, 0}};
  const std::size_t of_pes = fds.size();
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
  const int ready = poll(fds.data(), fds.size(), wait_ms());
  if (ready <= 0) return ready;
  // What PEs have said before they died counts: their bytes first, then which have exited.
  for (std::size_t i = 0; i < what.size(); ++i) {
    if (fds[of_pes + i].revents == 0) continue;
    const auto [rank, kind] = what[i];
    if (kind == 0) {
      on_pmi(rank);
      continue;
    }
    LabelledOutput& output = kind == 1 ? pes_[rank].out : pes_[rank].err;
    output.pump();
    judge_output(output.take_error());
  }
  if (fds[1].revents != 0)
    entrance_->serve(
        {.directory = directory_->fd(), .pmi_of = [this](std::uint32_t rank) { return new_pmi_for(rank); }});
  if (fds[0].revents != 0) {
    heed_signals();
    reap();
  }
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
    const bool was_in = server_->phase(rank) != job::PmiServer::Phase::finalised;
    const auto outputs = server_->receive(rank, {bytes.data(), static_cast<std::size_t>(got)});
    // It waits for the answer: which process it is can still be seen.
    if (was_in && server_->phase(rank) == job::PmiServer::Phase::finalised) {
      const auto process = directory_->process_of_rank(static_cast<std::int32_t>(rank));
      const auto info = process.ok() ? directory_->info_of(process.value()) : process.code();
      pe.may_return = info.ok() && info.value().pid != pe.pid;
    }
    for (const auto& output : outputs) {
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

// The PE's end of a wire in place of the one that was closed on the way to a process of that PE; invalid
// while another one speaks.
UniqueFd Launcher::new_pmi_for(std::uint32_t rank) {
  using Phase = job::PmiServer::Phase;
  int ends[2];
  if (rank >= pes_.size() || pes_[rank].exited) return UniqueFd();
  on_pmi(rank);  // the one before may have ended
  const Phase phase = server_->phase(rank);
  const bool is_free = phase == Phase::silent || phase == Phase::finalised ||
                       (phase == Phase::initialised && !pes_[rank].pmi.valid());
  if (!is_free || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return UniqueFd();
  server_->start_over(rank);
  pes_[rank].pmi.reset(ends[0]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return UniqueFd(ends[1]);
}

void Launcher::reap() {
  const auto find = [this](pid_t pid) {
    return std::find_if(pes_.begin(), pes_.end(), [&](const Pe& pe) { return pe.pid == pid; });
  };
  reap_children(
      guardian_, [&](pid_t pid) { return find(pid) != pes_.end(); },
      [&](pid_t pid, int status) { on_exit(static_cast<std::uint32_t>(find(pid) - pes_.begin()), status); });
}

void Launcher::on_exit(std::uint32_t rank, int status) {
  Pe& pe = pes_[rank];
  on_pmi(rank);  // what it said last
  for (LabelledOutput* const output : {&pe.out, &pe.err}) {
    output->drain();
    judge_output(output->take_error());
  }
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
  judge(rank, status);
  check_pmi();
}

void Launcher::signal_all(int signal) {
  for (const Pe& pe : pes_) {
    if (pe.pid > 0 && !pe.exited) kill(-pe.pid, signal);
  }
}

bool Launcher::has_exited(std::uint32_t rank) const { return pes_[rank].exited; }

bool Launcher::may_return(std::uint32_t rank) const { return pes_[rank].may_return; }

bool Launcher::may_come(std::uint32_t rank) const { return pes_[rank].pid > 0 && !pes_[rank].exited; }

void Launcher::ease_the_end() { signal_all(SIGCONT); }  // a stopped PE could not heed the request

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
