// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/machine_file.hpp"

#include "emu/model/machine.hpp"

#include <gtest/gtest.h>

#include <string>

namespace orrery::model {
namespace {

std::string shipped(std::string_view name) {
  for (const ShippedFile& file : shipped_machines()) {
    if (file.name == name) return std::string(file.text);
  }
  return {};
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string problem(const std::string& text) {
  const MachineFile file = parse_machine(text, "my.toml");
  if (!file.description) return file.error;
  return compile(*file.description).error;
}

TEST(MachineFile, EveryShippedMachineLoadsAndCompiles) {
  EXPECT_EQ(shipped_machines().size(), 6u);
  for (const ShippedFile& file : shipped_machines()) {
    const BuiltMachine built = build_machine(std::string(file.name));
    ASSERT_TRUE(built.machine) << built.error;
    EXPECT_EQ(built.machine->description.name, file.name);
  }
}

TEST(MachineFile, RefusesBytesBeyondAsciiWithTheirLine) {
  const MachineFile file = parse_machine("schema = 1\n\xe2\x80\x80name = 1\n", "my.toml");
  EXPECT_FALSE(file.description);
  EXPECT_NE(file.error.find("my.toml: line 2: byte 0xe2"), std::string::npos) << file.error;
}

// Each part would be a table in a table; taken apart by recursion they take the whole stack.
TEST(MachineFile, RefusesAKeyOfVeryManyPartsWithItsLine) {
  std::string key = "a";
  for (int i = 0; i < 200'000; ++i) key += ".a";
  for (const std::string& text :
       {key + " = 1\n", "[" + key + "]\n", "a = { b = \"\\\"\", " + key + " = 1 }\n"}) {
    const MachineFile file = parse_machine("schema = 1\n" + text, "my.toml");
    EXPECT_FALSE(file.description);
    EXPECT_NE(file.error.find("my.toml: line 2: more than 16 dots"), std::string::npos) << file.error;
  }
}

TEST(MachineFile, EveryShippedNumberHasASource) {
  for (const ShippedFile& file : shipped_machines()) {
    const MachineFile loaded = parse_machine(file.text, file.name);
    for (const auto& [name, c] : loaded.description->constants) {
      EXPECT_TRUE(!c.source.empty() || (c.fitted && !c.rows.empty())) << file.name << " " << name;
    }
  }
}

struct BadInput {
  const char* name;
  const char* machine;
  const char* from;
  const char* to;
  const char* message;  // what the one line must contain besides the file
};

class MachineFileRefuses : public testing::TestWithParam<BadInput> {};

TEST_P(MachineFileRefuses, WithOneLineThatNamesFileKeyValueAndWhatIsAccepted) {
  const BadInput& bad = GetParam();
  const std::string message = problem(with(shipped(bad.machine), bad.from, bad.to));
  EXPECT_TRUE(message.starts_with("my.toml: ")) << message;
  EXPECT_NE(message.find(bad.message), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, MachineFileRefuses,
    testing::Values(
        BadInput{"WrongUnit", "gemini", "\"105 ns\"", "\"105 GB/s\"",
                 "link.hop = \"105 GB/s\": expected a duration"},
        BadInput{"NoUnit", "gemini", "\"105 ns\"", "105", "link.hop = 105: expected a duration"},
        BadInput{"NegativeTime", "gemini", "\"105 ns\"", "\"-105 ns\"",
                 "link.hop = \"-105 ns\": expected a duration"},
        BadInput{"NegativeCount", "aries", "value = 8, source = \"section VIII, Fig. 9",
                 "value = -8, source = \"section VIII, Fig. 9", "topology.groups = -8: expected 1 .. 241"},
        BadInput{"UnknownKey", "gemini", "hop =", "hopp =", "link.hopp: unknown key; accepted are lane_rate"},
        BadInput{"UnknownSection", "gemini", "[host]", "[hosts]", "hosts: unknown key"},
        BadInput{"UnknownOperationKey", "gemini", "gap_add =", "gap_ad =", "gap_ad: unknown key"},
        BadInput{"MissingSource", "gemini", "source = \"section 6.2, quiet network\", rows", "rows",
                 "link.hop = \"105 ns\": source is missing"},
        BadInput{"EmptySource", "gemini", "source = \"section 6.2, quiet network\"", "source = \"\"",
                 "link.hop.source"},
        BadInput{"ZeroTorus", "bluegene-l", "x = { value = 8", "x = { value = 0",
                 "topology.x = 0: expected 1 .. 4096"},
        BadInput{"OddGeminiTorus", "gemini",
                 "class = { value = 3, source = \"section 6.2, worked example: 40 cabinets as 10 x 16 x "
                 "24\", rows = [\"GE038\"] }\ncabinets = { value = 10, source = \"cabinets of a row, section "
                 "6.2\" }\nrows = { value = 4, source = \"section 6.2\" }",
                 "x = { value = 4, source = \"t\" }\ny = { value = 3, source = \"t\" }\nz = { value = 4, "
                 "source = \"t\" }",
                 "topology.y = 3: expected an even number"},
        BadInput{"TwoKindsOfSize", "gemini", "class =", "x = { value = 4, source = \"t\" }\nclass =",
                 "expected either class, cabinets and rows, or x, y and z"},
        BadInput{"TooManyCables", "aries", "cables = { value = 0", "cables = { value = 35",
                 "topology.cables = 35"},
        BadInput{"TooManyLevels", "asci-q", "levels = { value = 5", "levels = { value = 9",
                 "topology.levels = 9: expected 1 .. 8"},
        BadInput{"TooLongPaths", "bluegene-l", "x = { value = 8", "x = { value = 4096",
                 "a path could exceed 128 hops"},
        BadInput{"WrongSchema", "gemini", "schema = 1", "schema = 2", "schema = 2: expected 1"},
        BadInput{"UnknownStage", "gemini", "in = [\"eject\"]", "in = [\"ejct\"]",
                 "expected a name of section [stage]"},
        BadInput{"MissingOperation", "gemini", "[operation.cq_write]\nlike = \"fma_put\"", "",
                 "operation.cq_write"},
        BadInput{"CopyOfACopy", "gemini", "[operation.cq_write]\nlike = \"fma_put\"",
                 "[operation.cq_write]\nlike = \"send\"", "not itself a copy"},
        BadInput{"UnknownNetwork", "gemini", "gemini_torus", "hypercube",
                 "topology.kind = \"hypercube\": expected dragonfly"},
        BadInput{"BadRowName", "gemini", "fitted = [\"HG012\"]", "fitted = [\"put\"]",
                 "expected a row name such as"},
        BadInput{"FractionAboveOne", "gemini", "efficiency = { value = 1.0", "efficiency = { value = 1.5",
                 "expected a fraction"},
        BadInput{"FractionThatRoundsToNothing", "gemini", "efficiency = { value = 1.0",
                 "efficiency = { value = 1e-30",
                 "link.efficiency = 1e-30: expected a fraction, 0.000001 to 1"},
        BadInput{"UnknownOperation", "gemini", "[operation.fma_put]", "[operation.fma_putt]",
                 "operation.fma_putt: unknown operation; accepted are fma_put, "},
        BadInput{"UnknownCollective", "gemini", "[collective.broadcast]", "[collective.broadcasts]",
                 "collective.broadcasts: unknown collective; accepted are hardware_barrier, "},
        BadInput{"NotToml", "gemini", "schema = 1", "schema = = 1", "line"},
        BadInput{"ValueIsATable", "gemini", "value = \"105 ns\"", "value = {}",
                 "link.hop = (a table): expected a duration"}),
    [](const auto& bad) { return bad.param.name; });

// Such a rate was rounded to 0, which is none, or a long operation's time did not fit into 64 bits.
TEST(Machine, RatesThatLeaveLessThanAMegabyteASecondAreRefused) {
  const auto built = [](std::string_view machine, const char* efficiency) {
    return problem(with(shipped(machine), "efficiency = { value = 1.0", efficiency));
  };
  EXPECT_EQ(built("bluegene-l", "efficiency = { value = 0.000001"),
            "my.toml: link.lane_rate = 175 MB/s: efficiency and headers leave 156 B/s for data: expected 1 "
            "MB/s or more");
  EXPECT_EQ(built("gemini", "efficiency = { value = 0.1"), "");
  EXPECT_EQ(built("ideal", "efficiency = { value = 0.1"), "");
}

TEST(MachineFile, AnUnknownNameAndAMissingFileAreRefusedWithWhatIsThere) {
  EXPECT_NE(load_machine("cray-1").error.find("expected aries, gemini, seastar, bluegene-l, asci-q, ideal"),
            std::string::npos);
  EXPECT_NE(load_machine("./no/such.toml").error.find("cannot be read"), std::string::npos);
}

TEST(Machine, TheGeminiExampleWarnsThatItsClassIsOutsideThePrintedRange) {
  ASSERT_EQ(build_machine("gemini").machine->warnings.size(), 1u);
}

}  // namespace
}  // namespace orrery::model
