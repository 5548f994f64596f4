// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace orrery::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Config, TableIsSortedAndEveryDefaultIsAccepted) {
  const auto table = knobs();
  EXPECT_TRUE(std::is_sorted(table.begin(), table.end(),
                             [](const Knob& a, const Knob& b) { return a.name < b.name; }));
  for (const Knob& knob : table) {
    EXPECT_FALSE(knob.help.empty()) << knob.name;
    if (knob.default_value.empty()) continue;
    EXPECT_FALSE(problem_with(knob, knob.default_value)) << knob.name;
  }
}

TEST(Config, UnknownVariableIsReportedWithTheNearestName) {
  const char* environment[] = {"PATH=/bin", "ORRERY_ADOPTT=hot", nullptr};
  EXPECT_THAT(check_environment(environment), ElementsAre(HasSubstr("did you mean ORRERY_ADOPT?")));
}

TEST(Config, VariableThatIsNearNoNameIsReportedWithoutAGuess) {
  const char* environment[] = {"ORRERY_FOO=1", nullptr};
  EXPECT_THAT(check_environment(environment),
              ElementsAre("unknown variable ORRERY_FOO: 'orrery info' lists what there is"));
}

TEST(Config, UnacceptableValueIsReportedWithWhatIsAccepted) {
  const char* environment[] = {"ORRERY_ADOPT=sometimes", nullptr};
  EXPECT_THAT(check_environment(environment),
              ElementsAre(AllOf(HasSubstr("sometimes"), HasSubstr("eager|hot|never"))));
}

TEST(Config, AcceptedVariablesAreNotReported) {
  const char* environment[] = {"ORRERY_ADOPT=never", "ORRERY_LOG=debug", nullptr};
  EXPECT_THAT(check_environment(environment), IsEmpty());
}

TEST(Config, UnacceptableValueFallsBackToTheDefault) {
  setenv("ORRERY_ADOPT", "sometimes", 1);
  EXPECT_EQ(text("ORRERY_ADOPT"), "hot");
  setenv("ORRERY_ADOPT", "never", 1);
  EXPECT_EQ(text("ORRERY_ADOPT"), "never");
  unsetenv("ORRERY_ADOPT");
}

TEST(Config, AnUnacceptableValueIsToldOnceWhateverMeetsItFirst) {
  setenv("ORRERY_ADOPT_AFTER", "4K", 1);
  const char* const environment[] = {"ORRERY_ADOPT_AFTER=4K", "ORRERY_DEADLOCK=-1", "ORRERY_FOO=1", nullptr};
  ::testing::internal::CaptureStderr();
  tell_of_environment(environment);
  EXPECT_EQ(number("ORRERY_ADOPT_AFTER"), 16u);
  EXPECT_EQ(number("ORRERY_ADOPT_AFTER"), 16u);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "orrery: error: ORRERY_ADOPT_AFTER=4K is not accepted: expected 1..1000000 operations; using 16\n"
            "orrery: error: ORRERY_DEADLOCK=-1 is not accepted: expected 1..86400 s; using 30\n"
            "orrery: warn: unknown variable ORRERY_FOO: 'orrery info' lists what there is\n");
  setenv("ORRERY_ADOPT_AFTER", "99999999999999999999", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(number("ORRERY_ADOPT_AFTER"), 16u);
  EXPECT_EQ(number("ORRERY_ADOPT_AFTER"), 16u);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "orrery: error: ORRERY_ADOPT_AFTER=99999999999999999999 is not accepted: expected 1..1000000 "
            "operations; using 16\n");
  unsetenv("ORRERY_ADOPT_AFTER");
}

TEST(Config, VariablesOfTheTestsAreNotUnknown) {
  const char* const environment[] = {"ORRERY_TESTS_REQUIRE=root", "ORRERY_TEST_SEED=1", nullptr};
  EXPECT_TRUE(config::check_environment(environment).empty());
}

TEST(Config, WithoutADefaultAnUnacceptableValueIsAsIfUnset) {
  setenv("ORRERY_FAULT", "lose=1", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(text("ORRERY_FAULT"), "");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("; going on as if it were unset\n"));
  unsetenv("ORRERY_FAULT");
}

}  // namespace
}  // namespace orrery::config
