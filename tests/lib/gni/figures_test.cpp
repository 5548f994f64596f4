// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/collective.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/machine_file.hpp"
#include "emu/model/quote.hpp"
#include "emu/model/reference.hpp"
#include "tests/tools/orrery/tool.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// The papers' figures, measured by running programs under virtual time: what figures_worker finds with its
// own clock is held to the rows of machines/reference.csv, within the same tolerances as the model.
namespace orrery::tool::test {
namespace {

std::string run(const std::string& machine, int pes, const std::string& place,
                std::vector<std::string> what) {
  const TempFile file(place);
  std::vector<std::string> args = {"run",       "-n",   std::to_string(pes), "--timeout", "200",
                                   "--machine", machine};
  if (!place.empty()) args.insert(args.end(), {"--place", file.path()});
  args.push_back(std::getenv("FIGURES_WORKER"));
  args.insert(args.end(), what.begin(), what.end());
  const Ran ran = orrery(args);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.out;
}

// The number behind `word` at the start of a line; fails the test where there is none.
double figure(const std::string& text, const std::string& word) {
  const std::string all = "\n" + text;
  const auto at = all.find("\n" + word + " ");
  EXPECT_NE(at, std::string::npos) << "no '" << word << "' in: " << text;
  return at == std::string::npos ? -1 : std::strtod(all.c_str() + at + word.size() + 2, nullptr);
}

// Prints paper beside measured, and fails where the row's tolerance does not hold.
void hold(const std::string& id, double measured) {
  static const model::ReferenceTable table =
      model::parse_reference(model::shipped_reference(), "reference.csv");
  bool found = false;
  for (const model::ReferenceRow& row : table.rows) {
    if (row.id != id) continue;
    found = true;
    const model::Verdict v = model::judge_value(row, measured);
    fmt::print("{:6} {:46} paper {:>8} {:6} program {:10.4f}  {:+6.2f} %  {}\n", row.id,
               row.what.substr(0, 46), row.printed, row.unit, measured, v.error_percent,
               v.holds ? "holds" : "FAILS");
    std::fflush(stdout);
    EXPECT_TRUE(v.holds) << id << ": " << measured << " against " << row.printed << " " << row.unit;
  }
  EXPECT_TRUE(found) << id;
}

// `measured` against a figure of the model that no row prints, within a part in a thousand.
void agree(const std::string& what, double measured, double model) {
  fmt::print("       {:46} model {:>8.4f} us     program {:10.4f}\n", what, model, measured);
  EXPECT_NEAR(measured, model, model / 1000) << what;
}

// Where the first node is that a minimal path of that length leads to.
std::string two_pes(const model::Machine& machine, std::uint32_t hops) {
  for (model::NodeId node = 1; node < machine.pricing.nodes; ++node) {
    const auto way = [&](model::NodeId from, model::NodeId to) {
      return model::quote(machine.pricing, {.routing = model::Routing::in_order, .src = from, .dst = to},
                          nullptr)
          .hops;
    };
    if (way(0, node) == hops && way(node, 0) == hops)
      return fmt::format("node 0 pes 0\nnode {} pes 1\n", node);
  }
  ADD_FAILURE() << "no node " << hops << " hops away";
  return {};
}

std::string latencies(const std::string& machine, std::uint32_t hops) {
  const auto built = model::build_machine(machine);
  return run(machine, 2, two_pes(*built.machine, hops), {"latency"});
}

TEST(Aries, LatenciesOfPutsGetsAndMessagesByHops) {
  const std::string blade = latencies("aries", 0), one = latencies("aries", 1), two = latencies("aries", 2),
                    five = latencies("aries", 5), with_mpi = latencies("aries+mpi", 0);
  hold("AR063", figure(blade, "put 8"));
  hold("AR064", figure(blade, "get 8"));
  hold("AR065", figure(with_mpi, "message 8"));
  hold("AR066", figure(one, "put 128") - figure(one, "put 8"));
  hold("AR067", (figure(two, "put 8") - figure(one, "put 8")) * 1e3);
  // The network's part of the longest: what it has more than none, without the fibre between groups, which
  // the paper's five times 100 ns do not have.
  const double fibre = model::build_machine("aries").machine->pricing.global_cable.micros();
  const double hop = (figure(five, "put 8") - figure(one, "put 8") - fibre) / 4;
  hold("AR068", 5 * hop * 1e3);
}

// Four processes of node 0 and four of a node one hop away.
constexpr const char* kFourAndFour = "node 0 pes 0-3\nnode 4 pes 4-7\n";

TEST(Aries, Bandwidth) {
  hold("AR069", figure(run("aries", 8, kFourAndFour, {"stream", "bte", "262144", "80", "pairs"}), "GB/s"));
  hold("AR070", figure(run("aries", 8, kFourAndFour, {"stream", "bte", "262144", "80", "both"}), "GB/s"));
}

TEST(Aries, HalfOfThePeakIsReachedByShortPuts) {
  const std::string ran = run("aries", 25, "node 0 pes 0-23\nnode 4 pes 24\n",
                              {"stream", "fma", "65536,96,112,120,128,144", "40", "last"});
  const auto bandwidth = [&](int bytes) { return figure(ran, fmt::format("{} B: GB/s", bytes)); };
  const double peak = bandwidth(65536);
  int half = 0;
  for (const int bytes : {96, 112, 120, 128, 144}) {
    if (half == 0 && bandwidth(bytes) * 2 >= peak) half = bytes;
  }
  hold("AR071", half);
}

TEST(Aries, LaunchedPutsOfAThreadAndOfANode) {
  hold("AR074",
       figure(run("aries", 2, "node 0 pes 0\nnode 4 pes 1\n", {"stream", "launch", "8", "200", "last"}),
              "rate"));
  hold("AR073",
       figure(run("aries", 25, "node 0 pes 0-23\nnode 4 pes 24\n", {"stream", "launch", "8", "1500", "last"}),
              "rate"));
}

TEST(Aries, AtomicsOnOneCachedVariableAndOnRandomOnes) {
  hold("AR076", figure(run("aries", 62, "", {"stream", "amo", "8", "200", "last"}), "rate"));
  hold("AR077", figure(run("aries", 40, "", {"stream", "amo_random", "8", "100", "last"}), "rate"));
}

TEST(Gemini, Latencies) {
  const std::string one = latencies("gemini", 1), two = latencies("gemini", 2),
                    with_mpi = latencies("gemini+mpi", 1);
  const double hop = figure(two, "put 8") - figure(one, "put 8");
  hold("GE048", hop * 1e3);
  hold("GE046", figure(one, "put 8") - hop);
  hold("GE047", figure(with_mpi, "message 8") - hop);
}

// Node 0's neighbours: x (eight links of four tiles, as the paper counts), y (half as many), and the node on
// the same Gemini, all of which are places of the shipped torus.
std::string four_and_four(std::uint32_t there) {
  return fmt::format("node 0 pes 0-3\nnode {} pes 4-7\n", there);
}

TEST(Gemini, BandwidthOfBlocksAndOfTheHostInterface) {
  const auto built = model::build_machine("gemini");
  const std::uint32_t same = built.machine->pricing.torus.shape().nodes[0];  // the next in y
  const auto rate = [&](std::uint32_t there, const char* kind, const char* to) {
    return figure(run("gemini", 8, four_and_four(there), {"stream", kind, "262144", "60", to}), "GB/s");
  };
  hold("GE053", rate(same, "fma", "pairs"));
  hold("GE061", rate(same, "bte", "pairs"));
  hold("GE055", rate(same, "bte", "both") / 2);
  // One pair between Geminis: a transfer over all the links to a neighbour.
  hold("GE060",
       figure(run("gemini", 2, "node 0 pes 0\nnode 1 pes 1\n", {"stream", "bte", "262144", "60", "pairs"}),
              "GB/s"));
  // In y a Gemini has one torus link to its neighbour: both ways at once, what a link carries after protocol.
  hold("GE059", rate(2 * same, "bte", "both") / 2);
}

TEST(Quadrics, CollectivesByNodesFollowTheClosedForm) {
  const auto built = model::build_machine("asci-q");
  for (const int pes : {4, 16, 64}) {
    const std::string ran = run("asci-q", pes, "", {"collectives"});
    const auto model = [&](model::Collective which, std::uint64_t bytes) {
      return model::quote_collective(*built.machine, which, static_cast<std::uint32_t>(pes), bytes)
          .time.micros();
    };
    agree(fmt::format("hardware barrier, {} nodes", pes), figure(ran, "barrier"),
          model(model::Collective::hardware_barrier, 0));
    agree(fmt::format("broadcast of 3,840 B, {} nodes", pes), figure(ran, "broadcast"),
          model(model::Collective::broadcast, 3840));
    agree(fmt::format("allreduce, {} nodes", pes), figure(ran, "allreduce"),
          model(model::Collective::allreduce, 16));
  }
}

}  // namespace
}  // namespace orrery::tool::test
