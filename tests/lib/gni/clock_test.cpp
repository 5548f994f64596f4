// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/link_state.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/quote.hpp"
#include "tests/tools/orrery/tool.hpp"
#include "tools/orrery/trace/trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// Unmodified programs under virtual time: what they print is the machine's, and the same in every run.
namespace orrery::tool::test {
namespace {

std::string worker() { return std::getenv("CLOCK_WORKER"); }

Ran run(int pes, std::vector<std::string> what, std::vector<std::string> options = {"--machine", "aries"}) {
  std::vector<std::string> args = {"run", "-n", std::to_string(pes), "--timeout", "300"};
  args.insert(args.end(), options.begin(), options.end());
  args.push_back(worker());
  args.insert(args.end(), what.begin(), what.end());
  return orrery(args);
}

// Lines of different PEs come in any order.
std::string sorted_lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

// The number that follows `word` in `text`.
double number_after(const std::string& text, const std::string& word) {
  const auto at = text.find(word);
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + word.size(), nullptr);
}

// ---- timed waits ----

TEST(VirtualTime, TimedWaitsEndAtTheirTimeAndNotBefore) {
  const Ran ran = run(1, {"waits"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "sem_timedwait 110 after 250000 us\n"
            "sem_clockwait 110 after 250000 us\n"
            "mutex_timedlock 110 after 250000 us\n"
            "mutex_clocklock 110 after 250000 us\n"
            "rwlock_timedrdlock 110 after 250000 us\n"
            "rwlock_timedwrlock 110 after 250000 us\n"
            "rwlock_clockrdlock 110 after 250000 us\n"
            "rwlock_clockwrlock 110 after 250000 us\n"
            "mtx_timedlock 1 after 250000 us\n"
            "cnd_timedwait 1 after 250000 us\n"
            "thrd_sleep 0 after 250000 us\n"
            "sigtimedwait 11 after 250000 us\n"
            "epoll_pwait2 0 after 250000 us\n"
            "sem_timedwait_posted 0 after 0 us\n");
}

// ---- the same in every run ----

struct Job {
  const char* name;
  int pes;
  const char* count;
};
class SameInEveryRun : public ::testing::TestWithParam<Job> {};

TEST_P(SameInEveryRun, PrintsTheSame) {
  const Job job = GetParam();
  const Ran first = run(job.pes, {job.name, job.count});
  ASSERT_EQ(first.code, 0) << first.err;
  ASSERT_FALSE(first.out.empty());
  for (int i = 0; i < 3; ++i) {
    const Ran again = run(job.pes, {job.name, job.count});
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(sorted_lines(again.out), sorted_lines(first.out));
  }
}
INSTANTIATE_TEST_SUITE_P(Clock, SameInEveryRun,
                         ::testing::Values(Job{"ping_pong", 2, ""}, Job{"memory", 2, ""},
                                           Job{"all_to_all", 16, "50"}, Job{"hot_spot", 8, ""},
                                           Job{"stealing", 6, ""}, Job{"timeouts", 3, ""},
                                           Job{"to_one", 9, ""}, Job{"messages", 4, ""},
                                           Job{"reduce", 4, ""}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(VirtualTime, ReductionsAreRightAndTakeTime) {
  const Ran ran = run(4, {"reduce", ""});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::istringstream lines(ran.out);
  int right = 0;
  for (std::string line; std::getline(lines, line);) {
    int pe = 0, round = 0, after = 0;
    unsigned long sum = 0;
    if (std::sscanf(line.c_str(), "PE %d round %d: sum %lu after %d", &pe, &round, &sum, &after) != 4)
      continue;
    EXPECT_EQ(sum, 6u) << line;
    EXPECT_GT(after, 1000) << line;
    ++right;
  }
  EXPECT_EQ(right, 40);
}

TEST(VirtualTime, ATreeOfEnginesGivesEveryPeTheSumWhenTheLastHasEnteredIt) {
  // Two levels; the root's queue hears of each sum at its time, too.
  const Ran ran = run(32, {"reduce_tree"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::istringstream lines(ran.out);
  int right = 0;
  for (std::string line; std::getline(lines, line);) {
    int pe = 0, round = 0, after = 0, told = 0;
    unsigned long sum = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "PE %d round %d: sum %lu after %d told after %d", &pe, &round, &sum,
                          &after, &told),
              5)
        << line;
    EXPECT_EQ(sum, 31u * 32 / 2) << line;
    // The last one enters 3 us after the one before it.
    EXPECT_GE(after, (31 - pe) * 3000) << line;
    EXPECT_EQ(told, pe == 0 ? after : 0) << line;
    ++right;
  }
  EXPECT_EQ(right, 320);
  EXPECT_EQ(ran.err.find("not exact"), std::string::npos) << ran.err;
  const Ran again = run(32, {"reduce_tree"});
  EXPECT_EQ(sorted_lines(again.out), sorted_lines(ran.out));
}

TEST(VirtualTime, ThreadsMayReadBesideTheOneThatPollsMemory) {
  const Ran ran = run(2, {"threads"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  // Three times what the program prints without them.
  const std::string alone = run(2, {"memory"}).out;
  EXPECT_EQ(alone.find("half round trip "), 0u) << alone;
  EXPECT_EQ(ran.out, alone + alone + alone);
}

TEST(VirtualTime, MemoryThatPeersMayOnlyReadIsTheProgramsToWrite) {
  const Ran ran = run(2, {"read_only"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, run(2, {"memory"}).out);
  EXPECT_EQ(ran.out.find("half round trip "), 0u) << ran.out;
}

TEST(VirtualTime, WhatAGetBringsIsSeenAtItsTimeWhateverTheOthersDo) {
  const Ran ran = run(3, {"polled_gets"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::istringstream lines(ran.out);
  int rounds = 0;
  for (std::string line; std::getline(lines, line); ++rounds) {
    // The others' memory, and whether they wait or sleep, are as good as nothing to PE 0: every round is
    // the first one again, to the nanosecond that its beginning is rounded by.
    EXPECT_NEAR(number_after(line, "data after "), number_after(ran.out, "data after "), 1) << ran.out;
    EXPECT_NEAR(number_after(line, "event after "), number_after(ran.out, "event after "), 1) << ran.out;
    EXPECT_LT(number_after(line, "data after ") + 1, number_after(line, "event after ")) << ran.out;
  }
  EXPECT_EQ(rounds, 4) << ran.out;
}

TEST(VirtualTime, TheTargetIsToldOfAGetThoughWhoGetsSleeps) {
  const Ran ran = run(3, {"told_gets"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const double told = number_after(ran.out, "PE 1: told after ");
  EXPECT_GT(told, 1000) << ran.out;
  EXPECT_LT(told, 3000) << ran.out;
  EXPECT_NE(ran.out.find("PE 2: reads 7\n"), std::string::npos) << ran.out;
}

TEST(VirtualTime, AnAllocatorThatLooksAtTheClockTakesNoTime) {
  // An address sanitizer's does.
  const Ran ran = run(1, {"allocations"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "PE 0: 0 ns\n");
}

TEST(VirtualTime, InstancesOfANodeJoinTheirQueueAndWaitInItsTime) {
  const Ran ran = run(3, {"shared_queue"}, {"--machine", "aries", "--nodes", "1"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(sorted_lines(ran.out), "PE 0: joined, waited\nPE 1: joined, waited\nPE 2: joined, waited\n");
}

TEST(VirtualTime, IsTheSameBesideProcessesThatUseEveryCore) {
  const Ran alone = run(4, {"all_to_all", "50"});
  std::vector<pid_t> hogs;
  const pid_t self = getpid();
  // As many as there are cores to use.
  for (unsigned i = 0; i < std::max(std::thread::hardware_concurrency(), 1u); ++i) {
    const pid_t hog = fork();
    if (hog == 0) {
      // It must not outlive a test that is killed.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (getppid() == self) {
      }
      _exit(0);
    }
    ASSERT_GT(hog, 0);
    hogs.push_back(hog);
  }
  const Ran beside = run(4, {"all_to_all", "50"});
  for (const pid_t hog : hogs) {
    kill(hog, SIGKILL);
    waitpid(hog, nullptr, 0);
  }
  ASSERT_EQ(alone.code, 0) << alone.err;
  ASSERT_EQ(beside.code, 0) << beside.err;
  EXPECT_EQ(beside.out, alone.out);
}

// ---- the machine's figures, out of a running program ----

constexpr double kThreePercent = 0.03;

class OneHop : public ::testing::Test {
 protected:
  // Nodes 0 and 4 of Aries are on neighbouring routers.
  TempFile place_{"node 0 pes 0\nnode 4 pes 1\n"};
};

TEST(VirtualTime, AriesPutAndGetInABladeTakeWhatThePaperPrints) {
  const TempFile blade{"node 0 pes 0\nnode 1 pes 1\n"};
  const Ran ran = run(2, {"figures"}, {"--machine", "aries", "--place", blade.path()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  // AR063 put latency 8 B: 0.8 us. AR064 get latency 8 B: 1.6 us.
  EXPECT_NEAR(number_after(ran.out, "put 8 B ns "), 800, 800 * kThreePercent) << ran.out;
  EXPECT_NEAR(number_after(ran.out, "get 8 B ns "), 1600, 1600 * kThreePercent) << ran.out;
}

TEST(VirtualTime, AHopOfAriesAddsAHundredNanoseconds) {
  const TempFile near{"node 0 pes 0\nnode 4 pes 1\n"};
  // Node 64 is in the next chassis of the group, on the router of the same place: one black link. Node 68 is
  // one green link further.
  const TempFile far{"node 0 pes 0\nnode 68 pes 1\n"};
  const Ran one = run(2, {"figures"}, {"--machine", "aries", "--place", near.path()});
  const Ran two = run(2, {"figures"}, {"--machine", "aries", "--place", far.path()});
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(two.code, 0) << two.err;
  // AR067 latency of a hop: 100 ns.
  EXPECT_NEAR(number_after(two.out, "put 8 B ns ") - number_after(one.out, "put 8 B ns "), 100, 3) << two.out;
}

TEST_F(OneHop, AriesBandwidthIsThePapers) {
  const Ran ran = run(2, {"bandwidth"}, {"--machine", "aries", "--place", place_.path()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  // AR055 payload rate of the host interface: 10 GB/s. AR056 the same both ways: 7.5 GB/s each.
  EXPECT_NEAR(number_after(ran.out, "one way MB/s "), 10'000, 500) << ran.out;
  EXPECT_NEAR(number_after(ran.out, "both ways MB/s "), 7'500, 375) << ran.out;
}

// ---- the oracle: every time again, in one process ----

TEST(Oracle, AgreesToThePicosecond) {
  for (const char* what : {"all_to_all", "hot_spot", "stealing", "messages"}) {
    const std::string prefix = ::testing::TempDir() + "orrery_record_" + std::to_string(getpid());
    setenv("ORRERY_RECORD", prefix.c_str(), 1);
    const int pes = 6;
    const Ran ran = run(pes, {what, "100"});
    unsetenv("ORRERY_RECORD");
    ASSERT_EQ(ran.code, 0) << ran.err;
    std::string problem;
    const auto records = read_records(prefix, pes, &problem);
    for (int pe = 0; pe < pes; ++pe) unlink((prefix + "." + std::to_string(pe)).c_str());
    ASSERT_EQ(problem, "");
    ASSERT_GT(records.size(), 200u) << what;
    const auto built = model::build_machine("aries");
    ASSERT_TRUE(built.machine);
    const model::Pricing& pricing = built.machine->pricing;
    const std::size_t bytes = model::LinkState::bytes_needed(pricing, model::LinkState::Kind::exact);
    std::unique_ptr<std::byte, decltype(&std::free)> memory(
        static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)), &std::free);
    ASSERT_NE(memory, nullptr);
    auto links = model::LinkState::create({memory.get(), bytes}, pricing, model::LinkState::Kind::exact);
    ASSERT_TRUE(links.ok());
    std::int64_t last = 0;
    for (const clock::Recorded& r : records) {
      ASSERT_GE(r.called, last) << what << " PE " << r.pe << " operation " << r.number;
      last = r.called;
      const model::Quote q = model::quote(pricing, r.request, r.uncontended ? nullptr : &links.value());
      ASSERT_EQ(q.data_at, r.quote.data_at) << what << " PE " << r.pe << " operation " << r.number;
      ASSERT_EQ(q.remote_event_at, r.quote.remote_event_at) << what << " PE " << r.pe << " " << r.number;
      ASSERT_EQ(q.local_event_at, r.quote.local_event_at) << what << " PE " << r.pe << " " << r.number;
      ASSERT_EQ(q.cpu_busy, r.quote.cpu_busy) << what;
    }
    EXPECT_EQ(links.value().merged(), 0u) << what;
  }
}

// ---- optimistic: faster, and what it got wrong is counted ----

struct Outcome {
  Ran ran;
  std::string report;  // --json
};
Outcome with_report(int pes, std::vector<std::string> what, bool optimistic) {
  const std::string name = ::testing::TempDir() + "orrery_report_" + std::to_string(getpid()) + ".json";
  std::vector<std::string> options = {"--machine", "aries", "--json", name};
  if (optimistic) options.push_back("--optimistic");
  Outcome outcome{run(pes, std::move(what), options), {}};
  std::ifstream file(name);
  outcome.report.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  unlink(name.c_str());
  return outcome;
}

TEST(Optimistic, ConflictsAndLateEventsAreForcedAndCounted) {
  // 64 puts of each PE in flight, through the same links: a PE that runs ahead takes them first.
  const Outcome found = with_report(8, {"all_to_all", "100"}, true);
  ASSERT_EQ(found.ran.code, 0) << found.ran.err;
  EXPECT_GT(number_after(found.report, "\"conflicts\": "), 0) << found.report;
  EXPECT_GT(number_after(found.report, "\"late_events\": "), 0) << found.report;
  EXPECT_EQ(number_after(found.report, "\"operations\": "), 800) << found.report;
  EXPECT_NE(found.report.find("\"exact\": false"), std::string::npos) << found.report;
  EXPECT_NE(found.ran.err.find("this run is not exact"), std::string::npos) << found.ran.err;
}

TEST(Optimistic, WhereItSaysExactTheOutputIsThatOfAConservativeRun) {
  for (const auto& [what, pes] : {std::pair{"ping_pong", 2}, {"hot_spot", 8}, {"memory", 2}, {"to_one", 2}}) {
    const Outcome plain = with_report(pes, {what}, false), ahead = with_report(pes, {what}, true);
    ASSERT_EQ(ahead.ran.code, 0) << ahead.ran.err;
    EXPECT_NE(plain.report.find("\"exact\": true"), std::string::npos) << what << plain.report;
    EXPECT_NE(ahead.report.find("\"exact\": true"), std::string::npos) << what << ahead.report;
    EXPECT_NE(ahead.ran.err.find("0 conflicts, 0 late events: exact"), std::string::npos) << ahead.ran.err;
    EXPECT_EQ(sorted_lines(ahead.ran.out), sorted_lines(plain.ran.out)) << what;
  }
}

TEST(Optimistic, ARunWithOtherTimesThanTheConservativeOneIsNotCalledExact) {
  for (const auto& [what, pes] :
       {std::pair{"to_one", 9}, {"messages", 2}, {"messages", 4}, {"stealing", 4}}) {
    const Outcome plain = with_report(pes, {what}, false), ahead = with_report(pes, {what}, true);
    ASSERT_EQ(ahead.ran.code, 0) << ahead.ran.err;
    const bool same = sorted_lines(ahead.ran.out) == sorted_lines(plain.ran.out);
    const bool exact = ahead.report.find("\"exact\": true") != std::string::npos;
    EXPECT_TRUE(same || !exact) << what << ahead.report << ahead.ran.out << plain.ran.out;
  }
}

TEST(Optimistic, WhatIsNotAcceptedIsRefused) {
  const Ran none = run(2, {"ping_pong"}, {"--optimistic"});
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("--optimistic 10000 needs virtual time"), std::string::npos) << none.err;
  const Ran zero = run(2, {"ping_pong"}, {"--machine", "aries", "--optimistic=0"});
  EXPECT_EQ(zero.code, 2);
  EXPECT_NE(zero.err.find("1..1000000000 ns"), std::string::npos) << zero.err;
  const Ran json = run(2, {"ping_pong"}, {"--json", "x.json"});
  EXPECT_EQ(json.code, 2);
  EXPECT_NE(json.err.find("--json needs virtual time"), std::string::npos) << json.err;
}

TEST(Records, OfAJobThatFailedAreNotAskedFor) {
  const Ran ran = orrery({"run", "-n", "2", "--machine", "aries", "--optimistic", "/bin/false"});
  EXPECT_NE(ran.code, 0);
  EXPECT_EQ(ran.err.find("cannot be read"), std::string::npos) << ran.err;
}

TEST(Records, LeaveNoFolderBehind) {
  std::string folder = ::testing::TempDir() + "orrery_records_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const char* const before = std::getenv("TMPDIR");
  const std::string was = before != nullptr ? before : "";
  setenv("TMPDIR", folder.c_str(), 1);
  const Ran ran = run(2, {"ping_pong"}, {"--machine", "aries", "--optimistic"});
  before != nullptr ? setenv("TMPDIR", was.c_str(), 1) : unsetenv("TMPDIR");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(rmdir(folder.c_str()), 0) << "something is left in " << folder;
}

TEST(Records, WhatMadeARunInexactIsTheMostThatAnyPeSawAndHasToBeSaid) {
  const std::string prefix = ::testing::TempDir() + "orrery_made_" + std::to_string(getpid());
  const auto write = [&](int pe, const std::string& text) {
    std::ofstream(prefix + "." + std::to_string(pe)) << "# machine aries\n" << text;
  };
  const auto read = [&] {
    std::string problem;
    const Records all = read_all_records(prefix, 2, &problem);
    return std::pair{all, problem};
  };
  write(0, clock::line_of(clock::Inexactness{.outside = 3, .merged = 1, .late = 0}) + "\n");
  write(1, clock::line_of(clock::Inexactness{.outside = 2, .merged = 5, .late = 7}) + "\n");
  const auto [all, none] = read();
  EXPECT_EQ(none, "");
  EXPECT_EQ(all.inexactness.outside, 3u);
  EXPECT_EQ(all.inexactness.merged, 5u);
  EXPECT_EQ(all.inexactness.late, 7u);
  EXPECT_TRUE(all.operations.empty());
  for (const char* text : {"", "# not exact: 1 2\n", "# not exact: none\n"}) {
    write(1, text);
    EXPECT_EQ(read().second, prefix + ".1 does not say how exact the run was") << text;
  }
  for (const char* pe : {".0", ".1"}) unlink((prefix + pe).c_str());
}

TEST(Records, TwoFilesOfOneNameAreRefused) {
  const std::string name = ::testing::TempDir() + "orrery_same_" + std::to_string(getpid());
  const Ran ran = run(2, {"ping_pong"}, {"--machine", "aries", "--json", name, "--trace", name});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("is --trace's file too"), std::string::npos) << ran.err;
}

TEST(Trace, IsJsonWithATrackForEachOperationUnderWay) {
  const std::string name = ::testing::TempDir() + "orrery_trace_" + std::to_string(getpid()) + ".json";
  const Ran ran = run(2, {"bandwidth"}, {"--machine", "aries", "--trace", name});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::ifstream file(name);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  unlink(name.c_str());
  EXPECT_TRUE(text.starts_with("{\"displayTimeUnit\""));
  // 16 block transfers are under way at once.
  EXPECT_NE(text.find("\"NIC 16\""), std::string::npos);
  EXPECT_EQ(text.find("\"NIC 18\""), std::string::npos);
  EXPECT_NE(text.find("bte_put 262144 B"), std::string::npos);
}

TEST(Trace, IsWrittenWhereItWasAskedForWhereverThePesGo) {
  const std::string name = "orrery_trace_" + std::to_string(getpid()) + ".json";
  const Ran ran = orrery({"run", "-n", "2", "--timeout", "300", "--machine", "aries", "--trace", name, "sh",
                          "-c", "cd / && exec " + worker() + " ping_pong"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(unlink(name.c_str()), 0);
}

TEST(Trace, WhereNothingCanBeWrittenIsRefusedBeforeTheRun) {
  for (const char* name : {"/no/such/folder/trace.json", "/"}) {
    const Ran ran = run(1, {"ping_pong"}, {"--machine", "aries", "--trace", name});
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_NE(ran.err.find(std::string("--trace ") + name + " cannot be written"), std::string::npos)
        << ran.err;
  }
}

// ---- what cannot go on, and what is not accepted ----

TEST(VirtualTime, ADeadlockIsReportedWithWhatEachPeWaitsFor) {
  // What is looked for may come from outside, for so many seconds.
  setenv("ORRERY_DEADLOCK", "2", 1);
  for (const char* how : {"deadlock", "deadlock_blocking", "deadlock_memory"}) {
    const Ran ran = run(2, {how});
    EXPECT_EQ(ran.code, 75) << how << ran.err;
    EXPECT_NE(ran.err.find("deadlock in virtual time"), std::string::npos) << how << ran.err;
    EXPECT_NE(ran.err.find("PE 0: "), std::string::npos) << how << ran.err;
    EXPECT_NE(ran.err.find("PE 1: "), std::string::npos) << how << ran.err;
  }
  unsetenv("ORRERY_DEADLOCK");
}

TEST(Choice, WhatIsUnknownIsRefusedWithWhatThereIs) {
  const Ran machine = run(2, {"ping_pong"}, {"--machine", "ares"});
  EXPECT_EQ(machine.code, 2);
  EXPECT_NE(machine.err.find("aries"), std::string::npos) << machine.err;
  const Ran clock = run(2, {"ping_pong"}, {"--machine", "aries", "--clock", "atomic"});
  EXPECT_EQ(clock.code, 2);
  EXPECT_NE(clock.err.find("raw, paced or virtual"), std::string::npos) << clock.err;
  const Ran alone = run(2, {"ping_pong"}, {"--clock", "virtual"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("needs a machine"), std::string::npos) << alone.err;
  const Ran compute = run(2, {"ping_pong"}, {"--machine", "aries", "--compute", "-1"});
  EXPECT_EQ(compute.code, 2);
  EXPECT_NE(compute.err.find("zero, measured or a factor"), std::string::npos) << compute.err;
}

TEST(Choice, MorePesThanNodesIsRefused) {
  const TempFile machine_place{"node 92544 pes 0\nnode 4 pes 1\n"};
  const Ran ran = run(2, {"ping_pong"}, {"--machine", "aries", "--place", machine_place.path()});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("node 92544 is not on the machine"), std::string::npos) << ran.err;
}

TEST(Choice, PesThatDisagreeAreRefused) {
  // Each PE's shell sets what that PE alone sees.
  const std::string script =
      "test $PMI_RANK = 1 && export ORRERY_MACHINE=gemini; exec " + worker() + " ping_pong";
  const Ran ran =
      orrery({"run", "-n", "2", "--timeout", "120", "--machine", "aries", "--", "/bin/sh", "-c", script});
  EXPECT_NE(ran.code, 0);
  EXPECT_NE(ran.err.find("expected the same in all"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace orrery::tool::test
