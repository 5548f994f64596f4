// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/peer_watch.hpp"

#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/job/process_stat.hpp"

#include <cerrno>
#include <cstring>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace orrery::job {

namespace {

constexpr long kPollNs = 20'000'000;

bool still_there(pid_t pid, std::uint64_t start_time) { return process_stat(pid).is_from(start_time); }

}  // namespace

PeerWatch::PeerWatch(EventLoop& loop, HostDirectory& directory, Means means)
    : loop_(loop), directory_(directory), means_(means) {}

PeerWatch::~PeerWatch() {
  std::map<std::uint32_t, Watched> watched;
  UniqueFd timer;
  {
    const std::lock_guard lock(mu_);
    watched.swap(watched_);
    timer = std::move(poll_timer_);
  }
  for (const auto& [index, one] : watched) {
    if (one.pidfd.valid()) loop_.remove(one.pidfd.get());
  }
  if (timer.valid()) loop_.remove(timer.get());
  // A callback queued by add() for a process that was dead already may still be on its way.
  loop_.run_and_wait([] {});
}

Status PeerWatch::add(ProcessRef process, OnDeath on_death) {
  const auto info = directory_.info_of(process);
  if (!info.ok()) return info.code();
  if (info.value().pid_namespace != 0 && info.value().pid_namespace != pid_namespace()) {
    log::error("PE {} is in another pid namespace: its death cannot be watched for", info.value().rank);
    return Errc::unsupported;
  }
  forget_predecessor(process);
  const std::lock_guard lock(mu_);
  Watched& one = watched_[process.index];
  if (one.process == process) {
    one.callbacks.push_back(std::move(on_death));
    return {};
  }
  one = Watched{process, {}, info.value().pid, info.value().start_time, {}};
  one.callbacks.push_back(std::move(on_death));
  if (means_ == Means::automatic) {
    one.pidfd.reset(own_descriptor(static_cast<int>(syscall(SYS_pidfd_open, one.pid, 0))));
  }
  // Only now: a pid that was reused before the pidfd was opened belongs to another process.
  if (!still_there(one.pid, one.start_time)) {
    loop_.run_soon([this, process] { died(process); });
    return {};
  }
  const Status watching = one.pidfd.valid() ? loop_.add(one.pidfd.get(), EPOLLIN,
                                                        [this, process](std::uint32_t) { died(process); })
                                            : start_polling();
  // Else the next add() would find it there, and its callback would wait for a process that is not watched.
  if (!watching.ok()) watched_.erase(process.index);
  return watching;
}

// The slot had another process, which left without dying: its watch is of no use any more.
void PeerWatch::forget_predecessor(ProcessRef process) {
  ProcessRef before;
  {
    const std::lock_guard lock(mu_);
    const auto found = watched_.find(process.index);
    if (found == watched_.end() || found->second.process == process) return;
    before = found->second.process;
  }
  remove(before);
}

void PeerWatch::remove(ProcessRef process) {
  UniqueFd pidfd;
  {
    const std::lock_guard lock(mu_);
    const auto found = watched_.find(process.index);
    if (found == watched_.end() || found->second.process != process) return;
    pidfd = std::move(found->second.pidfd);
    watched_.erase(found);
  }
  if (pidfd.valid()) loop_.remove(pidfd.get());
}

// Loop thread.
void PeerWatch::died(ProcessRef process) {
  Watched one;
  {
    const std::lock_guard lock(mu_);
    const auto found = watched_.find(process.index);
    if (found == watched_.end() || found->second.process != process) return;
    one = std::move(found->second);
    watched_.erase(found);
  }
  if (one.pidfd.valid()) loop_.remove(one.pidfd.get());
  directory_.mark_dead(process);
  log::info("slot {} (pid {}) has ended", process.index, one.pid);
  for (const OnDeath& callback : one.callbacks) callback(process);
}

Status PeerWatch::start_polling() {
  if (poll_timer_.valid()) return {};
  UniqueFd timer(own_descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
  itimerspec when{};
  when.it_interval.tv_nsec = kPollNs;
  when.it_value.tv_nsec = kPollNs;
  if (!timer.valid() || timerfd_settime(timer.get(), 0, &when, nullptr) != 0) {
    log::error("peers cannot be watched: {}", std::strerror(errno));
    return Errc::system;
  }
  const Status added = loop_.add(timer.get(), EPOLLIN, [this](std::uint32_t) { poll_all(); });
  if (added.ok()) poll_timer_ = std::move(timer);
  return added;
}

// Loop thread.
void PeerWatch::poll_all() {
  std::vector<ProcessRef> gone;
  UniqueFd unused;
  {
    const std::lock_guard lock(mu_);
    if (!poll_timer_.valid()) return;  // being destroyed
    std::uint64_t expirations = 0;
    [[maybe_unused]] const auto got = ::read(poll_timer_.get(), &expirations, sizeof expirations);
    bool polled = false;
    for (const auto& [index, one] : watched_) {
      if (one.pidfd.valid()) continue;
      polled = true;
      if (!still_there(one.pid, one.start_time)) gone.push_back(one.process);
    }
    if (!polled) unused = std::move(poll_timer_);
  }
  if (unused.valid()) loop_.remove(unused.get());
  for (const ProcessRef process : gone) died(process);
}

}  // namespace orrery::job
