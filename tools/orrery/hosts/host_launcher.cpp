// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/hosts/host_launcher.hpp"

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
#include <cstring>
#include <string_view>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

std::uint32_t pes_of(const std::vector<HostShare>& hosts) {
  std::uint32_t pes = 0;
  for (const HostShare& share : hosts) pes += share.count;
  return pes;
}

}  // namespace

HostLauncher::HostLauncher(HostRunOptions options)
    : JobControl(pes_of(options.hosts), options.keep_going), options_(std::move(options)) {}

HostLauncher::~HostLauncher() = default;

int HostLauncher::run() {
  if (!prepare()) return kExitFailure;
  for (Host& host : hosts_) {
    if ((code_ && !options_.keep_going) || !start_agent(host)) break;
  }
  serve();
  std::vector<pid_t> keep = children_before_;
  keep.push_back(guardian_.pid());
  sweep_descendants(keep);
  guardian_.dismiss();
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  return code_.value_or(0);
}

bool HostLauncher::prepare() {
  std::string mapping;
  for (std::uint32_t i = 0; i < options_.hosts.size(); ++i) {
    const HostShare& share = options_.hosts[i];
    Host& host = hosts_.emplace_back();
    host.share = share;
    mapping += fmt::format("{}({},1,{})", mapping.empty() ? "" : ",", i, share.count);
    for (std::uint32_t k = 0; k < share.count; ++k) {
      Pe& pe = pes_.emplace_back();
      pe.host = i;
      if (!options_.label) continue;
      const std::string label = fmt::format("[{}] ", share.first + k);
      pe.out = LabelledOutput(UniqueFd(), STDOUT_FILENO, label);
      pe.err = LabelledOutput(UniqueFd(), STDERR_FILENO, label);
    }
  }
  server_ = std::make_unique<job::PmiServer>(pe_count_, fmt::format("orrery_{:016x}", job::random_nonzero()),
                                             fmt::format("(vector,{})", mapping));
  return take_charge(options_.timeout_ns);
}

void HostLauncher::serve() {
  const auto busy = [this] {
    return std::any_of(hosts_.begin(), hosts_.end(),
                       [this](const Host& host) { return host.pid > 0 && is_open(host); });
  };
  while (busy()) {
    poll_once();
    const std::int64_t now = monotonic_ns();
    check_deadline(now, options_.timeout_ns);
    lose_silent(now);
    if (kill_at_ != 0 && now >= kill_at_) {
      // First by their agents; then without those, which do it when they are alone.
      if (kills_++ == 0)
        signal_all(SIGKILL);
      else
        cut_off();
      kill_at_ = now + kGraceNs;
    }
  }
  for (Pe& pe : pes_) {
    pe.out.finish();
    pe.err.finish();
  }
}

void HostLauncher::poll_once() {
  std::vector<pollfd> fds{{signals_.get(), POLLIN, 0}, {wants_input_ ? STDIN_FILENO : -1, POLLIN, 0}};
  for (const Host& host : hosts_) {
    fds.push_back({host.from.get(), POLLIN, 0});
    fds.push_back({host.to_send.empty() ? -1 : host.to.get(), POLLOUT, 0});
  }
  if (poll(fds.data(), fds.size(), wait_for_hosts_ms()) <= 0) return;
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
    if (fds[2 + 2 * i].revents != 0) read_from(i);
    if (fds[3 + 2 * i].revents != 0) write_to(hosts_[i]);
  }
  if (fds[1].revents != 0) read_input();
  if (fds[0].revents != 0) {
    heed_signals();
    reap();
  }
}

void HostLauncher::read_from(std::uint32_t index) {
  Host& host = hosts_[index];
  std::array<char, 65536> bytes;
  const ssize_t got = read(host.from.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) {
    host.messages.push({bytes.data(), static_cast<std::size_t>(got)});
    while (host.from.valid()) {
      const auto message = host.messages.pop();
      if (!message) break;
      handle(host, *message);
    }
    if (host.messages.broken()) {
      // What a shell there writes before the agent begins, for example.
      std::string text(host.messages.rest().substr(0, 60));
      std::replace_if(
          text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '.');
      lose(host, fmt::format("it wrote '{}', which is not the language of 'orrery agent'", text));
    }
    return;
  }
  host.from.reset();
  host.to.reset();
  // What ssh or its stand-in ended with is said when it is known.
  if (host.exited && !host.said_bye)
    lose(host, fmt::format("it ended with code {}", exit_code_of(host.status)));
}

void HostLauncher::write_to(Host& host) {
  while (!host.to_send.empty() && host.to.valid()) {
    const ssize_t written = write(host.to.get(), host.to_send.data(), host.to_send.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      if (errno != EAGAIN) host.to.reset();  // it is gone, which we hear from the other side
      break;
    }
    host.to_send.erase(0, static_cast<std::size_t>(written));
  }
  if (!host.to.valid()) host.to_send.clear();
}

void HostLauncher::handle(Host& host, const AgentMessage& message) {
  if (message.kind == AgentKind::hello && !host.greeted) {
    if (message.bytes != kAgentHello)
      return lose(host,
                  fmt::format("it is another version: '{}' there, '{}' here", message.bytes, kAgentHello));
    host.greeted = true;
    host.silent_at = monotonic_ns() + options_.patience_ns;
    return send_start(host);
  }
  if (message.kind == AgentKind::bye) {
    host.silent_at = 0;
    for (std::uint32_t i = 0; i < host.share.count; ++i) {
      if (!pes_[host.share.first + i].exited) return lose(host, "it left before its PEs");
    }
    host.said_bye = true;
    host.to.reset();
    host.to_send.clear();
    // All that is left to wait for is ssh.
    if (running() == 0 && kill_at_ == 0) kill_at_ = monotonic_ns() + kGraceNs;
    return;
  }
  const std::uint32_t rank = message.rank;
  const std::uint32_t index = rank - host.share.first;
  if (!host.greeted || rank < host.share.first || index >= host.share.count)
    return lose(host, fmt::format("it speaks of PE {}, which is not there", rank));
  Pe& pe = pes_[rank];
  switch (message.kind) {
    case AgentKind::started:
      if (pe.pid == 0 && !pe.exited) begun(host);
      pe.pid = parse_number(message.bytes, INT_MAX).value_or(0);
      if (rank == 0) wants_input_ = isatty(STDIN_FILENO) != 1;
      return;
    case AgentKind::refused:
      if (pe.pid == 0 && !pe.exited) begun(host);
      pe.exited = true;
      pe.status = kExitUsage << 8;
      return fail(kExitUsage, fmt::format("host {}: {}", host.share.name, message.bytes));
    case AgentKind::pmi:
      return on_pmi(rank, message.bytes);
    case AgentKind::input:
      wants_input_ = true;
      return;
    case AgentKind::out:
      return hand_on(pe.out, STDOUT_FILENO, message.bytes);
    case AgentKind::err:
      return hand_on(pe.err, STDERR_FILENO, message.bytes);
    case AgentKind::exited:
      return on_exit(rank,
                     static_cast<int>(parse_number(message.bytes, INT_MAX).value_or(kExitFailure << 8)));
    default:
      return lose(host, "it said what an agent does not say");
  }
}

void HostLauncher::hand_on(LabelledOutput& labelled, int to, std::string_view bytes) {
  if (!options_.label) return judge_output(write_whole(to, bytes));
  labelled.take(bytes);
  judge_output(labelled.take_error());
}

// Our input goes to PE 0, one piece at a time: the next one when it has taken that.
void HostLauncher::read_input() {
  std::array<char, 32768> bytes;
  const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  wants_input_ = false;
  Host& host = hosts_[pes_[0].host];
  write_message(host.to_send, AgentKind::input, 0,
                {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
  write_to(host);
}

void HostLauncher::on_pmi(std::uint32_t rank, std::string_view bytes) {
  for (const auto& output : server_->receive(rank, bytes)) {
    Host& host = hosts_[pes_[output.rank].host];
    write_message(host.to_send, AgentKind::pmi, output.rank, output.text);
  }
  for (Host& host : hosts_) write_to(host);
  check_pmi();
}

void HostLauncher::on_exit(std::uint32_t rank, int status) {
  Pe& pe = pes_[rank];
  if (pe.exited) return;
  pe.exited = true;
  pe.status = status;
  for (LabelledOutput* const output : {&pe.out, &pe.err}) {
    output->finish();
    judge_output(output->take_error());
  }
  judge(rank, status);
  check_pmi();
}

void HostLauncher::reap() {
  const auto find = [this](pid_t pid) {
    return std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& host) { return host.pid == pid; });
  };
  reap_children(
      guardian_, [&](pid_t pid) { return find(pid) != hosts_.end(); },
      [&](pid_t pid, int status) {
        Host& host = *find(pid);
        host.exited = true;
        host.status = status;
        // Its last words may still be in the pipe: then it is lost when they have been read.
        if (!host.from.valid() && !host.said_bye)
          lose(host, fmt::format("it ended with code {}", exit_code_of(status)));
      });
}

// One more of its PEs runs, or cannot.
void HostLauncher::begun(Host& host) {
  if (host.to_begin > 0) --host.to_begin;
  host.silent_at = host.to_begin == 0 ? 0 : monotonic_ns() + options_.patience_ns;
}

// A host that says nothing before its PEs run keeps the others waiting at their first barrier.
void HostLauncher::lose_silent(std::int64_t now) {
  for (Host& host : hosts_) {
    if (host.silent_at == 0 || now < host.silent_at || !host.from.valid()) continue;
    host.silent_at = 0;
    lose(host, fmt::format("it said nothing for {} s ({})", static_cast<double>(options_.patience_ns) / 1e9,
                           host.greeted ? "it has not started its PEs" : "no 'orrery agent' answers there"));
  }
}

int HostLauncher::wait_for_hosts_ms() const {
  const int wait = wait_ms();
  std::int64_t first = INT64_MAX;
  for (const Host& host : hosts_) {
    if (host.silent_at != 0 && host.from.valid()) first = std::min(first, host.silent_at);
  }
  if (first == INT64_MAX) return wait;
  const auto until =
      static_cast<int>(std::clamp<std::int64_t>((first - monotonic_ns()) / 1'000'000 + 1, 0, INT_MAX));
  return wait < 0 ? until : std::min(wait, until);
}

// No more comes from that host: its PEs, which its agent ends when its connection closes, count as ended.
void HostLauncher::lose(Host& host, const std::string& why) {
  host.from.reset();
  host.to.reset();
  host.to_send.clear();
  if (!host.exited && host.pid > 0) kill(-host.pid, SIGKILL);
  for (std::uint32_t rank = host.share.first; rank < host.share.first + host.share.count; ++rank) {
    Pe& pe = pes_[rank];
    if (pe.exited) continue;
    pe.exited = true;
    pe.status = kExitFailure << 8;
  }
  fail(kExitFailure, fmt::format("host {}: its agent is lost: {}", host.share.name, why));
}

void HostLauncher::signal_all(int signal) {
  const char byte = static_cast<char>(signal);
  for (Host& host : hosts_) {
    if (!host.greeted || !host.to.valid()) continue;
    write_message(host.to_send, AgentKind::signal, 0, {&byte, 1});
    write_to(host);
  }
}

// Agents that are alone end what they started. What stands between may hang.
void HostLauncher::cut_off() {
  for (Host& host : hosts_) {
    host.to.reset();
    if (kills_ < 3 || host.pid <= 0) continue;
    host.from.reset();
    if (!host.exited) kill(-host.pid, SIGKILL);
  }
}

std::string HostLauncher::who(std::uint32_t rank) const {
  const Pe& pe = pes_[rank];
  return fmt::format("PE {} (pid {} on {})", rank, pe.pid, hosts_[pe.host].share.name);
}

PeFacts HostLauncher::facts_of(std::uint32_t rank) const {
  const Pe& pe = pes_[rank];
  PeFacts facts;
  facts.exited = pe.exited;
  facts.status = pe.status;
  facts.name = fmt::format("PE {} (pid {})", rank, pe.pid);
  facts.place = fmt::format("host {}", hosts_[pe.host].share.name);
  if (pe.pid == 0) facts.doing = "has not been started";
  return facts;
}

bool HostLauncher::has_exited(std::uint32_t rank) const { return pes_[rank].exited; }

bool HostLauncher::may_come(std::uint32_t rank) const {
  const Host& host = hosts_[pes_[rank].host];
  return !pes_[rank].exited && is_open(host) && host.pid > 0;
}

void HostLauncher::ease_the_end() {
  // A host that has not begun yet need not.
  for (Host& host : hosts_) {
    if (!host.greeted) host.to.reset();
  }
}

std::uint32_t HostLauncher::running() const {
  return static_cast<std::uint32_t>(
      std::count_if(pes_.begin(), pes_.end(), [](const Pe& pe) { return pe.pid != 0 && !pe.exited; }));
}

}  // namespace orrery::tool
