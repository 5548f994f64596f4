// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/process_stat.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::job {
namespace {

constexpr std::string_view kTail = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";

TEST(ProcessStat, NameMayHoldSpacesAndParentheses) {
  const auto stat = parse_process_stat("12 (a) R (b c) S" + std::string(kTail));
  EXPECT_TRUE(stat.exists);
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.start_time, 4711u);
}

TEST(ProcessStat, ZombieIsNotThere) {
  EXPECT_FALSE(parse_process_stat("12 (a) Z" + std::string(kTail)).exists);
}

TEST(ProcessStat, TextThatIsNoneIsNotThere) {
  for (const char* text :
       {"", "12", "12 (a)", "12 (a) ", "12 (a) R", "12 (a) R 1 2 3", "no parenthesis R 1 2"}) {
    EXPECT_FALSE(parse_process_stat(text).exists) << text;
  }
}

TEST(ProcessStat, FindsThisProcessAndNotAnImpossibleOne) {
  EXPECT_TRUE(process_stat(getpid()).exists);
  EXPECT_GT(process_stat(getpid()).start_time, 0u);
  EXPECT_FALSE(process_stat(0x7ffffff0).exists);
}

TEST(ProcessStat, ProcessIsStoppedWhenAllOfItsThreadsAre) {
  EXPECT_FALSE(is_stopped(getpid()));
  EXPECT_FALSE(is_stopped(0x7fff'ffff));
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  EXPECT_FALSE(is_stopped(child));
  int status = 0;
  ASSERT_EQ(kill(child, SIGSTOP), 0);
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(is_stopped(child));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(is_stopped(child));
}

TEST(ProcessStat, UsedUpDescriptorsAreNoDeath) {
  const std::uint64_t start = process_stat(getpid()).start_time;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const ProcessStat stat = process_stat(getpid());
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(stat.exists);
  EXPECT_FALSE(stat.known);
  EXPECT_TRUE(stat.is_from(start));
}

}  // namespace
}  // namespace orrery::job
