// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/tools/orrery/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
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
  EXPECT_EQ(count(html, "<svg"), 3u);  // throughput, in flight, links
  EXPECT_THAT(html, HasSubstr("bubble escape"));
  EXPECT_EQ(count(html, "<script"), 0u);
}

TEST(Sim, AMachineFileOfOnesOwnIsSimulated) {
  const TempFile wrong("schema = 1\nname = \"mine\"\n");
  const Ran ran = orrery({"sim", "--machine", wrong.path() + "/none.toml", "uniform", "--load", "0.5"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("none.toml"));
}

TEST(Sim, APageThatCannotBeWrittenIsRefused) {
  const Ran ran = orrery({"sim", "--nodes", "4x4x2", "alltoall", "--html", "/nowhere/page.html"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("/nowhere/page.html"));
}

}  // namespace
}  // namespace orrery::tool::test
