// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// How jobs end: failures, hangs, signals, kills; and that nothing is left.
#include "emu/base/unique_fd.hpp"
#include "tests/require.hpp"
#include "tests/tools/orrery/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kNoTracing = 77;

// A command for `sh -c` that says something and then sleeps under a name that can be looked for.
std::string sleeper(const std::string& seconds) { return "echo started; exec sleep " + seconds; }

// Sleep times are names: every test has its own.
class RunEnd : public ::testing::Test {
 protected:
  void expect_gone(const std::string& word) {
    // A kill is over when the process is reaped, which no call waits for here.
    for (int i = 0; i < 500 && process_with(word); ++i) usleep(10'000);
    EXPECT_FALSE(process_with(word)) << word;
  }
};

TEST_F(RunEnd, FirstFailureGivesTheCodeAndStopsTheOthers) {
  const Ran ran = orrery({"run", "-n", "3", "sh", "-c", "[ $PMI_RANK = 1 ] && exit 7; exec sleep 1001.5"});
  EXPECT_EQ(ran.code, 7);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("PE 1 (pid "), HasSubstr("exited with code 7; stopping 2")));
  expect_gone("1001.5");
}

TEST_F(RunEnd, WhoWritesWithoutEndDoesNotHoldUpTheDeadline) {
  const Ran ran = orrery({"run", "-l", "-n", "1", "--timeout", "0.3", "sh", "-c", "exec yes 1017.25"});
  EXPECT_EQ(ran.code, 124);
  expect_gone("1017.25");
}

// Started by a shell, which is a PE itself.
Ran run_in_shell(const std::string& command) {
  return orrery({"run", "--timeout", "60", "sh", "-c", "unset PMI_FD ORRERY_JOB_FD; " + command});
}

TEST_F(RunEnd, LabelledOutputWithoutAReaderEndsItsWriters) {
  for (const char* const more : {"", "--keep-going ", "--hosts localhost "}) {
    const Ran ran = run_in_shell(std::string("{ \"$TESTED_TOOL\" run -l -n 2 ") + more +
                                 "yes 1018.25; echo code $? >&2; } | head -1");
    EXPECT_EQ(ran.code, 0) << more;
    EXPECT_THAT(ran.out, HasSubstr("] 1018.25\n")) << more;
    EXPECT_THAT(ran.err, HasSubstr("code 141\n")) << more;
    expect_gone("1018.25");
  }
}

TEST_F(RunEnd, LabelledOutputThatCannotBeWrittenIsAFailure) {
  const Ran ran = run_in_shell("exec \"$TESTED_TOOL\" run -l echo said > /dev/full");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("the PEs' output cannot be written: No space left on device"));
}

TEST_F(RunEnd, EndsWhereDeathsOfChildrenAreIgnored) {
  EXPECT_EQ(orrery({"run", "-n", "2", "true"}, nullptr, SIGCHLD).code, 0);
  EXPECT_EQ(orrery({"run", "-n", "2", "sh", "-c", "exit 7"}, nullptr, SIGCHLD).code, 7);
}

TEST_F(RunEnd, HangUpIsIgnoredUnderNohup) {
  const Ran ran = orrery(
      {"run", "-n", "1", "sh", "-c", "echo started; sleep 0.5; exit 9"}, [](pid_t pid) { kill(pid, SIGHUP); },
      SIGHUP);
  EXPECT_EQ(ran.code, 9);
}

TEST_F(RunEnd, SignalsOfTheUserGoOnToThePes) {
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    // The signal would end a PE that has no trap yet: each says by a process of its own that it has one.
    const std::string sign = "99" + std::to_string(signal) + "." + std::to_string(getpid());
    const Ran ran = orrery({"run", "-n", "2", "bash", "-c",
                            "trap 'kill $!; echo had; exit 0' USR1 USR2; echo ready; sleep " + sign +
                                "$PMI_RANK & while :; do sleep 0.01; done"},
                           [&sign, signal](pid_t pid) {
                             for (const char* rank : {"0", "1"})
                               for (int i = 0; i < 3000 && !process_with(sign + rank); ++i) usleep(10'000);
                             kill(pid, signal);
                           });
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "ready\nready\nhad\nhad\n");
  }
}

TEST_F(RunEnd, MorePesThanDescriptorsAreRefusedAsTheCommandLineIs) {
  const Ran ran =
      orrery({"run", "sh", "-c",
              "ulimit -n 200; ulimit -Hn 200; unset PMI_FD ORRERY_JOB_FD; exec \"$TESTED_TOOL\" run "
              "-n 300 true"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("300 PEs need "));
}

TEST_F(RunEnd, SignalGives128AndItsNumber) {
  const Ran ran =
      orrery({"run", "-n", "2", "sh", "-c", "[ $PMI_RANK = 0 ] && kill -SEGV $$; exec sleep 1002.5"});
  EXPECT_EQ(ran.code, 139);
  EXPECT_THAT(ran.err, HasSubstr("PE 0 (pid "));
  EXPECT_THAT(ran.err, HasSubstr("was killed by signal 11"));
  expect_gone("1002.5");
}

TEST_F(RunEnd, KeepGoingLetsTheOthersFinish) {
  const Ran ran = orrery({"run", "-n", "2", "--keep-going", "sh", "-c",
                          "[ $PMI_RANK = 0 ] && kill -KILL $$; sleep 0.2; echo finished"});
  EXPECT_EQ(ran.code, 137);
  EXPECT_EQ(ran.out, "finished\n");
}

TEST_F(RunEnd, PesThatIgnoreTheRequestAreKilled) {
  const Ran ran =
      orrery({"run", "-n", "2", "sh", "-c",
              "trap '' TERM; [ $PMI_RANK = 1 ] && sleep 0.2 && exit 3; while :; do sleep 1003.5; done"});
  EXPECT_EQ(ran.code, 3);
  expect_gone("1003.5");
}

TEST_F(RunEnd, WhatPesLeaveBehindIsKilled) {
  const Ran ran = orrery({"run", "-n", "2", "sh", "-c", "sleep 1004.5 & setsid sleep 1004.6 & exit 0"});
  EXPECT_EQ(ran.code, 0);
  expect_gone("1004.5");
  expect_gone("1004.6");
}

TEST_F(RunEnd, ChildrenOfWhoeverExecutedTheCommandAreLeftAlone) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t command = fork();
  if (command == 0) {
    const pid_t child = fork();
    if (child == 0) {
      while (true) pause();
    }
    if (write(ends[1], &child, sizeof child) == sizeof child)
      execl(std::getenv("TESTED_TOOL"), "orrery", "run", "true", nullptr);
    _exit(127);
  }
  to.reset();
  pid_t child = 0;
  ASSERT_EQ(read(from.get(), &child, sizeof child), static_cast<ssize_t>(sizeof child));
  int status = -1;
  ASSERT_EQ(waitpid(command, &status, 0), command);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(kill(child, 0), 0);  // the sweep would have reaped it as well
  kill(child, SIGKILL);
}

TEST_F(RunEnd, LabelledOutputHeldByADaemonDoesNotKeepTheJobAlive) {
  const Ran ran = orrery({"run", "--label", "sh", "-c", "echo started; setsid sleep 1005.5 & exit 0"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "[0] started\n");
  expect_gone("1005.5");
}

TEST_F(RunEnd, TimeoutNamesThePesAndWhatTheyDo) {
  const Ran ran = orrery({"run", "-n", "2", "--nodes", "2", "--timeout", "3", "sleep", "1006.5"});
  EXPECT_EQ(ran.code, 124);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("timeout after 3"), HasSubstr("PE 0 (pid "), HasSubstr("PE 1 (pid "),
                             HasSubstr("node 2): sleeping, has not called PMI_Init")));
  expect_gone("1006.5");
}

TEST_F(RunEnd, TimeoutEndsAStoppedPe) {
  const Ran ran = orrery({"run", "--timeout", "3", "sh", "-c", "kill -STOP $$; sleep 1007.5"});
  EXPECT_EQ(ran.code, 124);
  EXPECT_THAT(ran.err, HasSubstr("stopped"));
  expect_gone("1007.5");
}

// Talks PMI-1 from the shell: `say` sends a line, `hear` prints the answer.
const std::string kPmiShell =
    "eval \"exec 5<&$PMI_FD\"; "
    "say() { echo \"$@\" >&5; }; hear() { read line <&5; }; "
    "say cmd=init pmi_version=1 pmi_subversion=1; hear; ";

TEST_F(RunEnd, HangInABarrierNamesWhoDidNotArrive) {
  const Ran ran = orrery({"run", "-n", "3", "--timeout", "6", "bash", "-c",
                          kPmiShell + "[ $PMI_RANK = 1 ] && exec sleep 1008.5; say cmd=barrier_in; hear"});
  EXPECT_EQ(ran.code, 124);
  EXPECT_THAT(ran.err, HasSubstr("1 of 3 PEs did not arrive at PMI barrier 1: PE 1\n"));
  EXPECT_THAT(ran.err, HasSubstr("has not entered PMI barrier 1"));
  EXPECT_THAT(ran.err, HasSubstr("in PMI barrier 1"));
  expect_gone("1008.5");
}

TEST_F(RunEnd, BarrierThatCanNeverEndIsReportedWithoutATimeout) {
  const Ran ran =
      orrery({"run", "-n", "3", "bash", "-c",
              kPmiShell + "[ $PMI_RANK = 2 ] && exit 0; say cmd=barrier_in; hear; exec sleep 1009.5"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("a PMI barrier can never end"));
  EXPECT_THAT(ran.err, HasSubstr("PE 2 (pid "));
  EXPECT_THAT(ran.err, HasSubstr("exited with code 0"));
  expect_gone("1009.5");
}

TEST_F(RunEnd, AbortEndsTheJobWithItsCode) {
  const Ran ran = orrery({"run", "-n", "2", "bash", "-c",
                          kPmiShell + "[ $PMI_RANK = 1 ] && say cmd=abort exitcode=42; exec sleep 1010.5"});
  EXPECT_EQ(ran.code, 42);
  EXPECT_THAT(ran.err, HasSubstr("called PMI_Abort"));
  expect_gone("1010.5");
}

TEST_F(RunEnd, AbortWithCodeZeroIsNoFailure) {
  const Ran ran = orrery({"run", "-n", "2", "bash", "-c",
                          kPmiShell + "[ $PMI_RANK = 1 ] && say cmd=abort exitcode=0; exec sleep 1020.5"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("called PMI_Abort"));
  expect_gone("1020.5");
}

TEST_F(RunEnd, PeThatDoesNotSpeakPmiIsQuoted) {
  const Ran ran = orrery(
      {"run", "-n", "2", "bash", "-c", kPmiShell + "[ $PMI_RANK = 1 ] && say nonsense; exec sleep 1011.5"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("does not speak PMI-1: it sent 'nonsense'"));
  expect_gone("1011.5");
}

TEST_F(RunEnd, KeepGoingEndsWhenAllThatAreLeftWaitInVain) {
  const Ran ran = orrery({"run", "--keep-going", "--timeout", "20", "-n", "2", "bash", "-c",
                          kPmiShell + "[ $PMI_RANK = 0 ] && exit 5; say cmd=barrier_in; exec sleep 1018.5"});
  EXPECT_EQ(ran.code, 5);
  EXPECT_THAT(ran.err, HasSubstr("can never end"));
  expect_gone("1018.5");
}

TEST_F(RunEnd, InterruptEndsTheJobWith130) {
  const Ran ran =
      orrery({"run", "-n", "2", "sh", "-c", sleeper("1012.5")}, [](pid_t pid) { kill(pid, SIGINT); });
  EXPECT_EQ(ran.code, 130);
  expect_gone("1012.5");
}

TEST_F(RunEnd, TerminateEndsTheJobWith143) {
  const Ran ran =
      orrery({"run", "-n", "2", "sh", "-c", sleeper("1013.5")}, [](pid_t pid) { kill(pid, SIGTERM); });
  EXPECT_EQ(ran.code, 143);
  expect_gone("1013.5");
}

TEST_F(RunEnd, KillOfTheCommandItselfLeavesNoProcess) {
  const Ran ran = orrery({"run", "-n", "2", "sh", "-c", "sleep 1014.5 & echo started; sleep 1014.6"},
                         [](pid_t pid) { kill(pid, SIGKILL); });
  EXPECT_EQ(ran.code, 137);
  expect_gone("1014.5");
  expect_gone("1014.6");
}

// Held at the fork of its first PE, the command never comes to its next instruction; the PE runs on
// meanwhile.
TEST_F(RunEnd, KillOfTheCommandInTheMidstOfAForkLeavesNoProcess) {
  std::vector<std::string> words{"orrery", "run", "-n", "1", "sh", "-c", "sleep 1019.5 & exec sleep 1019.6"};
  const pid_t pid = fork_marked([&words] {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kNoTracing);
    execute_tool(words);
  });
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoTracing)
    ORRERY_SKIP("ptrace") << "ptrace is not allowed here";
  ASSERT_TRUE(WIFSTOPPED(status));
  ASSERT_EQ(ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL), 0);
  int forks = 0;  // the guardian's, then the PE's
  long signal = 0;
  while (forks < 2) {
    ASSERT_EQ(ptrace(PTRACE_CONT, pid, nullptr, signal), 0);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSTOPPED(status)) << "it ended before it started a PE";
    const bool forked = status >> 8 == (SIGTRAP | PTRACE_EVENT_FORK << 8);
    signal = forked ? 0 : WSTOPSIG(status);
    if (!forked) continue;
    ++forks;
    unsigned long child = 0;
    ASSERT_EQ(ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &child), 0);
    const auto child_pid = static_cast<pid_t>(child);
    ASSERT_EQ(waitpid(child_pid, &status, __WALL), child_pid);
    ASSERT_EQ(ptrace(PTRACE_DETACH, child_pid, nullptr, nullptr), 0);
  }
  // As the arguments of a process of its own: the command and the shell have the words in one.
  const std::string started = std::string("sleep") + '\0' + "1019.5";
  for (int i = 0; i < 3000 && !process_with(started); ++i) usleep(10'000);
  EXPECT_TRUE(process_with(started));
  kill(pid, SIGKILL);
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  expect_gone("1019.5");
  expect_gone("1019.6");
}

TEST_F(RunEnd, NothingIsLeftInSharedPlaces) {
  const auto before = shared_places();
  orrery({"run", "-n", "3", "true"});
  orrery({"run", "-n", "3", "sh", "-c", "kill -KILL $$"});
  orrery({"run", "-n", "2", "sh", "-c", sleeper("1015.5")}, [](pid_t pid) { kill(pid, SIGKILL); });
  expect_gone("1015.5");
  EXPECT_EQ(left_in_shared_places(before), std::set<std::string>{});
}

// kill -9 leaves its temporary folder; the next command that makes one removes it.
TEST_F(RunEnd, AKilledCommandsTemporaryFolderIsGoneAfterTheNext) {
  std::string folder = (std::filesystem::temp_directory_path() / "orrery-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const char* const was = getenv("TMPDIR");
  const std::string other = was == nullptr ? "" : was;
  setenv("TMPDIR", folder.c_str(), 1);
  orrery({"run", "--machine", "aries", "--optimistic", "sh", "-c", sleeper("1016.5")},
         [](pid_t pid) { kill(pid, SIGKILL); });
  expect_gone("1016.5");
  EXPECT_FALSE(std::filesystem::is_empty(folder)) << "nothing is left: the rest shows nothing";
  orrery({"run", "--machine", "aries", "--optimistic", "true"});
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  was == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", other.c_str(), 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace orrery::tool::test
