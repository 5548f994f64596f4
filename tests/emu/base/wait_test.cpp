// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/wait.hpp"

#include <gtest/gtest.h>

#include <new>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery {
namespace {

TEST(Futex, TimesOutAtItsDeadline) {
  FutexWord word{5};
  const auto start = monotonic_ns();
  EXPECT_FALSE(futex_wait(word, 5, start + 2'000'000));
  EXPECT_GE(monotonic_ns(), start + 2'000'000);
}

TEST(Futex, ReturnsAtOnceWhenTheWordDiffers) {
  FutexWord word{5};
  EXPECT_TRUE(futex_wait(word, 4, std::nullopt));
}

TEST(Futex, WakesASleeperInAnotherProcess) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* word = new (page) FutexWord{0};
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    while (word->load(std::memory_order_acquire) == 0) futex_wait(*word, 0, std::nullopt);
    _exit(17);
  }
  word->store(1, std::memory_order_release);
  futex_wake(*word, 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 17);
  munmap(page, 4096);
}

TEST(SpinThenYield, GivesUpAfterItsBudget) {
  int asked = 0;
  EXPECT_FALSE(spin_then_yield({.spins = 3, .yields = 2}, [&] { return ++asked > 100; }));
  EXPECT_EQ(asked, 6);
}

}  // namespace
}  // namespace orrery
