// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/require.hpp"
#include "tests/tools/orrery/tool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// Programs that look, wait and compute as message-passing runtimes do, under virtual time.
namespace orrery::tool::test {
namespace {

Ran looking_run(int pes, std::vector<std::string> what, std::vector<std::string> options = {}) {
  std::vector<std::string> args = {"run",       "-n",   std::to_string(pes), "--timeout", "300",
                                   "--machine", "aries"};
  args.insert(args.end(), options.begin(), options.end());
  args.push_back(std::getenv("CLOCK_WORKER"));
  args.insert(args.end(), what.begin(), what.end());
  return orrery(args);
}

// The numbers that follow `word`, in the order in which they were printed.
std::vector<double> numbers_after(const std::string& text, const std::string& word) {
  std::vector<double> all;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    all.push_back(std::strtod(text.c_str() + at + word.size(), nullptr));
  return all;
}

TEST(Looking, AWaitEndsAtItsTimeHoweverManyQueuesAreLookedAtInWhateverOrder) {
  const Ran ran = looking_run(2, {"engines"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto times = numbers_after(ran.out, "queues: ");
  ASSERT_EQ(times.size(), 6u) << ran.out;
  EXPECT_EQ(std::set<double>(times.begin(), times.end()).size(), 1u) << ran.out;
}

TEST(Looking, EachLookInVainCostsWhatTheMachineSays) {
  const Ran ran = looking_run(2, {"counted_looks"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto times = numbers_after(ran.out, "looks: ");
  const std::vector<int> looks{0, 1, 2, 4, 8, 16, 40};
  ASSERT_EQ(times.size(), looks.size()) << ran.out;
  for (std::size_t i = 0; i < looks.size(); ++i) EXPECT_EQ(times[i] - times[0], 25 * looks[i]) << ran.out;
}

// docs/timing.md: 0.1 % too late at most.
TEST(Looking, AWaitByTheClockEndsAtItsTimeHoweverManyLooksAreBetweenTwoReadings) {
  const Ran ran = looking_run(1, {"limited_looks"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto times = numbers_after(ran.out, "looks: ");
  ASSERT_EQ(times.size(), 4u) << ran.out;
  for (const double ns : times) EXPECT_LE(ns, 2'004'000) << ran.out;
  EXPECT_EQ(ran.err.find("libc's clock"), std::string::npos) << ran.err;
}

TEST(Looking, AWaitByTheClockEndsAtItsTimeHoweverLongTheOthersTurnsTakeInRealTime) {
  const Ran alone = looking_run(1, {"timeouts"});
  ASSERT_EQ(alone.code, 0) << alone.err;
  const Ran ran = looking_run(2, {"slow_turns"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, alone.out);
}

// A message is found at its own time, whatever the engine looks at besides.
TEST(Looking, AMessageTakesTheMachinesTimeWhateverElseTheEngineLooksAt) {
  const Ran ran = looking_run(2, {"engine_messages"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const double mailbox = numbers_after(ran.out, "mailbox: ").at(0);
  const double engine = numbers_after(ran.out, "engine: ").at(0);
  EXPECT_EQ(engine, mailbox) << ran.out;
  // Of the message, 4 B and its header, and no more than that.
  const double put = numbers_after(looking_run(2, {"engines"}).out, "queues: ").at(0);
  EXPECT_NEAR(mailbox, put, 0.35 * put) << ran.out;
}

// As linear algebra between two messages: no deadlock, and the machine's time is that of the messages.
TEST(Computing, APeThatComputesForSecondsStopsNoOther) {
  for (const std::vector<std::string>& what :
       {std::vector<std::string>{"computes"}, std::vector<std::string>{"computes", "clock"}}) {
    const Ran ran = looking_run(2, what);
    ASSERT_EQ(ran.code, 0) << what.size() << ran.err;
    const auto times = numbers_after(ran.out, "took ");
    ASSERT_EQ(times.size(), 2u) << ran.out;
    for (const double took : times) EXPECT_LT(took, 10e6) << what.size() << ": " << ran.out;
  }
}

TEST(Computing, KernelsBetweenTwoReadingsOfTheClockTakeNoTimeOrTheirOwn) {
  const Ran zero = looking_run(1, {"kernels"});
  ASSERT_EQ(zero.code, 0) << zero.err;
  EXPECT_LT(numbers_after(zero.out, "all ").at(0), 1e6) << zero.out;
  const Ran measured = looking_run(1, {"kernels"}, {"--compute", "measured"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  const double used = numbers_after(measured.out, "used ").at(0);
  EXPECT_NEAR(numbers_after(measured.out, "kernels ").at(0), used, 0.05 * used) << measured.out;
  EXPECT_NEAR(numbers_after(measured.out, "all ").at(0), used, 0.05 * used) << measured.out;
  // A processor half as fast.
  const Ran twice = looking_run(1, {"kernels"}, {"--compute", "2"});
  ASSERT_EQ(twice.code, 0) << twice.err;
  const double half = numbers_after(twice.out, "used ").at(0);
  EXPECT_NEAR(numbers_after(twice.out, "kernels ").at(0), 2 * half, 0.05 * 2 * half) << twice.out;
  EXPECT_NEAR(numbers_after(twice.out, "all ").at(0), 2 * half, 0.05 * 2 * half) << twice.out;
}

TEST(Threads, OneThatWaitsHoldsNobodyUpAndTakesNoTime) {
  const Ran alone = looking_run(2, {"helpers", "9"});
  ASSERT_EQ(alone.code, 0) << alone.err;
  const auto times = numbers_after(alone.out, ": ");
  ASSERT_EQ(times.size(), 2u) << alone.out;
  for (const char* how : {"0", "1", "2", "3"}) {
    const Ran ran = looking_run(2, {"helpers", how});
    ASSERT_EQ(ran.code, 0) << how << ran.err;
    const auto with = numbers_after(ran.out, ": ");
    EXPECT_EQ(std::multiset<double>(with.begin(), with.end()),
              std::multiset<double>(times.begin(), times.end()))
        << how << ran.out;
  }
}

// Nearly as long as if the answers were the main thread's: the first of its waits begins in real time.
// On a busy machine answers may be later (docs/timing.md): how much is looked at on a quiet one.
TEST(Threads, OneThatWaitsAnswersAtTheTimeOfWhatItWaitsForThoughTheMainThreadIsInABarrier) {
  const char* const long_tests = std::getenv("ORRERY_LONG_TESTS");
  const bool is_quiet = long_tests != nullptr && *long_tests == '1';
  const Ran mains = looking_run(2, {"engines"});
  ASSERT_EQ(mains.code, 0) << mains.err;
  const double put = numbers_after(mains.out, "queues: ").at(0);
  for (int run = 0; run < 3; ++run) {
    const Ran ran = looking_run(2, {"servers"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const double answer = numbers_after(ran.out, "answers: ").at(0);
    EXPECT_GE(answer, 0.85 * put) << ran.out;
    if (is_quiet) {
      EXPECT_LE(answer, 1.15 * put) << ran.out;
    }
  }
}

// As long as if the main threads put and answered. Time stands still for a thread that was woken until it
// waits again.
TEST(Threads, TheOneThatLooksMakesTimePassWhileTheMainThreadWaitsForItsEnd) {
  const Ran mains = looking_run(2, {"engines"});
  ASSERT_EQ(mains.code, 0) << mains.err;
  const double put = numbers_after(mains.out, "queues: ").at(0);
  for (int run = 0; run < 3; ++run) {
    const Ran ran = looking_run(2, {"joined"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.err.find("not exact"), std::string::npos) << ran.err;
    EXPECT_NEAR(numbers_after(ran.out, "answers: ").at(0), put, 0.15 * put) << ran.out;
  }
}

// As many processes as there are cores, which compute while this lives.
class Hogs {
 public:
  Hogs() {
    const pid_t self = getpid();
    for (long i = 0; i < std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L); ++i) {
      const pid_t hog = fork();
      if (hog == 0) {
        // It must not outlive a test that is killed.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == self) {
        }
        _exit(0);
      }
      hogs_.push_back(hog);
    }
  }
  ~Hogs() {
    for (const pid_t hog : hogs_) kill(hog, SIGKILL);
    for (const pid_t hog : hogs_) waitpid(hog, nullptr, 0);
  }
  Hogs(const Hogs&) = delete;
  Hogs& operator=(const Hogs&) = delete;

 private:
  std::vector<pid_t> hogs_;
};

// Under ThreadSanitizer a thread that leaves usleep() waits for a lock of that one's for ever, while another
// one waits in liborrery.so's note_mapped().
#if defined(__SANITIZE_THREAD__)
constexpr bool kMaySleepBesideThreads = false;
#else
constexpr bool kMaySleepBesideThreads = true;
#endif

// The thread computes for some milliseconds of real time before it waits, while its PE's main thread waits in
// one of four ways. Its answers come as soon as if it had waited before.
TEST(ThreadsInVirtualTime, WhatANewOneDoesFirstComesAtTheTimeOfItsCreation) {
  std::optional<double> first;
  for (const bool beside_hogs : {false, true}) {
    std::optional<Hogs> hogs;
    if (beside_hogs) hogs.emplace();
    for (const std::string how : {"0", "1", "2", "3"}) {
      if (how == "2" && !kMaySleepBesideThreads) continue;
      const Ran ran = looking_run(2, {"newcomers", how});
      ASSERT_EQ(ran.code, 0) << how << ran.err;
      EXPECT_EQ(ran.err.find("not exact"), std::string::npos) << how << ran.err;
      const auto answers = numbers_after(ran.out, "answer: ");
      EXPECT_EQ(answers.size(), 12u) << how << ran.out;
      // Readings are whole nanoseconds.
      if (!first) first = answers.at(0);
      for (const double answer : answers) EXPECT_NEAR(answer, *first, 1) << how << ran.out;
    }
  }
}

TEST(ThreadsInVirtualTime, ANewOneThatComputesForLongAndPostsMakesTheRunNotExact) {
  // The release and the asan-ubsan suites run it.
  if (!kMaySleepBesideThreads) GTEST_SKIP() << "under ThreadSanitizer a thread does not leave usleep()";
  const Ran ran = looking_run(2, {"newcomers", "2", "late"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("not exact"), std::string::npos) << ran.err;
}

TEST(ThreadsInVirtualTime, NewOnesThatDoNotCommunicateLeaveTheRunExact) {
  const Ran ran = looking_run(2, {"background"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err.find("not exact"), std::string::npos) << ran.err;
  const auto puts = numbers_after(ran.out, "puts: ");
  EXPECT_EQ(puts.size(), 6u) << ran.out;
  EXPECT_EQ(std::set<double>(puts.begin(), puts.end()).size(), 1u) << ran.out;
}

TEST(Outside, TimeStandsStillWhileAllLookForWhatIsNotTheNics) {
  for (const std::vector<std::string>& what :
       {std::vector<std::string>{"outside"}, std::vector<std::string>{"outside", "naps"}}) {
    const Ran ran = looking_run(4, what);
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto waits = numbers_after(ran.out, "waited for ");
    ASSERT_EQ(waits.size(), 12u) << ran.out;
    // The looks and sleeps until it is known to wait.
    for (const double wait : waits) EXPECT_LT(wait, 10e6) << ran.out;
    if (what.size() == 1) {
      EXPECT_EQ(std::set<double>(waits.begin(), waits.end()).size(), 1u) << ran.out;
    }
    EXPECT_EQ(ran.err.find("not exact"), std::string::npos) << ran.err;
  }
}

TEST(Start, MorePesThanCoresAreNotPacedWithoutAWord) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (cores > 32) ORRERY_SKIP("cores") << "too many cores for a job with more PEs";
  const Ran ran = looking_run(static_cast<int>(cores) + 1, {"start"}, {"--clock", "paced"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("cannot be paced on " + std::to_string(cores) + " cores"), std::string::npos)
      << ran.err;
}

// Lines of different PEs come in any order.
std::multiset<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::multiset<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

// Once an engine has made rounds in real time, in which of them it looks for datagrams is an accident.
TEST(Outside, InWhichRoundsAnEngineLooksForDatagramsMakesNoDifference) {
  std::multiset<std::string> first;
  for (const char* const round : {"0", "1", "4", "7"}) {
    const Ran ran = looking_run(2, {"wire_up", round});
    ASSERT_EQ(ran.code, 0) << ran.err;
    if (first.empty()) first = lines_of(ran.out);
    EXPECT_EQ(lines_of(ran.out), first) << round;
    const std::string& out = ran.out;
    EXPECT_LT(out.find("a put\n"), out.find("a datagram\n")) << out;
    EXPECT_EQ(ran.err.find("not exact"), std::string::npos) << ran.err;
  }
  EXPECT_EQ(first.count("cancelled: terminated"), 1u);
  EXPECT_EQ(first.size(), 3u);
}

struct Jittered {
  int pes;
  std::vector<std::string> what;
};
class Jitter : public ::testing::TestWithParam<Jittered> {};

TEST_P(Jitter, ProgramsPrintTheSameWhateverRealTimeTheirCallsTake) {
  const Jittered job = GetParam();
  const Ran calm = looking_run(job.pes, job.what);
  ASSERT_EQ(calm.code, 0) << calm.err;
  for (const char* const seed : {"1", "1000"}) {
    setenv("CLOCK_JITTER", seed, 1);
    const Ran ran = looking_run(job.pes, job.what);
    unsetenv("CLOCK_JITTER");
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(lines_of(ran.out), lines_of(calm.out)) << seed;
  }
}
INSTANTIATE_TEST_SUITE_P(Clock, Jitter,
                         ::testing::Values(Jittered{2, {"ping_pong", ""}}, Jittered{2, {"memory", ""}},
                                           Jittered{16, {"all_to_all", "50"}}, Jittered{8, {"hot_spot", ""}},
                                           Jittered{6, {"stealing", ""}}, Jittered{3, {"timeouts", ""}},
                                           Jittered{9, {"to_one", ""}}, Jittered{4, {"messages", ""}},
                                           Jittered{4, {"reduce", ""}}),
                         [](const auto& info) { return info.param.what.front(); });

TEST(VirtualTime, AQueueWhoseMessagesAreTakenOneByOneIsExact) {
  const Ran first = looking_run(4, {"one_by_one"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.err.find("not exact"), std::string::npos) << first.err;
  EXPECT_NE(first.out.find("PE 3: 900 taken"), std::string::npos) << first.out;
  EXPECT_EQ(lines_of(looking_run(4, {"one_by_one"}).out), lines_of(first.out));
}

TEST(VirtualTime, NewsOfAConnectionWaitForRoomByTheClockHoweverLongThatTakesInRealTime) {
  const Ran ran = looking_run(2, {"told_late"}, {"--nodes", "1"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err.find("not exact"), std::string::npos) << ran.err;
  EXPECT_EQ(lines_of(ran.out),
            (std::multiset<std::string>{"PE 0: done after 12 ms", "PE 1: done after 12 ms"}));
}

// A round is a sleep of 1,000 us and one of 300 us, whose ends are found at once, or by the next look.
TEST(Looking, FlagsThatPEsShareAreFoundAtTheirTimeAndSleepsBehindThemPass) {
  for (const bool looks : {false, true}) {
    std::vector<std::string> what{"shared_flags"};
    if (looks) what.emplace_back("looks");
    const Ran ran = looking_run(2, what);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.err.find("not exact"), std::string::npos) << ran.err;
    std::istringstream lines(ran.out);
    int printed = 0;
    for (std::string line; std::getline(lines, line); ++printed) {
      const int pe = std::stoi(line.substr(3));
      const double round = numbers_after(line, "round ").at(0), at = numbers_after(line, " at ").at(0);
      // PE 0 ends a round; PE 1 finds that when PE 0 waits again.
      const double due = 1'300'000 * round;
      EXPECT_GE(at, due) << pe << ' ' << ran.out;
      EXPECT_LE(at, due * (looks ? 1.01 : 1)) << pe << ' ' << ran.out;
    }
    EXPECT_EQ(printed, 16) << ran.out;
    EXPECT_EQ(lines_of(looking_run(2, what).out), lines_of(ran.out));
  }
}

TEST(Start, TheClockHasOneBeginning) {
  const Ran ran = looking_run(2, {"start"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto joined = numbers_after(ran.out, "joined after ");
  ASSERT_EQ(joined.size(), 2u) << ran.out;
  for (const double after : joined) {
    EXPECT_GE(after, 0) << ran.out;
    EXPECT_LT(after, 1e6) << ran.out;
  }
  EXPECT_EQ(looking_run(2, {"start"}).out.size(), ran.out.size());
}

}  // namespace
}  // namespace orrery::tool::test
