// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// `orrery run --hosts`: agents behind a stand-in for ssh that runs the command on this host.
#include "tests/tools/orrery/tool.hpp"
#include "tools/orrery/hosts/agent_message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace orrery::tool::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A program that is called as ssh is: HOST COMMAND.
class FakeSsh {
 public:
  explicit FakeSsh(const std::string& body) : file_("#!/bin/sh\n" + body + "\n") {
    chmod(file_.path().c_str(), 0700);
  }
  const std::string& path() const { return file_.path(); }

 private:
  TempFile file_;
};

constexpr const char* kHere = "shift; exec sh -c \"$*\"";

std::string sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

// Sleep times are names: every test has its own.
class Hosts : public ::testing::Test {
 protected:
  Ran run(std::vector<std::string> args, const std::function<void(pid_t)>& meanwhile = nullptr) {
    std::vector<std::string> all{"run", "--launcher-exec", ssh_.path()};
    all.insert(all.end(), args.begin(), args.end());
    return orrery(all, meanwhile);
  }
  void expect_gone(const std::string& word) {
    for (int i = 0; i < 500 && process_with(word); ++i) usleep(10'000);
    EXPECT_FALSE(process_with(word)) << word;
  }
  FakeSsh ssh_{kHere};
};

TEST_F(Hosts, EveryPeKnowsItsPlace) {
  const Ran ran = run({"--hosts", "a,b", "-n", "5", "sh", "-c",
                       "echo $PMI_RANK of $PMI_SIZE, $MPI_LOCALRANKID of $MPI_LOCALNRANKS"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(sorted_lines(ran.out),
            "0 of 5, 0 of 3\n1 of 5, 1 of 3\n2 of 5, 2 of 3\n3 of 5, 0 of 2\n4 of 5, 1 of 2\n");
}

TEST_F(Hosts, CountsBehindColonsGiveTheNumberOfPes) {
  const Ran ran = run({"--hosts", "a:1,b:3", "--label", "sh", "-c", "echo $MPI_LOCALNRANKS; echo error >&2"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(sorted_lines(ran.out), "[0] 1\n[1] 3\n[2] 3\n[3] 3\n");
  EXPECT_EQ(sorted_lines(ran.err), "[0] error\n[1] error\n[2] error\n[3] error\n");
}

TEST_F(Hosts, LocalhostNeedsNoHelp) {
  const Ran ran = orrery({"run", "--hosts", "localhost", "-n", "2", "sh", "-c", "echo here"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "here\nhere\n");
}

TEST_F(Hosts, AllOutputArrivesAndVariablesAndFolderGoAlong) {
  setenv("HOSTS_TEST_WORD", "it's \"this\"", 1);
  const Ran ran = run(
      {"--hosts", "a", "sh", "-c", "echo \"$HOSTS_TEST_WORD\"; pwd; head -c 3000000 /dev/zero | tr '\\0' x"});
  unsetenv("HOSTS_TEST_WORD");
  char folder[4096];
  ASSERT_NE(getcwd(folder, sizeof folder), nullptr);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(ran.out == "it's \"this\"\n" + std::string(folder) + "\n" + std::string(3000000, 'x'))
      << ran.out.size();
}

TEST_F(Hosts, InputGoesToTheFirstPe) {
  const Ran ran = run({"--hosts", "a,b", "sh", "-c", "cat; echo end"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "end\nend\n");
}

TEST_F(Hosts, FirstFailureGivesTheCodeAndStopsTheOthers) {
  const Ran ran =
      run({"--hosts", "a,b", "-n", "4", "sh", "-c", "[ $PMI_RANK = 2 ] && exit 7; exec sleep 2001.5"});
  EXPECT_EQ(ran.code, 7);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("PE 2 (pid "), HasSubstr(" on b) exited with code 7")));
  expect_gone("2001.5");
}

TEST_F(Hosts, KeepGoingLetsTheOthersFinish) {
  const Ran ran = run({"--hosts", "a,b", "--keep-going", "sh", "-c",
                       "[ $PMI_RANK = 0 ] && kill -KILL $$; sleep 0.2; echo finished"});
  EXPECT_EQ(ran.code, 137);
  EXPECT_EQ(ran.out, "finished\n");
}

TEST_F(Hosts, PesThatIgnoreTheRequestAndWhatTheyLeaveIsKilled) {
  const Ran ran = run({"--hosts", "a,b", "sh", "-c",
                       "setsid sleep 2002.6 & trap '' TERM; [ $PMI_RANK = 1 ] && sleep 0.2 && exit 3; "
                       "while :; do sleep 2002.5; done"});
  EXPECT_EQ(ran.code, 3);
  expect_gone("2002.5");
  expect_gone("2002.6");
}

TEST_F(Hosts, TimeoutNamesThePesAndTheirHosts) {
  const Ran ran = run({"--hosts", "a,b", "--timeout", "2", "sleep", "2003.5"});
  EXPECT_EQ(ran.code, 124);
  EXPECT_THAT(ran.err,
              AllOf(HasSubstr("timeout after 2 s"), HasSubstr(", host b): has not called PMI_Init")));
  expect_gone("2003.5");
}

TEST_F(Hosts, AKilledLauncherLeavesNothing) {
  const Ran ran = run({"--hosts", "a,b", "sh", "-c", "echo started; exec sleep 2004.5"},
                      [](pid_t pid) { kill(pid, SIGKILL); });
  EXPECT_EQ(ran.code, 137);
  expect_gone("2004.5");
}

TEST_F(Hosts, ASignalEndsTheJob) {
  const Ran ran = run({"--hosts", "a,b", "sh", "-c", "echo started; exec sleep 2005.5"},
                      [](pid_t pid) { kill(pid, SIGINT); });
  EXPECT_EQ(ran.code, 130);
  expect_gone("2005.5");
}

TEST_F(Hosts, AnAgentThatIsKilledEndsTheJob) {
  const Ran ran =
      run({"--hosts", "a,b", "sh", "-c", "[ $PMI_RANK = 1 ] && kill -KILL $PPID; exec sleep 2006.5"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("orrery: host b: its agent is lost: it ended with code 137"));
  expect_gone("2006.5");
}

TEST_F(Hosts, AProgramThatIsNotThereIsNamedWithItsHost) {
  const Ran ran = run({"--hosts", "a", "no-such-program-2007"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err,
            "orrery: host a: 'no-such-program-2007' cannot be run: expected an executable file in PATH\n");
}

TEST_F(Hosts, HostsThatCannotBeReachedAreSaidInOneLine) {
  const FakeSsh refusing("exit 255");
  const Ran ran = orrery({"run", "--launcher-exec", refusing.path(), "--hosts", "b", "true"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "orrery: host b: its agent is lost: it ended with code 255\n");
  const FakeSsh talking("echo Welcome to this host; exec cat");
  const Ran other = orrery({"run", "--launcher-exec", talking.path(), "--hosts", "b", "true"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, AllOf(HasSubstr("host b: its agent is lost: it wrote 'Welcome to this host"),
                               HasSubstr("not the language of 'orrery agent'")));
}

// A host that is there and says nothing, before it greets and after.
TEST_F(Hosts, AHostThatSaysNothingEndsTheJobInTime) {
  const FakeSsh silent("exec sleep 2008.5");
  const Ran ran = orrery({"run", "--launcher-exec", silent.path(), "--patience", "0.5", "--timeout", "60",
                          "--hosts", "b", "true"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(
      ran.err,
      "orrery: host b: its agent is lost: it said nothing for 0.5 s (no 'orrery agent' answers there)\n");
  expect_gone("2008.5");
  std::string hello;
  write_message(hello, AgentKind::hello, 0, kAgentHello);
  const TempFile greeting(hello);
  const FakeSsh greets("cat " + greeting.path() + "; exec sleep 2009.5");
  const Ran greeted = orrery({"run", "--launcher-exec", greets.path(), "--patience", "0.5", "--timeout", "60",
                              "--hosts", "b", "true"});
  EXPECT_EQ(greeted.code, 1);
  EXPECT_EQ(greeted.err,
            "orrery: host b: its agent is lost: it said nothing for 0.5 s (it has not started its PEs)\n");
  expect_gone("2009.5");
  // PEs that say nothing are no silent host.
  EXPECT_EQ(run({"--hosts", "a,b", "--patience", "5", "sh", "-c", "sleep 6"}).code, 0);
}

// Whatever is at the other end of ssh: no sequence that a terminal obeys comes from there in our own lines.
TEST_F(Hosts, WhatAnotherHostSaysIsQuoted) {
  for (const AgentKind kind : {AgentKind::hello, AgentKind::refused}) {
    std::string stream;
    if (kind != AgentKind::hello) write_message(stream, AgentKind::hello, 0, kAgentHello);
    write_message(stream, kind, 0,
                  "\x1b]0;title\x07\x1b[2J\x9b"
                  "1m");
    const TempFile words(stream);
    const FakeSsh hostile("cat " + words.path() + "; exec sleep 2010.5");
    const Ran ran =
        orrery({"run", "--launcher-exec", hostile.path(), "--timeout", "60", "--hosts", "b", "true"});
    EXPECT_NE(ran.code, 0);
    EXPECT_TRUE(std::all_of(ran.err.begin(), ran.err.end(), [](char c) {
      return c == '\n' || (c >= ' ' && c <= '~');
    })) << "a control character";
    EXPECT_THAT(ran.err, HasSubstr("\\x1b]0;title\\x07"));
    expect_gone("2010.5");
  }
}

TEST_F(Hosts, AnAgentRaisesItsDescriptorLimitAndElseSaysWhy) {
  const FakeSsh soft("shift; ulimit -Sn 64; exec sh -c \"$*\"");
  const Ran raised =
      orrery({"run", "--launcher-exec", soft.path(), "--hosts", "a,b", "sh", "-c", "ulimit -Sn"});
  EXPECT_EQ(raised.code, 0) << raised.err;
  EXPECT_EQ(raised.out, "64\n64\n");  // the PEs' own is as they were given it
  const FakeSsh hard("shift; ulimit -n 64; exec sh -c \"$*\"");
  const Ran refused = orrery({"run", "--launcher-exec", hard.path(), "--hosts", "b", "true"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("no agent: descriptors above 64 are needed: the limit is 64"),
                                 HasSubstr("host b: its agent is lost")));
}

TEST_F(Hosts, BadInputIsOneLineThatNamesIt) {
  const struct {
    std::vector<std::string> args;
    const char* line;
  } cases[] = {
      {{"--hosts", "a,,b"}, "--hosts a,,b: '' is not a host"},
      {{"--hosts", "-oProxyCommand=x"}, "'-oProxyCommand=x' is not a host"},
      {{"--hosts", "a b"}, "'a b' is not a host"},
      {{"--hosts", "a:0"}, "'a:0' is not accepted: expected 1..1024 PEs after the colon"},
      {{"--hosts", "a:x"}, "'a:x' is not accepted"},
      {{"--hosts", "fd00::1,b"},
       "'fd00::1' is not accepted: expected an IPv6 address in brackets, [fd00::1]"},
      {{"--hosts", "a:2,b"}, "expected :PEs behind every host or behind none"},
      {{"--hosts", "a:2,b:2", "-n", "3"}, "names 4 PEs, -n 3"},
      {{"--hosts", "a:1000,b:1000"}, "2000 PEs: expected at most 1024"},
      {{"--hosts", "a,b,c", "-n", "2"}, "3 hosts for 2 PEs"},
      {{"--hosts", "a,a"}, "host a is named twice"},
      {{"--hosts", "a", "--nodes", "1"}, "--nodes 1 cannot be used with --hosts"},
  };
  for (const auto& one : cases) {
    std::vector<std::string> args = one.args;
    args.emplace_back("true");
    const Ran ran = run(args);
    EXPECT_EQ(ran.code, 2) << one.line;
    EXPECT_THAT(ran.err, HasSubstr(one.line));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
  const Ran patient = orrery({"run", "--patience", "3", "true"});
  EXPECT_EQ(patient.code, 2);
  EXPECT_THAT(patient.err, HasSubstr("--patience 3 is of no use without --hosts"));
  EXPECT_THAT(run({"--hosts", "a", "--patience", "0", "true"}).err,
              HasSubstr("--patience 0 is not accepted: expected 0.001.."));
  const Ran lonely = orrery({"run", "--launcher-exec", "ssh", "true"});
  EXPECT_EQ(lonely.code, 2);
  EXPECT_THAT(lonely.err, HasSubstr("--launcher-exec ssh is of no use without --hosts"));
  const Ran missing = orrery({"run", "--launcher-exec", "/no/such", "--hosts", "a", "true"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("--launcher-exec '/no/such' cannot be run"));
}

}  // namespace
}  // namespace orrery::tool::test
