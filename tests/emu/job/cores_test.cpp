// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/cores.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::job {
namespace {

TEST(Cores, FollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(allowed_cores().threads, static_cast<std::uint32_t>(CPU_COUNT(&before)));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const AllowedCores allowed = allowed_cores();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(allowed.threads, 1u);
  EXPECT_EQ(allowed.cores, 1u);
  EXPECT_EQ(allowed.usable(), 1u);
}

TEST(Cores, QuotaOfTheCgroupCountsInCpus) {
  EXPECT_EQ(parse_cpu_max("max 100000\n"), 0);
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max(""), 0);
  EXPECT_EQ(parse_cpu_max("100000"), 0);
  EXPECT_EQ(parse_cpu_max("100000 0\n"), 0);
  EXPECT_EQ((AllowedCores{.cores = 4, .threads = 8, .cpu_quota = 2.5}).usable(), 2u);
  EXPECT_EQ((AllowedCores{.cores = 4, .threads = 8, .cpu_quota = 0.5}).usable(), 1u);
  EXPECT_EQ((AllowedCores{.cores = 4, .threads = 8, .cpu_quota = 0}).usable(), 8u);
}

// As a launcher does that gives each PE a core of its own.
TEST(Cores, OfTheParentAreCountedWhereTheChildIsBound) {
  const std::uint32_t ours = allowed_cores().threads;
  const pid_t child = fork();
  if (child == 0) {
    cpu_set_t one;
    sched_getaffinity(0, sizeof one, &one);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &one)) ++cpu;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    // ThreadSanitizer has a thread of its own here, which is not bound: so this one is asked.
    const bool bound = sched_setaffinity(0, sizeof one, &one) == 0 &&
                       sched_getaffinity(0, sizeof one, &one) == 0 && CPU_COUNT(&one) == 1;
    _exit(bound && parent_threads() == ours ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Cores, SharedCoresDoNotSpin) {
  EXPECT_EQ(wait_budget_for(4, 2).spins, 0u);
  EXPECT_GT(wait_budget_for(4, 2).yields, 0u);
  EXPECT_GT(wait_budget_for(2, 2).spins, 0u);
  EXPECT_EQ(wait_budget_for(2, 0).spins, WaitBudget{}.spins);
}

TEST(Cores, MemoryCanBeAskedToBeNear) {
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_TRUE(bind_memory_here(memory, 4096).ok());
  munmap(memory, 4096);
}

}  // namespace
}  // namespace orrery::job
