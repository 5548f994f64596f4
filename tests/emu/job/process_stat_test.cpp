// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/process_stat.hpp"
#include "tests/require.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::job {
namespace {

constexpr std::string_view kTail = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";

TEST(ProcessStat, NameMayHoldSpacesAndParentheses) {
  const auto stat = parse_process_stat("12 (a) R (b c) S" + std::string(kTail));
  EXPECT_TRUE(stat.exists);
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.start_time, 4711u);
}

TEST(ProcessStat, ZombieIsNotThere) {
  EXPECT_FALSE(parse_process_stat("12 (a) Z" + std::string(kTail)).exists);
}

TEST(ProcessStat, TextThatIsNoneIsNotThere) {
  for (const char* text :
       {"", "12", "12 (a)", "12 (a) ", "12 (a) R", "12 (a) R 1 2 3", "no parenthesis R 1 2"}) {
    EXPECT_FALSE(parse_process_stat(text).exists) << text;
  }
}

TEST(ProcessStat, FindsThisProcessAndNotAnImpossibleOne) {
  EXPECT_TRUE(process_stat(getpid()).exists);
  EXPECT_GT(process_stat(getpid()).start_time, 0u);
  EXPECT_FALSE(process_stat(0x7ffffff0).exists);
}

TEST(ProcessStat, ProcessIsStoppedWhenAllOfItsThreadsAre) {
  EXPECT_FALSE(is_stopped(getpid()));
  EXPECT_FALSE(is_stopped(0x7fff'ffff));
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  EXPECT_FALSE(is_stopped(child));
  int status = 0;
  ASSERT_EQ(kill(child, SIGSTOP), 0);
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(is_stopped(child));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(is_stopped(child));
}

// A debugger lets one thread of a stopped process run. Skipped in containers that refuse ptrace(2): nothing
// else makes such a process.
TEST(ProcessStat, ProcessOneOfWhoseThreadsRunsIsNotStopped) {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] {
      for (;;) pause();
    }).detach();
    for (;;) pause();
  }
  const auto second_thread = [child]() -> pid_t {
    for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", child))) {
      const pid_t thread = std::stoi(task.path().filename());
      if (thread != child) return thread;
    }
    return 0;
  };
  pid_t thread = 0;
  while ((thread = second_thread()) == 0) sched_yield();
  const bool is_traced = ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0;
  int status = 0;
  if (is_traced) {
    EXPECT_EQ(kill(child, SIGSTOP), 0);
    // Its delivery, and then the stop of the group, as one of the threads is told of each.
    do {
      ASSERT_EQ(waitpid(thread, &status, __WALL), thread);
      ASSERT_EQ(ptrace(PTRACE_CONT, thread, nullptr, status >> 16 == 0 ? WSTOPSIG(status) : 0), 0);
    } while (status >> 16 != PTRACE_EVENT_STOP);
    while (process_stat(child).state != 'T') sched_yield();
    while (process_stat(thread).state == 't') sched_yield();
    EXPECT_FALSE(is_stopped(child));
  }
  kill(child, SIGKILL);
  if (is_traced) waitpid(thread, &status, __WALL);
  waitpid(child, &status, __WALL);
  // In containers that refuse ptrace(2) no thread can be brought into the state that this is about.
  if (!is_traced) ORRERY_SKIP("ptrace") << "no thread may be traced here";
}

// In a child, because it takes /proc away.
TEST(ProcessStat, WithoutProcTheKernelIsAsked) {
  enum Told { right, no_mounts, living_is_dead, dead_is_living };
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  siginfo_t left{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(ended), &left, WEXITED | WNOWAIT), 0);  // a zombie
  const pid_t child = fork();
  if (child == 0) {
    if ((unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/proc", "tmpfs", 0, nullptr) != 0)
      _exit(no_mounts);
    const ProcessStat living = process_stat(getppid());
    if (!living.exists || living.known || !living.is_from(1)) _exit(living_is_dead);
    _exit(process_stat(ended).exists || process_stat(0x7ffffff0).exists ? dead_is_living : right);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  waitpid(ended, nullptr, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == no_mounts) ORRERY_SKIP("mounts") << "this user may not mount over /proc";
  EXPECT_EQ(WEXITSTATUS(status), right);
}

TEST(ProcessStat, AProcessSleepsWhenAllItsThreadsDo) {
  const pid_t sleeper = fork();
  if (sleeper == 0) {
    for (;;) pause();
  }
  const pid_t worker = fork();
  if (worker == 0) {
    for (;;) sched_getcpu();
  }
  // The sleeper needs a moment to get there.
  for (int i = 0; i < 5000 && !other_threads_sleep(sleeper); ++i) usleep(1000);
  EXPECT_TRUE(other_threads_sleep(sleeper));
  EXPECT_FALSE(other_threads_sleep(worker));
  for (const pid_t child : {sleeper, worker}) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

TEST(ProcessStat, AMarkOfRestChangesWhenAThreadOrAChildRunsThatIsNotTheRuntimes) {
  std::atomic<int> steps{0};
  std::array<std::array<int, 2>, 3> pipes{};
  for (auto& ends : pipes) ASSERT_EQ(pipe(ends.data()), 0);
  const auto step_at = [&](int which) {
    char token = 0;
    while (read(pipes[static_cast<std::size_t>(which)][0], &token, 1) == 1 && token == 0) ++steps;
  };
  std::thread ours(step_at, 0), program(step_at, 1);
  pthread_setname_np(ours.native_handle(), "orrery-test");
  int answers[2];
  ASSERT_EQ(pipe(answers), 0);
  const pid_t child = fork();
  if (child == 0) {
    for (char token = 0; read(pipes[2][0], &token, 1) == 1 && token == 0;) {
      if (write(answers[1], &token, 1) != 1) break;
    }
    _exit(0);
  }
  const auto mark = [] {
    std::uint64_t found = 0;
    while ((found = others_at_rest()) == 0) usleep(1000);
    return found;
  };
  const auto tell = [&](int which, char token) {
    ASSERT_EQ(write(pipes[static_cast<std::size_t>(which)][1], &token, 1), 1);
  };
  const auto run = [&](int which) {
    const int before = steps;
    tell(which, 0);
    while (which != 2 && steps == before) usleep(1000);
    if (which != 2) return;
    char token = 0;
    EXPECT_EQ(read(answers[0], &token, 1), 1);
  };
  const std::uint64_t at_first = mark();
  EXPECT_EQ(mark(), at_first);
  run(0);
  EXPECT_EQ(mark(), at_first) << "a thread of the runtime's";
  run(1);
  const std::uint64_t then = mark();
  EXPECT_NE(then, at_first) << "a thread of the program's";
  run(2);
  EXPECT_NE(mark(), then) << "a child";
  for (const int which : {0, 1, 2}) tell(which, 1);
  ours.join();
  program.join();
  waitpid(child, nullptr, 0);
}

// Each of them wakes the next one before it sleeps: they never sleep all.
TEST(ProcessStat, ThreadsThatWakeEachOtherNeverSleepAtOneTime) {
  constexpr int kThreads = 6;
  const pid_t ring = fork();
  if (ring == 0) {
    std::array<std::array<int, 2>, kThreads> pipes{};
    for (auto& ends : pipes) {
      if (pipe(ends.data()) != 0) _exit(1);
    }
    for (int i = 0; i < kThreads; ++i) {
      std::thread([&pipes, i] {
        char token = 0;
        while (read(pipes[i][0], &token, 1) == 1 && write(pipes[(i + 1) % kThreads][1], &token, 1) == 1) {
        }
      }).detach();
    }
    const char token = 0;
    if (write(pipes[0][1], &token, 1) != 1) _exit(1);
    for (;;) pause();
  }
  // The threads need a moment to be there.
  usleep(20'000);
  int slept = 0;
  for (int i = 0; i < 2000; ++i) slept += other_threads_sleep(ring) ? 1 : 0;
  EXPECT_EQ(slept, 0);
  kill(ring, SIGKILL);
  waitpid(ring, nullptr, 0);
}

TEST(ProcessStat, UsedUpDescriptorsAreNoDeath) {
  const std::uint64_t start = process_stat(getpid()).start_time;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const ProcessStat stat = process_stat(getpid());
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(stat.exists);
  EXPECT_FALSE(stat.known);
  EXPECT_TRUE(stat.is_from(start));
}

}  // namespace
}  // namespace orrery::job
