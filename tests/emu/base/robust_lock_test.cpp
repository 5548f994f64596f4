// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/robust_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery {
namespace {

pthread_mutex_t* shared_mutex() {
  void* const page =
      mmap(nullptr, sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const mutex = static_cast<pthread_mutex_t*>(page);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  EXPECT_EQ(pthread_mutex_init(mutex, &attributes), 0);
  pthread_mutexattr_destroy(&attributes);
  return mutex;
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(RobustLock, ADeadHoldersLockIsInherited) {
  pthread_mutex_t* const mutex = shared_mutex();
  const pid_t holder = fork();
  if (holder == 0) {
    (void)lock_robust(*mutex);
    for (;;) pause();
  }
  while (pthread_mutex_trylock(mutex) == 0) {
    pthread_mutex_unlock(mutex);
    sleep_ms(1);
  }
  std::thread killer([holder] {
    sleep_ms(100);
    kill(holder, SIGKILL);
  });
  EXPECT_EQ(lock_robust(*mutex), EOWNERDEAD);
  EXPECT_EQ(pthread_mutex_consistent(mutex), 0);
  EXPECT_EQ(pthread_mutex_unlock(mutex), 0);
  killer.join();
  waitpid(holder, nullptr, 0);
}

// What a holder leaves that is killed behind the store of its unlock, where another has had the mutex
// before the kernel looks: a mutex that is free, and a waiter that no thread has woken. In a child, whose
// threads are left asleep if the waiter is.
TEST(RobustLock, AWaiterThatWasNotWokenLooksAgain) {
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_t* const mutex = shared_mutex();
    pthread_mutex_lock(mutex);
    std::atomic<bool> got{false};
    std::thread([&] { got = lock_robust(*mutex) == 0; }).detach();
    auto* const word = reinterpret_cast<std::atomic<unsigned>*>(&mutex->__data.__lock);
    constexpr unsigned kWaiters = 0x80000000u;
    while ((word->load() & kWaiters) == 0) sleep_ms(1);
    sleep_ms(200);
    word->store(0);
    for (int tenths = 0; tenths < 600 && !got; ++tenths) sleep_ms(100);
    _exit(got ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace orrery
