// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/workload/trace.hpp"

#include "emu/sim/bgl/bgl_run.hpp"
#include "emu/sim/tile/tile_run.hpp"

#include <gtest/gtest.h>

namespace orrery::sim {
namespace {

// Process 0 puts, process 1 waits, answers, 0 waits; then 0 gets from 2.
Trace sample() {
  Trace trace;
  trace.processes = 3;
  trace.records = {{0, 0, 1, 4096, TraceKind::put},
                   {10, 1, 0, 4096, TraceKind::wait},
                   {20, 1, 0, 64, TraceKind::put},
                   {30, 0, 1, 64, TraceKind::wait},
                   {130, 0, 2, 512, TraceKind::get}};
  return trace;
}

std::string why(std::vector<std::uint8_t> bytes) {
  Trace out;
  const Refusal no = parse_trace(bytes, &out);
  EXPECT_TRUE(out.records.empty() || !no.refused());
  return no.why;
}

TEST(Trace, IsReadAsItWasWritten) {
  Trace out;
  ASSERT_EQ(parse_trace(encode_trace(sample()), &out).why, "");
  ASSERT_EQ(out.records.size(), 5u);
  EXPECT_EQ(out.processes, 3u);
  EXPECT_EQ(out.records[4].at_ns, 130u);
  EXPECT_EQ(out.records[4].peer, 2u);
  EXPECT_EQ(out.records[4].bytes, 512u);
  EXPECT_EQ(out.records[4].kind, TraceKind::get);
}

TEST(Trace, RefusesWhatIsCutShortOrLies) {
  const auto good = encode_trace(sample());
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(why({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}), "") << size;
  const auto with = [&](std::size_t at, std::uint8_t value) {
    auto bytes = good;
    bytes[at] = value;
    return why(bytes);
  };
  EXPECT_NE(with(0, 'X').find("ORTRACE1"), std::string::npos);
  EXPECT_NE(with(8, 9).find("version 9"), std::string::npos);
  EXPECT_NE(with(12, 0).find("0 processes"), std::string::npos);
  EXPECT_NE(with(16, 200).find("200 records"), std::string::npos);
  EXPECT_NE(with(32 + 8, 7).find("process 7"), std::string::npos);
  EXPECT_NE(with(32 + 12, 0).find("with itself"), std::string::npos);
  EXPECT_NE(with(32 + 20, 4).find("kind 4"), std::string::npos);
  EXPECT_NE(with(32 + 19, 0xff).find("bytes"), std::string::npos);
  EXPECT_NE(with(32 + 24 * 4, 0).find("time 0"), std::string::npos);
  EXPECT_NE(with(32 + 24 + 17, 0x20).find("waits for 8192"), std::string::npos);
}

TEST(Trace, OfVersionOneIsReadAndKnowsNoAsking) {
  auto bytes = encode_trace(sample());
  bytes[8] = 1;
  EXPECT_EQ(why(bytes), "");
  bytes[32 + 24 * 4 + 20] = 3;
  EXPECT_NE(why(bytes).find("kind 3: expected 0 put, 1 get, 2 wait"), std::string::npos);
  bytes[8] = 2;
  EXPECT_EQ(why(bytes), "");
}

TEST(TraceTraffic, WhatIsAskedForComesSideBySideAndCanBeAwaited) {
  const BglConfig config;
  const auto time_of = [&](const Trace& trace) {
    TraceTraffic traffic(trace, {0, 1, 8}, 512, 240, config.tick_ns);
    const SimResult r = run_bgl(config, traffic, {});
    EXPECT_EQ(r.outcome.stop, Stop::finished);
    EXPECT_EQ(traffic.completed(), 3u);
    EXPECT_EQ(r.outcome.total.delivered_bytes, 2 * (1u + 24'000));
    return r.outcome.end;
  };
  const Trace gets{3, {{0, 0, 1, 24'000, TraceKind::get}, {0, 0, 2, 24'000, TraceKind::get}}};
  Trace asks{3, {{0, 0, 1, 24'000, TraceKind::ask}, {0, 0, 2, 24'000, TraceKind::ask}}};
  for (std::uint32_t peer : {1u, 2u}) asks.records.push_back({0, 0, peer, 24'000, TraceKind::wait});
  ASSERT_EQ(why(encode_trace(asks)), "");
  // Two senders at once, over a link each, instead of one after the other.
  EXPECT_LT(static_cast<double>(time_of(asks)), 0.7 * static_cast<double>(time_of(gets)));
  asks.records.push_back({0, 0, 1, 1, TraceKind::wait});
  EXPECT_NE(why(encode_trace(asks)).find("expected at most the 24000"), std::string::npos);
}

TEST(TraceTraffic, ReplaysWithDependenciesOnATorusAndADragonfly) {
  BglConfig config;
  TraceTraffic on_torus(sample(), {0, 100, 200}, 512, 240, config.tick_ns);
  const SimResult torus = run_bgl(config, on_torus, {});
  EXPECT_EQ(torus.outcome.stop, Stop::finished);
  EXPECT_EQ(on_torus.completed(), 3u);
  EXPECT_EQ(torus.outcome.total.delivered, on_torus.expected_packets());
  EXPECT_EQ(torus.outcome.total.delivered_bytes, 4096u + 64 + 1 + 512);
  // Two messages one after the other, 100 ns of computing, a request and an answer: no less than that.
  EXPECT_GT(static_cast<double>(torus.outcome.end) * config.tick_ns, 18 * 270 * config.tick_ns + 100);

  const auto dragonfly = model::Dragonfly::make({.groups = 2}).value();
  TraceTraffic on_dragonfly(sample(), {0, 500, 767}, 768, 64, kTileTickNs);
  const SimResult aries = run_aries(dragonfly, {}, on_dragonfly, {}, 1);
  EXPECT_EQ(aries.outcome.stop, Stop::finished);
  EXPECT_EQ(on_dragonfly.completed(), 3u);
  EXPECT_TRUE(aries.outcome.conserved);
}

}  // namespace
}  // namespace orrery::sim
