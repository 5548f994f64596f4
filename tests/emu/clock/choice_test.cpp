// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/choice.hpp"

#include <gtest/gtest.h>

namespace orrery::clock {
namespace {

TEST(Choice, AMachineAloneIsVirtualTime) {
  EXPECT_EQ(read_choice("", "", "").choice.kind, Kind::raw);
  EXPECT_EQ(read_choice("aries", "", "").choice.kind, Kind::virtual_time);
  EXPECT_EQ(read_choice("aries", "paced", "").choice.kind, Kind::paced);
  EXPECT_EQ(read_choice("aries", "raw", "").choice.kind, Kind::raw);
}

TEST(Choice, WordsTellApartWhateverMattersToTheOthers) {
  EXPECT_EQ(read_choice("", "", "").choice.words(), "raw");
  EXPECT_EQ(read_choice("aries", "", "").choice.words(), "aries virtual compute zero");
  EXPECT_EQ(read_choice("aries", "", "zero").choice.words(), "aries virtual compute zero");
  EXPECT_EQ(read_choice("gemini", "virtual", "2.5").choice.words(), "gemini virtual compute 2.5");
  EXPECT_EQ(read_choice("gemini", "virtual", "measured").choice.words(), "gemini virtual compute 1");
}

TEST(Choice, OptimismIsOfVirtualTimeAndPartOfTheWords) {
  EXPECT_EQ(read_choice("aries", "", "", "500").choice.words(),
            "aries virtual compute zero optimistic 500 ns");
  EXPECT_EQ(read_choice("aries", "", "2", "500").choice.compute.factor, 2);
  EXPECT_EQ(read_choice("aries", "", "").choice.ahead_ns, 0);
  for (const char* bad : {"0", "-1", "1000000001", "1us", "x"})
    EXPECT_NE(read_choice("aries", "", "", bad).problem.find("1..1000000000 ns"), std::string::npos) << bad;
  // Exported for some runs, it does not concern the others.
  for (const ReadChoice& other : {read_choice("aries", "paced", "", "5"), read_choice("", "", "", "5")}) {
    EXPECT_EQ(other.problem, "");
    EXPECT_EQ(other.choice.ahead_ns, 0);
  }
}

TEST(Choice, NamesWhatIsNotAcceptedAndWhatIs) {
  struct Case {
    const char *machine, *clock, *compute, *value, *accepted;
  };
  for (const Case& c :
       {Case{"aries", "atomic", "", "atomic", "raw, paced or virtual"},
        Case{"", "virtual", "", "virtual", "aries"}, Case{"ares", "", "", "ares", "aries"},
        Case{"aries", "", "-1", "-1", "0..1000000"}, Case{"aries", "", "nan", "nan", "0..1000000"},
        Case{"aries", "", "1e7", "1e7", "0..1000000"}, Case{"aries", "", "2x", "2x", "0..1000000"}}) {
    const std::string problem = read_choice(c.machine, c.clock, c.compute).problem;
    EXPECT_NE(problem.find(c.value), std::string::npos) << problem;
    EXPECT_NE(problem.find(c.accepted), std::string::npos) << problem;
  }
  EXPECT_EQ(read_choice("aries", "virtual", "1e6").problem, "");
}

}  // namespace
}  // namespace orrery::clock
