// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/tools/orrery/tool.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include <signal.h>

// Jobs of which one PE is killed at a random point under load. ORRERY_TEST_SEED replays one;
// ORRERY_LONG_TESTS=1 runs 1,000.
namespace orrery::tool::test {
namespace {

void run_job(std::uint64_t seed) {
  const Ran ran = orrery({"run", "-n", "3", "--keep-going", "--timeout", "60", std::getenv("KILL_WORKER"),
                          std::to_string(seed)});
  ASSERT_EQ(ran.code, 128 + SIGKILL) << ran.err;
  int went_on = 0;
  for (std::size_t at = 0; (at = ran.out.find("went on", at)) != std::string::npos; ++at) ++went_on;
  ASSERT_EQ(went_on, 2) << ran.out << ran.err;
}

TEST(KillUnderLoad, TheOthersHearOfItGoOnAndNothingIsLeft) {
  if (const char* asked = std::getenv("ORRERY_TEST_SEED")) {
    ASSERT_NO_FATAL_FAILURE(run_job(std::strtoull(asked, nullptr, 0)));
    return;
  }
  const char* all = std::getenv("ORRERY_LONG_TESTS");
  const std::uint64_t jobs = all != nullptr && all[0] == '1' ? 1'000 : 20;
  std::printf("seeds 1..%llu\n", static_cast<unsigned long long>(jobs));
  const auto before = shared_places();
  for (std::uint64_t seed = 1; seed <= jobs; ++seed) {
    run_job(seed);
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "replay with ORRERY_TEST_SEED=" << seed;
  }
  EXPECT_EQ(left_in_shared_places(before), std::set<std::string>{});
}

}  // namespace
}  // namespace orrery::tool::test
