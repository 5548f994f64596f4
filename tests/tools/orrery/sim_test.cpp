// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/tools/orrery/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

namespace orrery::tool::test {
namespace {

using ::testing::HasSubstr;

std::string contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(Sim, ThePageHasCurvesAndOneCellForEveryLink) {
  const TempFile page("");
  const Ran ran = orrery(
      {"sim", "--nodes", "4x4x2", "alltoall", "--bytes", "2400", "--sample-us", "10", "--html", page.path()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string html = contents(page.path());
  EXPECT_THAT(html, HasSubstr("</html>"));
  EXPECT_EQ(count(html, "<rect x=\"") >= 32 * 6, true);
  EXPECT_EQ(count(html, "<svg"), 5u);  // throughput, in flight, links, buffers' mean and fullest
  EXPECT_THAT(html, HasSubstr("bubble escape"));
  EXPECT_EQ(count(html, "<script"), 0u);
}

TEST(Sim, AMachineFileOfOnesOwnIsSimulated) {
  const TempFile wrong("schema = 1\nname = \"mine\"\n");
  const Ran ran = orrery({"sim", "--machine", wrong.path() + "/none.toml", "uniform", "--load", "0.5"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("none.toml"));
}

TEST(Sim, EachMachineTakesItsOwnLargestPacketAndItsSumIsComplete) {
  for (const char* machine : {"gemini", "seastar", "bluegene-l"}) {
    const Ran ran = orrery({"sim", "--machine", machine, "--nodes", "4x4x4", "uniform", "--load", "0.5",
                            "--measure-us", "5", "--until-us", "20"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    unsigned long long sent = 0, responses = 0, delivered = 0, back = 0, dropped = 0, flying = 0;
    const std::size_t at = ran.out.find("packets: ");
    ASSERT_NE(at, std::string::npos) << ran.out;
    ASSERT_EQ(std::sscanf(ran.out.c_str() + at,
                          "packets: %llu sent and %llu responses, %llu delivered, %llu responses back, %llu "
                          "dropped, %llu in flight: conserved",
                          &sent, &responses, &delivered, &back, &dropped, &flying),
              6)
        << ran.out;
    EXPECT_EQ(sent + responses, delivered + back + dropped + flying);
    EXPECT_GT(delivered, 0u);
    EXPECT_EQ(responses > 0, std::string(machine) == "gemini");
  }
  const Ran none = orrery({"sim", "--nodes", "4x4x4", "uniform", "--load", "0.5", "--bytes", "0"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--bytes"));
}

TEST(Figures, ThreadsThatCannotBeAreRefusedAndMissesAreCounted) {
  const Ran none = orrery({"figures", "hot-region", "--threads", "0"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--threads"));
  const Ran ran = orrery({"figures", "quadrics", "--short"});
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr(" hold; 0 miss and are known to; 0 miss unexpectedly; "));
}

TEST(Figures, AFolderIsMadeAndOneThatCannotBeIsRefusedBeforeTheWork) {
  const Ran none = orrery({"figures", "alltoall-asymmetric", "--out", "/proc/self/nowhere"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("'/proc/self/nowhere'"));
  const std::string folder = testing::TempDir() + "orrery_figures_" + std::to_string(getpid()) + "/inner";
  EXPECT_EQ(orrery({"figures", "quadrics", "--short", "--out", folder}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder + "/quadrics.csv"));
  std::filesystem::remove_all(std::filesystem::path(folder).parent_path());
}

TEST(Sim, APageThatCannotBeWrittenIsRefused) {
  const Ran ran = orrery({"sim", "--nodes", "4x4x2", "alltoall", "--html", "/nowhere/page.html"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("/nowhere/page.html"));
}

}  // namespace
}  // namespace orrery::tool::test
