// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

// A child that runs one operation, instruction by instruction.
namespace orrery::test {

// While it lives, the calling thread and the children that it forks stay on the processor of the moment. A
// step is two switches between the child and its tracer: between two processors each is an interrupt.
class OnOneProcessor {
 public:
  OnOneProcessor() {
    const int processor = sched_getcpu();
    if (processor < 0 || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    pinned_ = sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~OnOneProcessor() {
    if (pinned_) (void)sched_setaffinity(0, sizeof before_, &before_);
  }
  OnOneProcessor(const OnOneProcessor&) = delete;
  OnOneProcessor& operator=(const OnOneProcessor&) = delete;

 private:
  cpu_set_t before_;
  bool pinned_ = false;
};

class Stepper {
 public:
  enum class End { stopped, finished, crashed, refused };

  Stepper() {
    void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    finished_ = page == MAP_FAILED ? nullptr : new (page) std::atomic<int>(0);
  }
  ~Stepper() { munmap(finished_, 4096); }
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  // Forks a child that runs `operation`, and stops it for good after `limit` instructions.
  End start(const std::function<void()>& operation, std::uint64_t limit) {
    const OnOneProcessor pinned;
    steps = 0;
    finished_->store(0);
    child_ = fork();
    if (child_ == 0) {
      if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kRefused);
      ::kill(getpid(), SIGSTOP);
      operation();
      finished_->store(1);
      for (;;) pause();
    }
    int status = 0;
    if (child_ < 0 || waitpid(child_, &status, 0) != child_ || !WIFSTOPPED(status)) return End::refused;
    while (steps < limit) {
      if (finished_->load() != 0) return End::finished;
      if (ptrace(PTRACE_SINGLESTEP, child_, nullptr, nullptr) != 0) return End::crashed;
      if (waitpid(child_, &status, 0) != child_ || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
        return End::crashed;
      ++steps;
    }
    return End::stopped;
  }

  // Lets a stopped child run on until the operation is over: finished, or crashed.
  End let_finish() {
    ptrace(PTRACE_CONT, child_, nullptr, nullptr);
    while (finished_->load() == 0) {
      int status = 0;
      // Signals that end it are told to its tracer first.
      if (waitpid(child_, &status, WNOHANG) == child_) return End::crashed;
      sched_yield();
    }
    return End::finished;
  }

  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    int status = 0;
    while (waitpid(child_, &status, 0) == child_ && WIFSTOPPED(status)) {
    }
    child_ = 0;
  }

  std::uint64_t steps = 0;  // instructions that the last child made

 private:
  static constexpr int kRefused = 77;
  std::atomic<int>* finished_ = nullptr;
  pid_t child_ = 0;
};

}  // namespace orrery::test
