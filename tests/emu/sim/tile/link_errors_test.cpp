// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Bit errors on the links of the tile routers: how often packets are repeated follows from their lengths,
// each repetition costs a round trip of the link and the packet's time on it, and no packet is lost.
#include "emu/sim/scene/machine_timing.hpp"
#include "emu/sim/scene/simulate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

namespace orrery::sim {
namespace {

constexpr double kRate = 5e-5;

SimResult run(const char* machine, const char* nodes, double bit_error_rate, unsigned threads = 1) {
  RunSpec spec;
  spec.machine = machine;
  spec.nodes = nodes;
  spec.workload = "uniform";
  spec.bytes = 64;
  // Hardly any packet waits for a repeated packet of another.
  spec.load = 0.02;
  spec.warmup_us = 5;
  spec.measure_us = 80;
  spec.until_us = 120;
  spec.sample_us = 5;
  spec.threads = threads;
  spec.bit_error_rate = bit_error_rate;
  SimResult result;
  EXPECT_EQ(simulate(spec, &result).why, "");
  return result;
}

// Repetitions of a packet of so many bits, on average.
double repeats(double bits) {
  const double fails = 1 - std::pow(1 - kRate, bits);
  return fails / (1 - fails);
}

struct Case {
  const char *machine, *nodes;
  // On the wire; a response of 0 bits is not sent.
  double request_bits, response_bits;
  double hop_ns, link_ns;  // of a request
  double far_ns;           // what longer links add to its way, on average
};

class LinkErrors : public testing::TestWithParam<Case> {};

TEST_P(LinkErrors, RepeatAsOftenAndCostAsMuchAsTheirPacketsAreLong) {
  const Case& c = GetParam();
  const SimResult clean = run(c.machine, c.nodes, 0), noisy = run(c.machine, c.nodes, kRate);
  EXPECT_EQ(clean.outcome.total.retries, 0u);
  EXPECT_TRUE(noisy.outcome.conserved);
  EXPECT_EQ(noisy.outcome.total.dropped, 0u);
  ASSERT_GT(noisy.outcome.total.delivered, 3000u);
  // As many links for responses as for requests, but for those under way.
  const double share =
      static_cast<double>(noisy.outcome.total.retries) / static_cast<double>(noisy.outcome.total.link_hops);
  const double wanted = c.response_bits > 0 ? (repeats(c.request_bits) + repeats(c.response_bits)) / 2
                                            : repeats(c.request_bits);
  EXPECT_NEAR(share, wanted, 0.1 * wanted);
  // Counted are the links of responses too, which have as many.
  const double hops = static_cast<double>(clean.outcome.total.delivered_hops) /
                      static_cast<double>(clean.outcome.total.delivered) / (c.response_bits > 0 ? 2 : 1);
  const double dearer = noisy.mean_latency_ns() - clean.mean_latency_ns();
  const double own = repeats(c.request_bits) * (hops * (2 * c.hop_ns + c.link_ns) + 2 * c.far_ns);
  EXPECT_NEAR(dearer, own, 0.2 * own) << hops << " links";
}

TEST_P(LinkErrors, AreTheSameForAnyThreads) {
  const Case& c = GetParam();
  const SimResult one = run(c.machine, c.nodes, kRate), two = run(c.machine, c.nodes, kRate, 2);
  EXPECT_GT(one.outcome.total.retries, 0u);
  EXPECT_EQ(one.outcome.total.retries, two.outcome.total.retries);
  EXPECT_EQ(one.outcome.latency.mean(), two.outcome.latency.mean());
}

// Gemini: 32 phits of 24 bits at 9.375 Gb/s, responses of 2. SeaStar: 64 bytes at 3 GB/s, no responses.
// Aries: 14 phits of 48 bits at 5.25 GB/s less framing; half of the requests cross one link between groups,
// 218 ns more.
INSTANTIATE_TEST_SUITE_P(Machines, LinkErrors,
                         testing::Values(Case{"gemini", "4x8x4", 32 * 24, 2 * 24, 105, 81.92, 0},
                                         Case{"seastar", "4x4x4", 64 * 8, 0, 57, 21.3, 0},
                                         Case{"aries", "2", 14 * 48, 1 * 48, 100, 17.8, 109}),
                         [](const auto& c) { return std::string(c.param.machine); });

SimResult with_failed(std::uint32_t failed, const char* routing, unsigned threads,
                      const char* machine = "gemini", const char* nodes = "4x8x4", double until_us = 0) {
  RunSpec spec;
  spec.machine = machine;
  spec.nodes = nodes;
  spec.routing = routing;
  spec.bytes = 128;
  spec.failed_links = failed;
  spec.until_us = until_us;
  spec.threads = threads;
  spec.keep_link_busy = true;
  SimResult result;
  EXPECT_EQ(simulate(spec, &result).why, "");
  return result;
}

// 4x4x4 Geminis have 64 x 20 links both ways.
TEST(FailedLinks, AreMaskedByTheirParallelsAndNothingIsLost) {
  for (const char* routing : {"adaptive", "hashed"}) {
    SCOPED_TRACE(routing);
    const SimResult whole = with_failed(0, routing, 1), some = with_failed(200, routing, 1);
    EXPECT_EQ(whole.links, 64u * 40);
    EXPECT_EQ(some.links, 64u * 40 - 400);
    EXPECT_EQ(some.outcome.stop, Stop::finished);
    EXPECT_TRUE(some.outcome.conserved);
    EXPECT_EQ(some.outcome.total.delivered, whole.outcome.total.delivered);
    // The same ways, by fewer links: those out of service carried nothing.
    EXPECT_EQ(some.outcome.total.delivered_hops, whole.outcome.total.delivered_hops);
    EXPECT_GE(std::count(some.link_busy.begin(), some.link_busy.end(), 0u),
              std::count(whole.link_busy.begin(), whole.link_busy.end(), 0u) + 300);
    EXPECT_GT(some.outcome.end, whole.outcome.end);
    EXPECT_EQ(some.outcome.end, with_failed(200, routing, 2).outcome.end);
  }
}

// Two groups have 2 x 96 x 15 / 2 black links and 960 blue ones.
TEST(FailedLinks, OfADragonflyAreGoneRoundByTheOthersOfTheirBundle) {
  const auto run = [](const char* routing, std::uint32_t failed, unsigned threads) {
    return with_failed(failed, routing, threads, "aries", "2", 3);
  };
  // Within so many microseconds every link carries something, but for those out of service.
  const auto carried = [](const SimResult& r) {
    return std::count_if(r.link_busy.begin(), r.link_busy.end(), [](auto busy) { return busy > 0; });
  };
  const SimResult whole = run("adaptive", 0, 1);
  EXPECT_EQ(carried(whole), static_cast<std::ptrdiff_t>(whole.links));
  for (const char* routing : {"adaptive", "valiant", "ordered"}) {
    SCOPED_TRACE(routing);
    const SimResult some = run(routing, 600, 1);
    EXPECT_EQ(some.links, whole.links - 1200);
    EXPECT_TRUE(some.outcome.conserved);
    EXPECT_EQ(carried(some), static_cast<std::ptrdiff_t>(some.links));
  }
  EXPECT_EQ(run("adaptive", 600, 1).outcome.total.delivered, run("adaptive", 600, 2).outcome.total.delivered);
}

TEST(FailedLinks, AreRefusedWhereNoParallelIsLeft) {
  const auto why = [](const char* machine, std::uint32_t failed) {
    RunSpec spec;
    spec.machine = machine;
    spec.nodes = machine == std::string("aries") ? "2" : "4x4x4";
    spec.bytes = 64;
    spec.failed_links = failed;
    SimResult result;
    return simulate(spec, &result).why;
  };
  EXPECT_EQ(why("gemini", 161),
            "161 failed links: expected at most 160, a quarter of those that have others beside them");
  EXPECT_EQ(why("aries", 601),
            "601 failed links: expected at most 600, a quarter of those that have others beside them");
  EXPECT_NE(why("seastar", 1).find("1 failed links on seastar: expected 0"), std::string::npos);
  EXPECT_NE(why("bluegene-l", 1).find("1 failed links on bluegene-l: expected 0"), std::string::npos);
}

TEST(LinkErrorRate, IsRefusedWhereItSaysNothing) {
  const auto why = [](double rate, std::uint32_t grain) {
    RunSpec spec;
    spec.machine = "gemini";
    spec.workload = "uniform";
    spec.nodes = "4x4x4";
    spec.load = 0.1;
    spec.bit_error_rate = rate;
    spec.grain = grain;
    SimResult result;
    return simulate(spec, &result).why;
  };
  EXPECT_EQ(why(2e-4, 1), "bit error rate 0.0002: expected 0 to 0.0001");
  EXPECT_EQ(why(std::nan(""), 1), "bit error rate nan: expected 0 to 0.0001");
  EXPECT_NE(why(1e-6, 8).find("grain 8: expected grain 1"), std::string::npos);
}

}  // namespace
}  // namespace orrery::sim
