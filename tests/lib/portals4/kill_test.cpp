// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/tools/orrery/tool.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include <signal.h>

// Jobs of which one PE is killed in the middle of calls of one kind, at a random point: the others hear
// nothing that is not so, and go on. KILL_WORKER and KILL_KINDS say which program and which kinds;
// ORRERY_TEST_SEED replays one point of each; ORRERY_LONG_TESTS=1 takes 50.
namespace orrery::tool::test {
namespace {

void run_job(const std::string& kind, std::uint64_t seed) {
  const Ran ran = orrery({"run", "-n", "3", "--keep-going", "--timeout", "100", std::getenv("KILL_WORKER"),
                          kind, std::to_string(seed)});
  ASSERT_EQ(ran.code, 128 + SIGKILL) << ran.out << ran.err;
  int went_on = 0;
  for (std::size_t at = 0; (at = ran.out.find("went on", at)) != std::string::npos; ++at) ++went_on;
  ASSERT_EQ(went_on, 2) << ran.out << ran.err;
}

TEST(KilledInACall, TheOthersGoOn) {
  const char* asked = std::getenv("ORRERY_TEST_SEED");
  const char* all = std::getenv("ORRERY_LONG_TESTS");
  const std::uint64_t first = asked != nullptr ? std::strtoull(asked, nullptr, 0) : 1;
  const std::uint64_t points = asked != nullptr ? 1 : all != nullptr && all[0] == '1' ? 50 : 3;
  std::istringstream kinds(std::getenv("KILL_KINDS"));
  for (std::string kind; kinds >> kind;) {
    for (std::uint64_t seed = first; seed < first + points; ++seed) {
      SCOPED_TRACE(kind + ", replay with ORRERY_TEST_SEED=" + std::to_string(seed));
      run_job(kind, seed);
      ASSERT_FALSE(::testing::Test::HasFatalFailure());
    }
  }
}

}  // namespace
}  // namespace orrery::tool::test
