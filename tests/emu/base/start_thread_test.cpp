// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/start_thread.hpp"

#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery {
namespace {

// Runs `body` in a child that may have one thread and no more; its exit code.
template <typename Body>
int without_room(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    // A user of its own, whose only process this is; root has no such limit.
    if (geteuid() == 0 && setuid(61234) != 0) _exit(77);
    const rlimit one{1, 1};
    if (setrlimit(RLIMIT_NPROC, &one) != 0) _exit(77);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(StartThread, StartsOne) {
  std::atomic<int> ran{0};
  std::thread thread;
  ASSERT_TRUE(start_thread(thread, [&] { ran = 1; }));
  thread.join();
  EXPECT_EQ(ran, 1);
  // Its name says that it is the runtime's: it does not keep the process (last_thread.hpp).
  std::string name(16, '\0');
  start_detached_thread("orrery-test", [&] {
    while (pthread_getname_np(pthread_self(), name.data(), name.size()) == 0 && !name.starts_with("orrery-"))
      std::this_thread::yield();
    ran = 2;
  });
  while (ran != 2) std::this_thread::yield();
}

TEST(StartThread, SaysThatThereIsNoRoomAndDoesNotEndTheProgram) {
  const int code = without_room([] {
    std::thread thread;
    const bool started = start_thread(
        thread, [] {}, 1'000'000);
    if (!started) return thread.joinable() ? 1 : 0;
    thread.join();
    return 2;
  });
  if (code == 77 || code == 2) ORRERY_SKIP("root") << "threads cannot be limited here";
  EXPECT_EQ(code, 0) << "134: the program was ended";
}

}  // namespace
}  // namespace orrery
