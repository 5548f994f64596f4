// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/loop_watch.hpp"

#include "tests/emu/clock/watched.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::clock {
namespace {

// Writes a byte, in a microsecond of virtual time.
void write_soon(VirtualClock& clock, int to) {
  struct Write final : Task {
    Write(VirtualClock& c, int file) : clock(c), to(file) {}
    void run() override {
      EXPECT_EQ(write(to, "x", 1), 1);
      clock.touch(1);
      delete this;
    }
    VirtualClock& clock;
    const int to;
  };
  clock.enter();
  clock.schedule_there(clock.now() + Picos{1'000'000}, new Write(clock, to), 1);
  clock.leave();
}

// Until the program is stepped: as if so much processor time had passed without a call.
void begin_steps() {
  const int tick = SIGRTMAX - 3;
  while (!loop_watch::steps()) (void)raise(tick);
}

TEST(LoopWatch, ALoopThatReadsMemoryNoPeerMayWriteWaits) {
  Watched watched;
  volatile std::uint64_t word = 0;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const std::uint64_t before = loop_watch::waits();
    const Picos from = watched.clock().now();
    watched.store_soon(&word, i);
    while (word != i) {
    }
    EXPECT_EQ(loop_watch::waits(), before + 1);
    EXPECT_GE(watched.clock().now() - from, Picos{1'000'000});
  }
}

TEST(LoopWatch, ALoopThatLooksAtADescriptorWaits) {
  Watched watched;
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  write_soon(watched.clock(), ends[1]);
  const std::uint64_t before = loop_watch::waits();
  char byte = 0;
  while (read(ends[0], &byte, 1) != 1) {
  }
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(loop_watch::waits(), before + 1);
  close(ends[0]);
  close(ends[1]);
}

// Each round of it has the same registers, but brings something.
TEST(LoopWatch, ALoopThatReadsWhatIsThereDoesNotWait) {
  Watched watched;
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  const std::uint64_t before = loop_watch::waits();
  const std::vector<char> bytes(1 << 20);
  ASSERT_EQ(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20), 1 << 20);
  for (int times = 0; times < 4; ++times) {
    ASSERT_EQ(write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    begin_steps();
    char byte = 0;
    while (read(ends[0], &byte, 1) == 1) {
    }
  }
  EXPECT_EQ(loop_watch::waits(), before);
  close(ends[0]);
  close(ends[1]);
}

// Of a short loop all general registers are the same after each round: what it computes is in another one.
TEST(LoopWatch, AProgramThatComputesDoesNotWait) {
  Watched watched;
  const std::uint64_t before = loop_watch::waits();
  double all = 0;
  for (int times = 0; times < 20; ++times) {
    begin_steps();
    double root = 1, old = 0;
    while (std::abs(root - old) > 1e-300 * times) {
      old = root;
      root = 0.5 * (root + (2.0 + times) / root);
    }
    for (double rest = 1; rest > 0; rest -= 0x1p-14) all += rest;
    all += root;
  }
  EXPECT_GT(all, 20);
  EXPECT_EQ(loop_watch::waits(), before);
}

#if defined(__x86_64__)
// No register holds what it counts.
TEST(LoopWatch, ALoopThatCountsInMemoryDoesNotWait) {
  Watched watched;
  const std::uint64_t before = loop_watch::waits();
  for (int times = 0; times < 10; ++times) {
    std::uint64_t counted = 0;
    begin_steps();
    asm volatile("1: addq $1, %0; cmpq $10000000, %0; jb 1b" : "+m"(counted) : : "cc");
    EXPECT_EQ(counted, 10'000'000u);
  }
  EXPECT_EQ(loop_watch::waits(), before);
}
#endif

// It waits for a thread that runs: what that brings comes at the time at which it began.
TEST(LoopWatch, ALoopThatWaitsForAThreadThatComputesTakesNoTime) {
  Watched watched;
  const std::uint64_t before = loop_watch::waits();
  const Picos from = watched.clock().now();
  volatile bool there = false;
  std::thread other([&] {
    compute_for(300'000'000);
    there = true;
  });
  while (!there) {
  }
  other.join();
  EXPECT_EQ(loop_watch::waits(), before);
  EXPECT_EQ(watched.clock().now(), from);
}

TEST(LoopWatch, StepsEndBeforeTheirSignalIsBlocked) {
  Watched watched;
  sigset_t all, old;
  sigfillset(&all);
  begin_steps();
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &all, &old), 0);
  EXPECT_FALSE(loop_watch::steps());
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &old, nullptr), 0);
  begin_steps();
  std::thread([] {}).join();
  EXPECT_FALSE(loop_watch::steps());
  SUCCEED() << "the process would have died";
}

TEST(LoopWatch, AChildIsNotStepped) {
  Watched watched;
  begin_steps();
  const pid_t child = fork();
  if (child == 0) {
    int left = 1000;
    for (; left > 0; --left) asm volatile("" : "+r"(left));
    _exit(3 + left);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
}

#if defined(__x86_64__)
// The flags hold the one for steps while there are any: they are not kept to come back.
TEST(LoopWatch, TheFlagForStepsIsNotKeptOnTheStack) {
  Watched watched;
  begin_steps();
  std::uint64_t flags = 0;
  asm volatile("lea -128(%%rsp), %%rsp; pushf; pop %0; lea 128(%%rsp), %%rsp"
               : "=r"(flags)
               :
               : "cc", "memory");
  EXPECT_FALSE(loop_watch::steps());
  EXPECT_EQ(flags & 0x100, 0u);
}
#endif

}  // namespace
}  // namespace orrery::clock
