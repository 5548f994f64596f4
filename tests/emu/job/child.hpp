// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <utility>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::job::test {

// Longer than anything here takes, in nanoseconds.
inline constexpr std::int64_t kLong = 20'000'000'000;

// A forked process that runs `body` and then exits with its value, or sleeps for ever when `linger`.
// Killed and reaped by the destructor. The two ends of a pipe let it say "ready".
class Child {
 public:
  explicit Child(const std::function<int()>& body, bool linger = true) {
    int ends[2];
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      const int code = body();
      const char ready = static_cast<char>(code);
      if (write(ends[1], &ready, 1) != 1) _exit(99);
      while (linger) pause();
      _exit(code);
    }
    close(ends[1]);
    char ready = 98;
    if (read(ends[0], &ready, 1) == 1) code_ = ready;
    close(ends[0]);
  }
  ~Child() { kill_and_reap(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  int code() const { return code_; }  // what `body` returned; -1 when it did not
  void kill_only() { ::kill(pid_, SIGKILL); }
  void kill_and_reap() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int code_ = -1;
};

}  // namespace orrery::job::test
