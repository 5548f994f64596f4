// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/run/guardian.hpp"

#include <cerrno>
#include <csignal>
#include <set>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

// Words on the pipe: pgid = watch it, -pgid = release it, 0 = goodbye.
[[noreturn]] void guard(int pipe, int other_end) {
  close(other_end);  // by itself: close_range may be refused (seccomp, Linux before 5.9), and it would see no
                     // end
  setsid();          // no signal for the launcher's group or terminal is for us
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  const int null = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  dup2(pipe, 3);
  syscall(SYS_close_range, 4u, ~0u, 0u);
  std::set<pid_t> groups;
  while (true) {
    pid_t word = 0;
    const ssize_t got = read(3, &word, sizeof word);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof word) break;
    if (word == 0) _exit(0);
    if (word > 0) groups.insert(word);
    if (word < 0) groups.erase(-word);
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

bool Guardian::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const UniqueFd read_end(ends[0]);
  pipe_.reset(ends[1]);
  pid_ = fork();
  if (pid_ == 0) guard(read_end.get(), pipe_.get());
  return pid_ > 0;
}

void Guardian::tell(pid_t word) {
  if (!pipe_.valid()) return;
  // The launcher ignores SIGPIPE; a guardian that was killed leaves PR_SET_PDEATHSIG to do the work.
  [[maybe_unused]] const auto written = write(pipe_.get(), &word, sizeof word);
}

void Guardian::watch(pid_t pgid) { tell(pgid); }
void Guardian::release(pid_t pgid) { tell(-pgid); }

void Guardian::dismiss() {
  if (pid_ <= 0) return;
  tell(0);
  pipe_.reset();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace orrery::tool
