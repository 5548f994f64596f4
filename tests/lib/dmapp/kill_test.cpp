// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/tools/orrery/tool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <signal.h>

// Jobs of which one PE is killed in each kind of DMAPP call. ORRERY_LONG_TESTS=1 runs 200 of each.
namespace orrery::tool::test {
namespace {

struct Case {
  const char* what;
  const char* wire = "";  // ORRERY_WIRE
  int pes = 3;
};

class KilledIn : public testing::TestWithParam<Case> {};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* what :
       {"put",   "get",         "named",       "put_flag", "strided",  "indexed",     "pe_lists",
        "amo",   "amo_nbi",     "amo_general", "lock",     "lock_try", "lock_holder", "lock_host",
        "queue", "queue_async", "queue_fill",  "barrier",  "reduce",   "tested",      "export"}) {
    all.push_back({what});
    all.push_back({what, "ofi"});
  }
  // More PEs than tell each other one by one.
  all.push_back({"barrier", "", 11});
  all.push_back({"reduce", "", 11});
  all.push_back({"lock_holder", "", 5});
  all.push_back({"lock_late", "", 4});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, KilledIn, testing::ValuesIn(cases()), [](const auto& info) {
  return std::string(info.param.what) + (*info.param.wire == 0 ? "" : "ByWire") +
         (info.param.pes == 3 ? "" : "Of" + std::to_string(info.param.pes));
});

TEST_P(KilledIn, TheOthersHearOfItGoOnAndNothingIsLeft) {
  const char* all = std::getenv("ORRERY_LONG_TESTS");
  const std::uint64_t jobs = all != nullptr && all[0] == '1' ? 200 : 1;
  const auto before = shared_places();
  for (std::uint64_t seed = 1; seed <= jobs; ++seed) {
    const Ran ran = orrery({"run", "-n", std::to_string(GetParam().pes), "--keep-going", "--timeout", "60",
                            "env", std::string("ORRERY_WIRE=") + GetParam().wire, std::getenv("KILL_WORKER"),
                            GetParam().what, std::to_string(seed)});
    ASSERT_EQ(ran.code, 128 + SIGKILL) << "seed " << seed << '\n' << ran.err;
    int went_on = 0;
    for (std::size_t at = 0; (at = ran.out.find("went on", at)) != std::string::npos; ++at) ++went_on;
    ASSERT_EQ(went_on, GetParam().pes - 1) << "seed " << seed << '\n' << ran.out << ran.err;
  }
  EXPECT_EQ(left_in_shared_places(before), std::set<std::string>{});
}

}  // namespace
}  // namespace orrery::tool::test
