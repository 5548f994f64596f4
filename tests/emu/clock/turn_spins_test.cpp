// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/turn_spins.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace orrery::clock {
namespace {

int cores() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  return CPU_COUNT(&mine);
}

constexpr std::int64_t kMs = 1'000'000;
bool never() { return false; }

// In a thread of its own, which is moved to one core.
template <typename Work>
void apart(Work work) {
  std::thread(work).join();
}

TEST(TurnSpins, OnABusyHostAPeJoinsTheOthersOnOneCoreAndSleeps) {
  apart([] {
    TurnSpins spins(1, sched_getcpu());
    spins.judge(100 * kMs, 1'000 * kMs);  // what was before it is of no account
    EXPECT_FALSE(spins.shares_core());
    spins.judge(106 * kMs, 1'022 * kMs);
    EXPECT_TRUE(spins.shares_core());
    EXPECT_EQ(cores(), 1);
    EXPECT_FALSE(spins.spin(never));
  });
}

TEST(TurnSpins, AHostThatIsBusyForAMomentLeavesItWhereItIs) {
  apart([] {
    const int before = cores();
    TurnSpins spins(1, sched_getcpu());
    spins.judge(0, 1'000 * kMs);
    for (int i = 1; i < 10; ++i) spins.judge(i * 4 * kMs, (1'000 + 22 * i) * kMs);
    spins.judge(50 * kMs, 1'200 * kMs);  // 14 of 2 ms: too short a time
    EXPECT_FALSE(spins.shares_core());
    EXPECT_EQ(cores(), before);
  });
}

// Ten threads on one core wait for it most of the time.
TEST(TurnSpins, TheKernelTellsABusyHost) {
  // A kernel without CONFIG_SCHED_INFO does not count what is tested here.
  if (access("/proc/thread-self/schedstat", R_OK) != 0)
    GTEST_SKIP() << "this kernel has no /proc/thread-self/schedstat";
  apart([] {
    const int core = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    std::atomic<bool> ends{false};
    std::vector<std::thread> others;
    for (int i = 0; i < 9; ++i) {
      others.emplace_back([&] {
        while (!ends) {
        }
      });
    }
    TurnSpins spins(100, core);
    const std::int64_t from = monotonic_ns();
    while (!spins.shares_core() && monotonic_ns() - from < 60'000 * kMs) (void)spins.spin(never);
    EXPECT_TRUE(spins.shares_core());
    ends = true;
    for (std::thread& other : others) other.join();
  });
}

TEST(TurnSpins, WherePesShareCoresFromTheStartItNeverSpins) {
  apart([] {
    const TurnSpins spins(0, sched_getcpu());
    EXPECT_TRUE(spins.shares_core());
    EXPECT_EQ(cores(), 1);
  });
}

TEST(TurnSpins, WithoutACoreToShareItStaysWhereItIs) {
  apart([] {
    const int before = cores();
    TurnSpins spins(1, -1);
    spins.judge(0, 1'000 * kMs);
    spins.judge(1'000 * kMs, 2'000 * kMs);
    EXPECT_FALSE(spins.shares_core());
    EXPECT_EQ(cores(), before);
  });
}

}  // namespace
}  // namespace orrery::clock
