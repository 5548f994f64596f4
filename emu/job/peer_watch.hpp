// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/event_loop.hpp"
#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"
#include "emu/job/host_directory.hpp"

#include <functional>
#include <map>
#include <mutex>

namespace orrery::job {

// Tells when peers die. Owns a pidfd per watched process; without pidfds (old kernels, seccomp) it compares
// start times in /proc every 20 ms instead.
//   1. The death is written into the directory before the callback runs.
//   2. Callbacks run on the loop thread, once per watch.
//   3. A process that leaves the directory and lives on is not a death; no callback runs.
// Usage: PeerWatch watch(loop, directory); watch.add(peer, [](ProcessRef dead) { ... });
class PeerWatch {
 public:
  using OnDeath = std::function<void(ProcessRef)>;
  enum class Means : std::uint8_t { automatic, poll_only_for_test };

  PeerWatch(EventLoop& loop, HostDirectory& directory, Means means = Means::automatic);
  ~PeerWatch();  // after it no callback runs
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // Calls `on_death` when `process` has died; soon, when it is dead already. Watching a process twice adds a
  // second callback. Any thread. Errors: unreachable (it is not live any more: no callback will come),
  // system.
  Status add(ProcessRef process, OnDeath on_death);
  // Forgets all callbacks for `process`; does not wait for one that is running.
  void remove(ProcessRef process);

 private:
  struct Watched {
    ProcessRef process;
    UniqueFd pidfd;  // empty: polled
    pid_t pid = 0;
    std::uint64_t start_time = 0;
    std::vector<OnDeath> callbacks;
  };
  void forget_predecessor(ProcessRef process);
  void died(ProcessRef process);
  void poll_all();
  Status start_polling();

  EventLoop& loop_;
  HostDirectory& directory_;
  const Means means_;
  std::mutex mu_;
  std::map<std::uint32_t, Watched> watched_;  // guarded by mu_; by slot index
  UniqueFd poll_timer_;                       // guarded by mu_
};

}  // namespace orrery::job
