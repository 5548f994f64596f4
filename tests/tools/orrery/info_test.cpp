// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"
#include "emu/base/version.hpp"
#include "tests/tools/orrery/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <sched.h>
#include <sys/wait.h>

namespace orrery::tool::test {
namespace {

using ::testing::HasSubstr;

TEST(Info, NamesEveryVariableWithDefaultAndMeaning) {
  const Ran ran = orrery({"info"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(std::string("orrery ") + kVersion));
  for (const auto& knob : config::knobs()) {
    EXPECT_THAT(ran.out, HasSubstr(std::string(knob.name)));
    EXPECT_THAT(ran.out, HasSubstr(std::string(knob.help)));
  }
}

TEST(Info, JsonHasTheSame) {
  setenv("ORRERY_LOG", "info", 1);
  const Ran ran = orrery({"info", "--json"});
  unsetenv("ORRERY_LOG");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto all = nlohmann::json::parse(ran.out, nullptr, false);
  ASSERT_FALSE(all.is_discarded()) << ran.out;
  EXPECT_EQ(all["version"], kVersion);
  EXPECT_EQ(all["variables"].size(), config::knobs().size());
  for (const auto& variable : all["variables"]) {
    const bool set = variable["name"] == "ORRERY_LOG";
    EXPECT_EQ(variable["value"], set ? nlohmann::json("info") : nlohmann::json()) << variable["name"];
  }
  std::vector<std::string> names;
  for (const auto& feature : all["features"]) names.push_back(feature["name"]);
  for (const char* name :
       {"memfd", "userfaultfd", "cross-memory attach", "huge pages", "membarrier", "pidfd"}) {
    EXPECT_THAT(names, ::testing::Contains(name));
  }
}

// docs/running.md has a row `| `NAME` | default | ...` for each variable, and no other rows of that kind.
TEST(Info, EveryVariableHasItsRowInTheManual) {
  const auto all = nlohmann::json::parse(orrery({"info", "--json"}).out, nullptr, false);
  ASSERT_FALSE(all.is_discarded());
  std::set<std::string> expected;
  for (const auto& variable : all["variables"]) {
    const std::string preset = variable["default"];
    expected.insert("| `" + variable["name"].get<std::string>() + "` | " +
                    (preset.empty() ? std::string("unset") : "`" + preset + "`") + " |");
  }
  std::ifstream manual(ORRERY_MANUAL);
  ASSERT_TRUE(manual) << ORRERY_MANUAL;
  std::string line;
  while (std::getline(manual, line) && line != "### Variables") {
  }
  std::set<std::string> found;
  while (std::getline(manual, line) && !line.starts_with("## ")) {
    if (!line.starts_with("| `ORRERY_")) continue;
    const auto second = line.find(" | ", line.find(" | ") + 1);
    found.insert(line.substr(0, second) + " |");
  }
  EXPECT_EQ(found, expected);
}

TEST(Info, CountsTheCoresThatItMayUse) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const auto all = nlohmann::json::parse(orrery({"info", "--json"}).out, nullptr, false);
  ASSERT_FALSE(all.is_discarded());
  EXPECT_EQ(all["cores"]["allowed_threads"], CPU_COUNT(&allowed));
}

TEST(Info, JsonIsValidWhateverBytesAVariableHas) {
  setenv("ORRERY_LOG", "\xff", 1);
  const Ran ran = orrery({"info", "--json"});
  unsetenv("ORRERY_LOG");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_FALSE(nlohmann::json::parse(ran.out, nullptr, false).is_discarded()) << ran.out;
}

TEST(Info, WarnsOfUnknownVariables) {
  setenv("ORRERY_LOGG", "info", 1);
  const Ran ran = orrery({"info"});
  unsetenv("ORRERY_LOGG");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("did you mean ORRERY_LOG?"));
}

// A full disk: each command fails with one line, and not by an exception.
TEST(Info, OutputThatCannotBeWrittenIsAFailure) {
  for (const char* const command :
       {"info", "info --json", "machines", "validate aries", "explain put 0 1 8",
        "sim barrier --machine aries --nodes 1 --quiet --json", "figures --list", "--help", "--version"}) {
    const TempFile heard("");
    const std::string line = std::string("\"$TESTED_TOOL\" ") + command + " > /dev/full 2> " + heard.path();
    const int ended = std::system(line.c_str());
    ASSERT_TRUE(WIFEXITED(ended)) << command;
    EXPECT_EQ(WEXITSTATUS(ended), 1) << command;
    std::ifstream file(heard.path());
    const std::string said{std::istreambuf_iterator<char>(file), {}};
    EXPECT_THAT(said, ::testing::StartsWith("orrery: standard output cannot be written")) << command;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
}

TEST(Info, RefusesWhatItDoesNotKnow) { EXPECT_EQ(orrery({"info", "--yaml"}).code, 2); }

}  // namespace
}  // namespace orrery::tool::test
