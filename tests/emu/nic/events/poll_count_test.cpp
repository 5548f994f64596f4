// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/poll_count.hpp"

#include "emu/base/wait.hpp"
#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::nic {
namespace {

constexpr std::int64_t kStart = 1'000'000'000;

TEST(PollCount, SaysNowAndThenThatItIsTimeToLookAbout) {
  for (const bool crowded : {false, true}) {
    PollCount count(crowded);
    const std::uint64_t patience = crowded ? PollCount::kCrowdedPatience : PollCount::kPollsBeforeYield;
    for (std::uint64_t i = 1; i <= 5 * patience; ++i) ASSERT_EQ(count.add(), i % patience == 0) << i;
    EXPECT_EQ(count.value(), 5 * patience);
  }
}

// How often this thread has slept or waited so far, yields not counted.
long sleeps() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

// A process that uses a core and gives it to no other.
class Stranger {
 public:
  Stranger() : pid_(fork()) {
    if (pid_ == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (; pid_ == 0;) cpu_relax();
  }
  ~Stranger() {
    kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, 0);
  }

 private:
  const pid_t pid_;
};

// Where yields bring nothing but a stranger's time slice, the thread sleeps between its looks instead.
// A kernel that takes a core back within a millisecond shows nothing here.
TEST(PollCount, AYieldThatGaveAStrangerItsSliceIsFollowedBySleeps) {
  std::thread([] {
    const int core = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(core), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const Stranger stranger;
    PollCount count(true);
    const std::int64_t limit = monotonic_ns() + 10'000'000'000;
    bool slept = false;
    int slices = 0;  // calls that took a stranger's slice
    while (!slept && slices < 10 && monotonic_ns() < limit) {
      const long before = sleeps();
      for (int i = 0; i < 16; ++i) {
        const std::int64_t begin = monotonic_ns();
        count.yield_if_oversubscribed();
        if (monotonic_ns() - begin > 2'000'000) ++slices;
      }
      slept = sleeps() - before >= 14;
    }
    EXPECT_TRUE(slept || slices < 10);
  }).join();
}

TEST(PollStreak, ThePutOffGrowsWithTheTimePolledUpToABound) {
  PollStreak streak;
  std::int64_t until = kStart;
  for (std::int64_t now = kStart; now < kStart + 100'000'000; now += 50'000) {
    const std::int64_t delay = streak.postpone(now);
    if (delay != 0) {
      EXPECT_LE(delay, std::max(PollStreak::kPauseNs, now - kStart)) << now;
      EXPECT_LE(delay, PollStreak::kMostNs) << now;
      until = now + delay;
    }
    // The service thread's turn never comes while the program polls.
    EXPECT_GT(until, now);
  }
  EXPECT_GE(until, kStart + 100'000'000 + PollStreak::kMostNs / 2 - 50'000);
}

TEST(PollStreak, IsAskedForRarely) {
  PollStreak streak;
  int calls = 0;
  for (std::int64_t now = kStart; now < kStart + 100'000'000; now += 1'000)
    calls += streak.postpone(now) != 0;
  EXPECT_LE(calls, 60);
}

TEST(PollStreak, APauseBeginsItAnew) {
  PollStreak streak;
  std::int64_t now = kStart;
  for (; now < kStart + 50'000'000; now += 10'000) (void)streak.postpone(now);
  now += PollStreak::kPauseNs;
  EXPECT_EQ(streak.postpone(now), PollStreak::kPauseNs);
  EXPECT_EQ(streak.postpone(now + 1), 0);
}

TEST(PollStreak, WhoHasSomethingToDoIsNotPutOff) {
  PollStreak streak;
  streak.set_owed(true);
  std::int64_t now = kStart;
  for (; now < kStart + 50'000'000; now += 100'000) EXPECT_EQ(streak.postpone(now), 0);
  streak.set_owed(false);
  EXPECT_NE(streak.postpone(now), 0) << "and is from the time that it is done";
}

TEST(PollStreak, AnEndIsToldOnceAndANewStreakBeginsAfterIt) {
  PollStreak streak;
  EXPECT_FALSE(streak.end()) << "there was none";
  std::int64_t now = kStart;
  for (; now < kStart + 50'000'000; now += 100'000) (void)streak.postpone(now);
  EXPECT_TRUE(streak.end());
  EXPECT_FALSE(streak.end());
  EXPECT_EQ(streak.postpone(now), PollStreak::kPauseNs);
}

// A node and its queue, with a service thread that is the test.
struct Polled {
  // Looks in vain, until the service thread is put off or `most` looks were made.
  void poll(std::uint64_t most) {
    Event event;
    for (std::uint64_t i = 0; i < most && node.postponed_ns.empty(); ++i)
      ASSERT_EQ(node.nic().poll(queue, &event), Errc::not_done);
  }
  box::World world{2, box::Path::direct};
  box::Node& node = world[0];
  CompletionQueue& queue = *node.nic().create_queue(8, 0).value();
};

constexpr std::uint64_t kManyLooks = 100'000;

TEST(LookAbout, WhoPollsPutsOffAServiceThreadThatAttends) {
  Polled polled;
  polled.poll(1);
  ASSERT_TRUE(polled.node.nic().serve()) << "it attends, because a thread polls";
  polled.poll(kManyLooks);
  ASSERT_FALSE(polled.node.postponed_ns.empty());
  EXPECT_GE(polled.node.postponed_ns.back(), PollStreak::kPauseNs);
}

TEST(LookAbout, WhoPollsLeavesAServiceThreadThatSleepsAlone) {
  Polled polled;
  while (polled.node.nic().serve()) {
  }
  polled.poll(kManyLooks);
  EXPECT_TRUE(polled.node.postponed_ns.empty());
}

TEST(LookAbout, WhoPollsLeavesAServiceThreadAloneThatHasToLookAgain) {
  Polled polled;
  polled.node.port().posting[0].store(1);  // its traffic is to be stopped, and a thread is about to post
  polled.poll(1);
  ASSERT_TRUE(polled.node.nic().serve());
  ServiceState& service = polled.node.nic().view().service();
  service.suspended[0].store(1u << 7);
  service.suspension_changes.fetch_add(1);
  ASSERT_TRUE(polled.node.nic().serve());
  polled.poll(kManyLooks);
  EXPECT_TRUE(polled.node.postponed_ns.empty());
  polled.node.port().posting[0].store(0);
  ASSERT_TRUE(polled.node.nic().serve());
  polled.poll(kManyLooks);
  EXPECT_FALSE(polled.node.postponed_ns.empty()) << "from when it has done it";
}

TEST(LookAbout, WhoSleepsHandsFramesBackToTheServiceThread) {
  Polled polled;
  polled.poll(1);
  ASSERT_TRUE(polled.node.nic().serve());
  polled.poll(kManyLooks);
  ASSERT_EQ(polled.node.nic().waits().wait(polled.queue, monotonic_ns()), Errc::timeout);
  EXPECT_EQ(polled.node.postponed_ns.back(), Attendant::kServicePeriodNs);
  const auto times = polled.node.postponed_ns.size();
  ASSERT_EQ(polled.node.nic().waits().wait(polled.queue, monotonic_ns()), Errc::timeout);
  EXPECT_EQ(polled.node.postponed_ns.size(), times) << "once";
}

}  // namespace
}  // namespace orrery::nic
