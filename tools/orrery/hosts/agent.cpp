// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/hosts/agent.hpp"

#include "emu/base/printable.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/random.hpp"
#include "tools/orrery/run/pe_process.hpp"
#include "tools/orrery/subcommand.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

// Descendants that left a PE's group may hold its pipes open: they are waited for so long.
constexpr std::int64_t kOutputGraceNs = 1'000'000'000;
// More than this of what PEs wrote is not taken in before the launcher has read it.
constexpr std::size_t kMostHeld = std::size_t{1} << 20;

// Every PE needs four descriptors of ours; a limit that does not go so far shows when one is started. Returns
// what it was, for the PEs.
std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const std::uint64_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

// Says on stderr, which the launcher's program hands through, why there is no agent here.
bool failed(std::string_view why) {
  fmt::print(stderr, "orrery: no agent: {}\n", printable(why));
  return false;
}

}  // namespace

int Agent::run() {
  if (!prepare()) return kExitFailure;
  say(AgentKind::hello, 0, kAgentHello);
  while (!broken_ && (!started_ || anybody_runs() || anything_open())) {
    poll_once();
    if (close_at_ != 0 && monotonic_ns() >= close_at_) break;
  }
  signal_all(SIGKILL);
  std::vector<pid_t> keep = children_before_;
  keep.push_back(guardian_.pid());
  sweep_descendants(keep);
  for (std::uint32_t i = 0; i < pes_.size(); ++i) drain(i);
  guardian_.dismiss();
  if (broken_) return kExitFailure;
  say(AgentKind::bye, 0, {});
  // A launcher that has gone closes the other end, and this ends.
  fcntl(out_.get(), F_SETFL, 0);
  flush();
  return to_say_.empty() ? 0 : kExitFailure;
}

bool Agent::prepare() {
  // First: a descriptor at or above the limit is not to be had.
  descriptor_limit_before_ = raise_descriptor_limit();
  // Nothing that is not a message may go that way.
  in_.reset(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, kInheritedFrom));
  out_.reset(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, kInheritedFrom));
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!in_.valid() || !out_.valid() || !null.valid()) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return failed(fmt::format("descriptors above {} are needed: the limit is {}; raise it (ulimit -Hn)",
                              kInheritedFrom, limit.rlim_max));
  }
  dup2(null.get(), STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  fcntl(in_.get(), F_SETFL, O_NONBLOCK);
  fcntl(out_.get(), F_SETFL, O_NONBLOCK);
  const sigset_t mine = take_signals({SIGCHLD, SIGINT, SIGTERM, SIGHUP}, &mask_before_);
  signal(SIGPIPE, SIG_IGN);
  signals_.reset(signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK));
  children_before_ = children();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const job::EntranceName name{getpid(), job::random_nonzero()};
  auto entrance = job::Entrance::open(name);
  if (!entrance.ok()) return failed("no socket for processes that lose their PMI wire");
  entrance_ = std::move(entrance).value();
  entrance_name_ = name.text();
  if (signals_.valid() && guardian_.start()) return true;
  return failed(std::strerror(errno));
}

void Agent::say(AgentKind kind, std::uint32_t rank, std::string_view bytes) {
  write_message(to_say_, kind, rank, bytes);
}

void Agent::flush() {
  while (!to_say_.empty()) {
    const ssize_t written = write(out_.get(), to_say_.data(), to_say_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      if (errno != EAGAIN) broken_ = true;
      return;
    }
    to_say_.erase(0, static_cast<std::size_t>(written));
  }
}

void Agent::poll_once() {
  flush();
  std::vector<pollfd> fds{{signals_.get(), POLLIN, 0},
                          {in_.get(), POLLIN, 0},
                          {out_.get(), static_cast<short>(to_say_.empty() ? 0 : POLLOUT), 0},
                          {entrance_->fd(), POLLIN, 0}};
  const bool room = to_say_.size() < kMostHeld;
  for (const Pe& pe : pes_) {
    fds.push_back({pe.pmi.get(), static_cast<short>(pe.to_pmi.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    fds.push_back({room ? pe.out.get() : -1, POLLIN, 0});
    fds.push_back({room ? pe.err.get() : -1, POLLIN, 0});
    fds.push_back({pe.held.empty() ? -1 : pe.input.get(), POLLOUT, 0});
  }
  int wait = -1;
  if (close_at_ != 0)
    wait =
        static_cast<int>(std::clamp<std::int64_t>((close_at_ - monotonic_ns()) / 1'000'000 + 1, 0, INT_MAX));
  if (poll(fds.data(), fds.size(), wait) <= 0) return;
  if ((fds[2].revents & POLLERR) != 0) broken_ = true;
  for (std::size_t i = 0; i < pes_.size(); ++i) {
    Pe& pe = pes_[i];
    const auto rank = first_ + static_cast<std::uint32_t>(i);
    const pollfd* const of_pe = &fds[4 + 4 * i];
    if ((of_pe[0].revents & POLLOUT) != 0) write_pmi(pe);
    if ((of_pe[0].revents & ~POLLOUT) != 0) forward(pe, pe.pmi, AgentKind::pmi, rank);
    if (of_pe[1].revents != 0) forward(pe, pe.out, AgentKind::out, rank);
    if (of_pe[2].revents != 0) forward(pe, pe.err, AgentKind::err, rank);
    if (of_pe[3].revents != 0) write_input(pe, rank);
  }
  if (fds[0].revents != 0) {
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
      // A signal ends us alone: the launcher sees that we are gone, and ends the job.
      if (info.ssi_signo != SIGCHLD) broken_ = true;
    }
    reap();
  }
  if (fds[3].revents != 0)
    entrance_->serve({.directory = -1, .pmi_of = [this](std::uint32_t rank) { return new_pmi_for(rank); }});
  // Last: PEs that this starts have no place in `fds`.
  if (fds[1].revents != 0) read_messages();
}

// One read: a PE that writes without end does not keep the others waiting.
void Agent::forward(Pe& pe, UniqueFd& from, AgentKind kind, std::uint32_t rank) {
  std::array<char, 16384> bytes;
  if (!from.valid()) return;
  const ssize_t got = read(from.get(), bytes.data(), bytes.size());
  if (got > 0) {
    const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
    // A client sends one request at a time.
    if (&from == &pe.pmi) pe.speaks = !text.starts_with("cmd=finalize");
    return say(kind, rank, text);
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  from.reset();
  if (&from == &pe.pmi) {
    pe.to_pmi.clear();
    pe.speaks = false;
  }
}

// As Launcher::new_pmi_for: a wire in place of the one that was closed; invalid while a program speaks.
UniqueFd Agent::new_pmi_for(std::uint32_t rank) {
  const std::uint32_t index = rank - first_;
  int ends[2];
  if (rank < first_ || index >= pes_.size() || pes_[index].exited) return UniqueFd();
  Pe& pe = pes_[index];
  forward(pe, pe.pmi, AgentKind::pmi, rank);  // what the one before said last
  if (pe.pmi.valid()) forward(pe, pe.pmi, AgentKind::pmi, rank);
  if (pe.speaks || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return UniqueFd();
  pe.pmi.reset(ends[0]);
  pe.to_pmi.clear();
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return UniqueFd(ends[1]);
}

// All that a PE has written so far.
void Agent::drain(std::uint32_t index) {
  Pe& pe = pes_[index];
  const std::uint32_t rank = first_ + index;
  for (auto [from, kind] :
       {std::pair{&pe.pmi, AgentKind::pmi}, {&pe.out, AgentKind::out}, {&pe.err, AgentKind::err}}) {
    // A pipe or a socket's buffer holds no more; a process that inherited it may go on writing.
    constexpr int kMostReads = 64;
    for (int i = 0; i < kMostReads && from->valid(); ++i) {
      const std::size_t before = to_say_.size();
      forward(pe, *from, kind, rank);
      if (to_say_.size() == before) break;
    }
  }
}

void Agent::read_messages() {
  std::array<char, 65536> bytes;
  const ssize_t got = read(in_.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    broken_ = true;
    return;
  }
  messages_.push({bytes.data(), static_cast<std::size_t>(got)});
  while (const auto message = messages_.pop()) {
    handle(*message);
    if (broken_) return;
  }
  if (messages_.broken()) broken_ = true;
}

void Agent::handle(const AgentMessage& message) {
  if (message.kind == AgentKind::start && !started_) return start(message.bytes);
  if (message.kind == AgentKind::signal && message.bytes.size() == 1) {
    const int signal = message.bytes[0];
    signal_all(signal);
    if (signal != SIGSTOP && signal != SIGCONT && signal != SIGUSR1 && signal != SIGUSR2)
      signal_all(SIGCONT);  // a stopped PE could not heed it
    return;
  }
  const std::uint32_t index = message.rank - first_;
  if (message.rank < first_ || index >= pes_.size()) {
    broken_ = true;
    return;
  }
  Pe& pe = pes_[index];
  switch (message.kind) {
    case AgentKind::pmi:
      pe.to_pmi += message.bytes;
      return write_pmi(pe);
    case AgentKind::input:
      if (message.bytes.empty()) pe.input_ends = true;
      pe.held += message.bytes;
      return write_input(pe, message.rank);
    default:
      broken_ = true;
  }
}

void Agent::write_pmi(Pe& pe) {
  if (!pe.pmi.valid()) return pe.to_pmi.clear();
  const ssize_t sent = send(pe.pmi.get(), pe.to_pmi.data(), pe.to_pmi.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) pe.to_pmi.erase(0, static_cast<std::size_t>(sent));
}

// What is written asks for more: an empty message.
void Agent::write_input(Pe& pe, std::uint32_t rank) {
  while (!pe.held.empty() && pe.input.valid()) {
    const ssize_t written = write(pe.input.get(), pe.held.data(), pe.held.size());
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (written < 0) {
      pe.input.reset();
      break;
    }
    pe.held.erase(0, static_cast<std::size_t>(written));
    if (pe.held.empty()) say(AgentKind::input, rank, {});
  }
  if (pe.input_ends && pe.held.empty()) pe.input.reset();
}

void Agent::start(const std::string& bytes) {
  auto request = decode_start(bytes);
  if (!request) {
    broken_ = true;
    return;
  }
  started_ = true;
  first_ = request->first;
  clearenv();
  for (const std::string& text : request->environment) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    setenv(text.substr(0, equals).c_str(), text.c_str() + equals + 1, 1);
  }
  // Another host may lack the folder: as with ssh, the PEs begin where the agent is.
  (void)chdir(request->folder.c_str());
  pes_.resize(request->count);
  for (std::uint32_t i = 0; i < request->count; ++i) start_pe(*request, i);
  if (!anybody_runs()) close_at_ = monotonic_ns() + kOutputGraceNs;
}

void Agent::start_pe(const StartRequest& request, std::uint32_t index) {
  Pe& pe = pes_[index];
  const std::uint32_t rank = first_ + index;
  const auto refuse = [&](const std::string& why) {
    pe.exited = true;
    say(AgentKind::refused, rank, why);
  };
  PeStart start;
  start.program = find_program(request.command.front());
  if (start.program.empty())
    return refuse(fmt::format("'{}' cannot be run: expected an executable file{}", request.command.front(),
                              request.command.front().find('/') == std::string::npos ? " in PATH" : ""));
  int pmi[2];
  int out[2];
  int err[2];
  int input[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pmi) != 0)
    return refuse(fmt::format("socketpair: {}", std::strerror(errno)));
  pe.pmi.reset(pmi[0]);
  const UniqueFd pmi_end(pmi[1]);
  if (pipe2(out, O_CLOEXEC) != 0) return refuse(fmt::format("pipe: {}", std::strerror(errno)));
  pe.out.reset(out[0]);
  const UniqueFd out_end(out[1]);
  if (pipe2(err, O_CLOEXEC) != 0) return refuse(fmt::format("pipe: {}", std::strerror(errno)));
  pe.err.reset(err[0]);
  const UniqueFd err_end(err[1]);
  if (rank == 0 && pipe2(input, O_CLOEXEC) != 0) return refuse(fmt::format("pipe: {}", std::strerror(errno)));
  const UniqueFd input_end(input[0]);
  pe.input.reset(input[1]);
  for (const int fd : {pe.pmi.get(), pe.out.get(), pe.err.get(), pe.input.get()}) {
    if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  start.rank = rank;
  start.size = request.size;
  start.local_rank = index;
  start.local_size = request.count;
  start.command = request.command;
  start.pmi = pmi_end.get();
  start.variables.emplace_back("ORRERY_PMI_AT", entrance_name_);
  start.input = input_end.get();
  start.out = out_end.get();
  start.err = err_end.get();
  if (request.bind_to_cores) start.core = index;
  start.signal_mask = mask_before_;
  start.descriptor_limit = descriptor_limit_before_;
  int error = 0;
  pe.pid = start_pe_process(start, guardian_, &error);
  if (pe.pid < 0) return refuse(fmt::format("fork: {}", std::strerror(errno)));
  if (error != 0) {
    guardian_.release(pe.pid);  // before its number can be another's
    waitpid(pe.pid, nullptr, 0);
    pe.pid = -1;
    return refuse(fmt::format("'{}' cannot be run: {}", request.command.front(), std::strerror(error)));
  }
  say(AgentKind::started, rank, std::to_string(pe.pid));
}

void Agent::reap() {
  const auto find = [this](pid_t pid) {
    return std::find_if(pes_.begin(), pes_.end(), [&](const Pe& pe) { return pe.pid == pid; });
  };
  reap_children(
      guardian_, [&](pid_t pid) { return find(pid) != pes_.end(); },
      [&](pid_t pid, int status) {
        const auto found = find(pid);
        const auto index = static_cast<std::uint32_t>(found - pes_.begin());
        drain(index);  // what it said last, before that it is gone
        found->exited = true;
        found->pmi.reset();
        found->input.reset();
        found->held.clear();
        say(AgentKind::exited, first_ + index, std::to_string(status));
      });
  if (started_ && !anybody_runs() && close_at_ == 0) close_at_ = monotonic_ns() + kOutputGraceNs;
}

void Agent::signal_all(int signal) {
  for (const Pe& pe : pes_) {
    if (pe.pid > 0 && !pe.exited) kill(-pe.pid, signal);
  }
}

bool Agent::anybody_runs() const {
  return std::any_of(pes_.begin(), pes_.end(), [](const Pe& pe) { return pe.pid > 0 && !pe.exited; });
}

bool Agent::anything_open() const {
  return std::any_of(pes_.begin(), pes_.end(), [](const Pe& pe) { return pe.out.valid() || pe.err.valid(); });
}

void add_agent(CLI::App& root, int& exit_code) {
  auto* command = root.add_subcommand(
      "agent", "Start PEs on this host for 'orrery run --hosts', which runs it (not for people)");
  command->callback([&exit_code] {
    if (isatty(STDIN_FILENO) == 1 || isatty(STDOUT_FILENO) == 1) {
      exit_code =
          usage_error("agent is run by 'orrery run --hosts', which talks with it: not from a terminal");
      return;
    }
    exit_code = Agent().run();
  });
}

}  // namespace orrery::tool
