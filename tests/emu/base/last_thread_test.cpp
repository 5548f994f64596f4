// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/last_thread.hpp"

#include "emu/base/wait.hpp"

#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {
bool g_is_child = false;
}

// LeakSanitizer asks. What the thread that forked holds is no leak of the child, which has no such thread.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return g_is_child ? 1 : 0; }

namespace orrery {
namespace {

constexpr std::int64_t kChainNs = 2'000'000'000;  // 40 looks for threads that are left

std::int64_t g_end = 0;
int g_told[2] = {-1, -1};

// Starts its successor and ends: at each moment there is a thread of the program, and none lives long.
void* link_of_chain(void*) {
  if (monotonic_ns() >= g_end) {
    (void)!write(g_told[1], "x", 1);
    return nullptr;
  }
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_t next{};
  if (pthread_create(&next, &detached, link_of_chain, nullptr) != 0) _exit(3);
  pthread_attr_destroy(&detached);
  return nullptr;
}

// In a thread, so that the child's first thread has no frames above this one that would catch its end.
void* fork_and_wait(void* status) {
  const pid_t child = fork();
  if (child == 0) {
    g_is_child = true;
    end_with_the_programs_last_thread();
    g_end = monotonic_ns() + kChainNs;
    (void)link_of_chain(nullptr);
    pthread_exit(nullptr);
  }
  waitpid(child, static_cast<int*>(status), 0);
  return nullptr;
}

TEST(LastThread, AProcessLivesAsLongAsThreadsThatStartEachOther) {
  ASSERT_EQ(pipe(g_told), 0);
  int status = -1;
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, fork_and_wait, &status), 0);
  pthread_join(thread, nullptr);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  close(g_told[1]);
  char said = 0;
  EXPECT_EQ(read(g_told[0], &said, 1), 1) << "the process ended before its last thread";
  close(g_told[0]);
}

}  // namespace
}  // namespace orrery
