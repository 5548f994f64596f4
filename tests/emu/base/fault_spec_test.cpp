// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/fault_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using ::testing::HasSubstr;

TEST(FaultSpec, SaysWhatTheWordsSay) {
  std::string why;
  const auto spec = parse_faults(
      "seed=7,drop=0.25,corrupt=@3,revoke=1,link=1e-3,delay=0.5:2ms,dead=0x11,dead=4@100,pe=1,pe=0", &why);
  ASSERT_TRUE(spec) << why;
  EXPECT_EQ(spec->seed, 7u);
  EXPECT_EQ(spec->drop.chance, 0.25);
  EXPECT_EQ(spec->drop.operation, 0u);
  EXPECT_EQ(spec->corrupt.chance, 0);
  EXPECT_EQ(spec->corrupt.operation, 3u);
  EXPECT_EQ(spec->revoke.chance, 1);
  EXPECT_EQ(spec->link.chance, 1e-3);
  EXPECT_EQ(spec->delay.chance, 0.5);
  EXPECT_EQ(spec->delay_ns, 2'000'000);
  ASSERT_EQ(spec->dead.size(), 2u);
  EXPECT_EQ(spec->dead[0].nic_address, 0x11u);
  EXPECT_EQ(spec->dead[0].from, 0u);
  EXPECT_EQ(spec->dead[1].nic_address, 4u);
  EXPECT_EQ(spec->dead[1].from, 100u);
  EXPECT_THAT(spec->pes, ::testing::ElementsAre(1, 0));
  EXPECT_TRUE(spec->any());
}

TEST(FaultSpec, NothingAndASeedAloneAreNoFaults) {
  std::string why;
  EXPECT_FALSE(parse_faults("", &why)->any());
  EXPECT_FALSE(parse_faults("seed=3,pe=0", &why)->any());
  EXPECT_FALSE(parse_faults("drop=0", &why)->any());
}

TEST(FaultSpec, ATimeMayHaveASpaceBeforeItsUnit) {
  std::string why;
  EXPECT_EQ(parse_faults("delay=1:1.5 us", &why)->delay_ns, 1500);
}

struct Bad {
  const char* text;
  const char* token;
  const char* expected;
};
class FaultSpecRefuses : public ::testing::TestWithParam<Bad> {};

TEST_P(FaultSpecRefuses, AndNamesTheTokenAndWhatIsAccepted) {
  std::string why;
  EXPECT_FALSE(parse_faults(GetParam().text, &why));
  EXPECT_THAT(why, HasSubstr(std::string("'") + GetParam().token + "' is not accepted: expected "));
  EXPECT_THAT(why, HasSubstr(GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(
    Table, FaultSpecRefuses,
    ::testing::Values(
        Bad{"drop", "drop", "drop=WHEN"}, Bad{"drop=", "drop=", "a chance 0..1"},
        Bad{"drop=1.5", "drop=1.5", "a chance 0..1"}, Bad{"drop=-0.1", "drop=-0.1", "0..1"},
        Bad{"drop=nan", "drop=nan", "0..1"}, Bad{"drop=0.1x", "drop=0.1x", "0..1"},
        Bad{"seed=1,corrupt=@0", "corrupt=@0", "the N-th operation"},
        Bad{"link=@", "link=@", "the N-th operation"}, Bad{"lost=1", "lost=1", "drop=WHEN"},
        Bad{"delay=0.5", "delay=0.5", "delay=WHEN:TIME"}, Bad{"delay=0.5:", "delay=0.5:", "a time above 0"},
        Bad{"delay=1:5", "delay=1:5", "a time above 0"}, Bad{"delay=1:0us", "delay=1:0us", "a time above 0"},
        Bad{"delay=1:61 s", "delay=1:61 s", "at most 60 s"},
        Bad{"delay=2:5us", "delay=2:5us", "a chance 0..1"}, Bad{"dead=", "dead=", "a NIC address 0..262143"},
        Bad{"dead=262144", "dead=262144", "0..262143"}, Bad{"dead=3@", "dead=3@", "dead=ADDRESS@N"},
        Bad{"dead=3@0", "dead=3@0", "dead=ADDRESS@N"}, Bad{"seed=-1", "seed=-1", "seed=NUMBER"},
        Bad{"pe=one", "pe=one", "pe=RANK"}, Bad{"drop=0.1,", "", "drop=WHEN"},
        Bad{",drop=0.1", "", "drop=WHEN"}, Bad{" drop=0.1", " drop=0.1", "drop=WHEN"},
        Bad{"=", "=", "drop=WHEN"}, Bad{"drop=0.1,seed=2,drop=0.2", "drop=0.2", "drop once"}));

}  // namespace
}  // namespace orrery
