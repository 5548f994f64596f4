// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/check.hpp"
#include "emu/nic/events/event_record.hpp"
#include "tests/emu/nic/target/match_bench.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::nic::match {

// Processes with a match unit each, which work on their own and on each other's at random by seed. Each
// change is noted, in the session that makes it, in the log of its unit; a test's model goes through the logs
// afterwards. With `killed` every second process is killed by SIGKILL at some moment.
template <typename UnitBench, typename Step, int kProcesses, int kMostSteps>
class LoggedProcesses {
 public:
  template <typename Make>
  LoggedProcesses(std::uint64_t seed, bool killed, Make make_bench) : seed_(seed), killed_(killed) {
    void* const logs = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ORRERY_CHECK(logs != MAP_FAILED, "no memory for the logs");
    shared_ = static_cast<Shared*>(logs);
    for (int i = 0; i < kProcesses; ++i) {
      benches_[i] = make_bench();
      noted_[i] = benches_[i]->new_counter();
    }
  }
  virtual ~LoggedProcesses() { munmap(shared_, sizeof(Shared)); }
  LoggedProcesses(const LoggedProcesses&) = delete;
  LoggedProcesses& operator=(const LoggedProcesses&) = delete;

  // Runs all of them, and then the model. What is wrong; empty: nothing.
  std::string run() {
    std::array<pid_t, kProcesses> children{};
    for (int rank = 0; rank < kProcesses; ++rank) {
      children[rank] = fork();
      if (children[rank] == 0) {
        work(rank);
        _exit(0);
      }
    }
    if (killed_) kill_some(children);
    std::string wrong;
    for (int rank = 0; rank < kProcesses; ++rank) {
      int status = 0;
      waitpid(children[rank], &status, 0);
      const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && killed_;
      if (!was_killed && status != 0)
        wrong = "process " + std::to_string(rank) + " ended with " + std::to_string(status);
    }
    for (int rank = 0; rank < kProcesses && wrong.empty(); ++rank) {
      { const Session session(benches_[rank]->view); }  // takes back what a killed process began
      wrong = replay(rank);
    }
    return wrong;
  }

 protected:
  // In the child of that rank.
  virtual void work(int rank) = 0;
  // The model, over the log of that unit; its events against those in the queue.
  virtual std::string replay(int rank) = 0;

  // Returns when all have begun.
  void start_together() {
    shared_->started.fetch_add(1);
    while (shared_->started.load() < kProcesses) std::this_thread::yield();
  }
  // In the session of the change: stands if and when the change does.
  void note(Session& session, int rank, const Step& step) {
    std::uint64_t& noted = session.view().counter(noted_[rank]).success;
    shared_->log[rank][noted] = step;
    session.set(noted, noted + 1);
  }
  std::uint64_t steps_of(int rank) const { return benches_[rank]->view.counter(noted_[rank]).success; }
  const Step& step_of(int rank, std::uint64_t n) const { return shared_->log[rank][n]; }
  std::vector<EventRecord> events_of(int rank) const {
    std::vector<EventRecord> events;
    for (EventRecord event{}; benches_[rank]->next(&event);) events.push_back(event);
    return events;
  }

  // The events that the model's `lists` told of a step, against those from *taken on; `told_by` makes one of
  // the model's of an event.
  template <typename Lists, typename ToldBy>
  static std::string compare(Lists& lists, const std::vector<EventRecord>& events, std::size_t* taken,
                             ToldBy told_by) {
    for (; !lists.told.empty(); lists.told.pop_front(), ++*taken) {
      if (*taken == events.size()) return "no event " + text(lists.told.front());
      const auto got = told_by(events[*taken]);
      if (!(got == lists.told.front())) return text(got) + " instead of " + text(lists.told.front());
    }
    return "";
  }

  const std::uint64_t seed_;
  const bool killed_;
  std::array<std::unique_ptr<UnitBench>, kProcesses> benches_;

 private:
  struct Shared {
    std::atomic<int> started;
    Step log[kProcesses][kMostSteps];
  };

  void kill_some(const std::array<pid_t, kProcesses>& children) const {
    std::mt19937_64 random(seed_);
    while (shared_->started.load() < kProcesses) std::this_thread::yield();
    for (int rank = 1; rank < kProcesses; rank += 2) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      kill(children[rank], SIGKILL);
    }
  }

  Shared* shared_ = nullptr;
  std::array<std::uint32_t, kProcesses> noted_{};
};

}  // namespace orrery::nic::match
