// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/workload/trace.hpp"
#include "tests/tools/orrery/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

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

TEST(Sim, ThePageHasCurvesAndAPictureByTheNetworksShape) {
  const TempFile page("");
  const Ran ran = orrery(
      {"sim", "--nodes", "4x4x2", "alltoall", "--bytes", "2400", "--sample-us", "10", "--html", page.path()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string html = contents(page.path());
  EXPECT_THAT(html, HasSubstr("</html>"));
  // Two planes of 4 x 4 routers, 8 units each, side by side.
  EXPECT_THAT(html, HasSubstr("a block is a plane of z"));
  const std::size_t picture = html.find("class=\"heat\"");
  ASSERT_NE(picture, std::string::npos);
  EXPECT_EQ(count(html.substr(picture, html.find("</svg>", picture) - picture), "<rect x=\""), 32u);
  EXPECT_THAT(html.substr(picture), HasSubstr("viewBox=\"0 0 76 38\""));
  EXPECT_EQ(count(html, "<svg"), 5u);  // throughput, in flight, routers, buffers' mean and fullest
  EXPECT_THAT(html, HasSubstr("bubble escape"));
  EXPECT_EQ(count(html, "<script"), 0u);
}

TEST(Sim, NoLinkIsBusyForMoreThanTheRun) {
  for (const char* machine : {"gemini", "aries", "bluegene-l"}) {
    const TempFile page("");
    std::vector<std::string> words{"sim",        "--machine", machine,   "--nodes",     "4x4x4",
                                   "uniform",    "--load",    "1",       "--warmup-us", "1000",
                                   "--until-us", "1",         "--quiet", "--html",      page.path()};
    if (std::string_view(machine) == "aries") words[4] = "1";
    const Ran ran = orrery(words);
    ASSERT_EQ(ran.code, 0) << ran.err;
    const std::string html = contents(page.path());
    const std::size_t table = html.find("<th>busy");
    ASSERT_NE(table, std::string::npos);
    double busiest = 0;
    for (std::size_t at = html.find("<tr><td>", table);
         at != std::string::npos && at < html.find("</table>", table); at = html.find("<tr><td>", at + 1)) {
      const std::size_t share = html.find("<td>", html.find("<td>", at + 8) + 4) + 4;
      busiest = std::max(busiest, std::atof(html.c_str() + share));
    }
    EXPECT_GT(busiest, 0);
    EXPECT_LE(busiest, 100);
  }
}

// As a trace file in the system's temporary folder.
std::string written_trace(const TempFile& file, const sim::Trace& trace) {
  const auto bytes = sim::encode_trace(trace);
  std::ofstream(file.path(), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file.path();
}

TEST(Sim, AReplayInWhichAllWaitIsStuck) {
  using sim::TraceKind;
  sim::Trace ring{.processes = 4, .records = {}};
  for (std::uint32_t p = 0; p < 4; ++p) {
    ring.records.push_back({.process = p, .peer = (p + 3) % 4, .bytes = 64, .kind = TraceKind::wait});
    ring.records.push_back({.process = p, .peer = (p + 1) % 4, .bytes = 64, .kind = TraceKind::put});
  }
  const TempFile file("");
  for (const char* machine : {"gemini", "aries", "bluegene-l", "asci-q"}) {
    const Ran ran = orrery({"sim", "--replay", written_trace(file, ring), "--machine", machine});
    EXPECT_EQ(ran.code, 1) << machine << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("stuck: 8 of 8 records never ran")) << machine;
  }
  // One that begins lets all go on.
  ring.records.insert(ring.records.begin(), {.process = 0, .peer = 1, .bytes = 64, .kind = TraceKind::put});
  ring.records[2].bytes = 0;
  std::erase_if(ring.records, [](const sim::TraceRecord& r) { return r.bytes == 0; });
  const Ran ran = orrery({"sim", "--replay", written_trace(file, ring), "--machine", "gemini"});
  EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
  EXPECT_EQ(count(ran.out, "stuck"), 0u);
}

// A hundred intervals in which nothing moves are a deadlock only when they are long.
TEST(Sim, SamplesInAPacketsTimeFindNoDeadlock) {
  for (const char* machine : {"bluegene-l", "gemini", "seastar", "asci-q"}) {
    const Ran ran = orrery({"sim", "broadcast", "--machine", machine, "--nodes",
                            std::string(machine) == "asci-q" ? "4" : "2x2x1", "--sample-us", "1e-9",
                            "--until-us", "200", "--quiet", "--json"});
    EXPECT_EQ(ran.code, 0) << machine << ran.err;
    const auto result = nlohmann::json::parse(ran.out, nullptr, false);
    ASSERT_FALSE(result.is_discarded()) << machine;
    EXPECT_EQ(result["stop"], "finished") << machine;
    EXPECT_EQ(result["in_flight"], 0) << machine;
  }
}

// Ten million ticks, each an interval.
TEST(Sim, ShortSamplesBecomeLongerOnesInALongRun) {
  const Ran ran =
      orrery({"sim", "neighbour", "--machine", "gemini", "--nodes", "1x2x1", "--load", "0.001", "--warmup-us",
              "1000", "--until-us", "1000", "--sample-us", "1e-9", "--quiet", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto result = nlohmann::json::parse(ran.out, nullptr, false);
  ASSERT_FALSE(result.is_discarded());
  EXPECT_LT(result["samples"].size(), 65536u);
  EXPECT_GE(result["samples"].size(), 32768u);
}

// Two nodes of one Gemini have no link between them.
TEST(Sim, ANetworkWithoutLinksHasNumbersInItsSamples) {
  const Ran ran = orrery({"sim", "neighbour", "--machine", "gemini", "--nodes", "1x2x1", "--until-us", "20",
                          "--quiet", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto result = nlohmann::json::parse(ran.out, nullptr, false);
  ASSERT_FALSE(result.is_discarded()) << ran.out;
  EXPECT_EQ(result["links"], 0);
  ASSERT_FALSE(result["samples"].empty());
  for (const auto& sample : result["samples"]) EXPECT_EQ(sample[2], 0) << sample;
}

// A device as a trace: memory without end.
TEST(Sim, ATraceWithoutEndIsRefusedAtTheLimit) {
  const Ran ran = orrery({"sim", "--replay", "/dev/zero", "--machine", "gemini"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("'/dev/zero'"));
  EXPECT_THAT(ran.err, HasSubstr("more than"));
}

TEST(Sim, WhatStandsInTheWrongPlaceIsNamed) {
  const Ran shape = orrery({"sim", "--machine", "aries", "--nodes", "1x1x1", "uniform", "--load", "0.1"});
  EXPECT_EQ(shape.code, 2);
  EXPECT_THAT(shape.err, HasSubstr("nodes '1x1x1': aries takes one number, groups"));
  const Ran machine = orrery({"sim", "aries", "--load", "0.1"});
  EXPECT_EQ(machine.code, 2);
  EXPECT_THAT(machine.err, HasSubstr("the machine is given by --machine aries"));
}

TEST(Sim, NothingThatWasNotMeasuredIsSaturated) {
  for (const char* words : {"--load 0.0000001 --measure-us 5 --until-us 20", "--load 0.5 --measure-us 0",
                            "--load 0 --measure-us 5 --until-us 20"}) {
    std::vector<std::string> all{"sim", "--machine", "gemini", "--nodes", "4x4x4", "uniform"};
    std::istringstream rest(words);
    for (std::string word; rest >> word;) all.push_back(word);
    const Ran ran = orrery(all);
    EXPECT_EQ(ran.code, 0) << words << ran.err;
    EXPECT_EQ(count(ran.out, "SATURATED"), 0u) << words << ran.out;
  }
}

TEST(Sim, AMachineFileMayBeginWithAByteOrderMark) {
  std::ifstream gemini(ORRERY_MACHINE_FOLDER "/gemini.toml");
  std::stringstream text;
  text << "\xef\xbb\xbf" << gemini.rdbuf();
  const TempFile file(text.str());
  const std::string path = file.path() + ".toml";
  std::ofstream(path) << text.str();
  const Ran ran = orrery({"explain", "--machine", path, "put", "0", "1", "8"});
  std::filesystem::remove(path);
  EXPECT_EQ(ran.code, 0) << ran.err;
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
  EXPECT_THAT(ran.out, HasSubstr("\nquadrics, 1 of 1: 1 million packet-hops\nok   Quadrics"));
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
