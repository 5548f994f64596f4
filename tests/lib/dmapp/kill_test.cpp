// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/tools/orrery/tool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include <signal.h>

// Jobs of which one PE is killed in each kind of DMAPP call. ORRERY_LONG_TESTS=1 runs 200 of each.
namespace orrery::tool::test {
namespace {

struct Case {
  const char* what;
  const char* wire;  // ORRERY_WIRE
};

class KilledIn : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(All, KilledIn,
                         testing::Values(Case{"put", ""}, Case{"get", ""}, Case{"amo", ""}, Case{"lock", ""},
                                         Case{"lock_holder", ""}, Case{"lock_host", ""}, Case{"queue", ""},
                                         Case{"barrier", ""}, Case{"reduce", ""}, Case{"put", "ofi"},
                                         Case{"get", "ofi"}, Case{"amo", "ofi"}, Case{"lock_holder", "ofi"},
                                         Case{"lock_host", "ofi"}, Case{"queue", "ofi"},
                                         Case{"barrier", "ofi"}),
                         [](const auto& info) {
                           return std::string(info.param.what) + (*info.param.wire == 0 ? "" : "ByWire");
                         });

TEST_P(KilledIn, TheOthersHearOfItGoOnAndNothingIsLeft) {
  const char* all = std::getenv("ORRERY_LONG_TESTS");
  const std::uint64_t jobs = all != nullptr && all[0] == '1' ? 200 : 2;
  const auto before = shared_places();
  for (std::uint64_t seed = 1; seed <= jobs; ++seed) {
    const Ran ran = orrery({"run", "-n", "3", "--keep-going", "--timeout", "60", "env",
                            std::string("ORRERY_WIRE=") + GetParam().wire, std::getenv("KILL_WORKER"),
                            GetParam().what, std::to_string(seed)});
    ASSERT_EQ(ran.code, 128 + SIGKILL) << "seed " << seed << '\n' << ran.err;
    int went_on = 0;
    for (std::size_t at = 0; (at = ran.out.find("went on", at)) != std::string::npos; ++at) ++went_on;
    ASSERT_EQ(went_on, 2) << "seed " << seed << '\n' << ran.out << ran.err;
  }
  EXPECT_EQ(left_in_shared_places(before), std::set<std::string>{});
}

}  // namespace
}  // namespace orrery::tool::test
