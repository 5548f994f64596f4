// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/tools/orrery/tool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

// Programs under virtual time that are told of events by a completion channel, and of errors.
namespace orrery::tool::test {
namespace {

std::vector<std::string> sorted_reports(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> reports_of(const char* what, const char* how) {
  const Ran ran = orrery(
      {"run", "-n", "2", "--timeout", "60", "--machine", "aries", std::getenv("CLOCK_WORKER"), what, how});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err.find("not exact"), std::string::npos) << ran.err;
  return sorted_reports(ran.out);
}

// 0: by GNI_CompChanGetEvent alone. 1 to 3: by the descriptor. 4: that does not block.
class Channels : public ::testing::TestWithParam<const char*> {};

TEST_P(Channels, TellOfAnEventAtItsTime) {
  const auto awaited = reports_of("channels", GetParam());
  ASSERT_EQ(awaited.size(), 40u);
  EXPECT_EQ(awaited, reports_of("channels", GetParam()));
  // Each of 20 rounds: PE 0 sleeps 300 us, and both puts take the same.
  const auto time_of = [&](std::size_t line) {
    return std::atol(awaited[line].c_str() + awaited[line].find(": ") + 2);
  };
  const long first_put = time_of(20) - 300'000;
  EXPECT_GT(first_put, 0);
  EXPECT_LT(first_put, 1'000) << awaited[20];
}
INSTANTIATE_TEST_SUITE_P(Clock, Channels, ::testing::Values("0", "1", "2", "3", "4"));

TEST(ErrorsInVirtualTime, AreToldToOneThatLooksAndToOneThatWaits) {
  for (const char* const how : {"0", "1"}) {
    const auto told = reports_of("errors", how);
    ASSERT_EQ(told.size(), 4u) << how;
    for (const std::string& line : told) {
      EXPECT_NE(line.find(": 1 error of code 18, posted "), std::string::npos) << line;
      EXPECT_NE(line.find(" stamped then"), std::string::npos) << line;
    }
    EXPECT_EQ(told, reports_of("errors", how)) << how;
  }
}

TEST(ThreadsInVirtualTime, OneThatSleepsAfterItWasElsewhereIsWokenWhileAnotherWaitsForEver) {
  for (const char* const pes : {"1", "2"}) {
    const Ran ran = orrery({"run", "-n", pes, "--timeout", "60", "--machine", "aries",
                            std::getenv("CLOCK_WORKER"), "late_sleep"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("PE 0 slept 200"), std::string::npos) << ran.out;
  }
}

// Time stands still for them: one after another looks, so that how far each gets is the same in every run.
TEST(LooksInVirtualTime, ThoseThatGoOnByThemselvesWhileTimeStandsStillDoTheSameInEveryRun) {
  const auto steps = [] {
    const Ran ran = orrery({"run", "-n", "4", "--timeout", "60", "--machine", "aries",
                            std::getenv("CLOCK_WORKER"), "steps_between_looks"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.err.find("not exact"), std::string::npos) << ran.err;
    return sorted_reports(ran.out);
  };
  const auto first = steps();
  EXPECT_EQ(first.size(), 40u);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(steps(), first);
}

// How far the others get until it is there is the host's business.
TEST(LooksInVirtualTime, OneThatGoesOnByItselfBesideOneToWhichSomethingIsBroughtIsNotExact) {
  const Ran ran = orrery({"run", "-n", "2", "--timeout", "60", "--machine", "aries",
                          std::getenv("CLOCK_WORKER"), "steps_between_looks", "brought"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("this run is not exact"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace orrery::tool::test
