// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/trace.hpp"

#include "emu/sim/bgl_run.hpp"
#include "emu/sim/tile_run.hpp"

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
  EXPECT_NE(with(32 + 20, 3).find("kind 3"), std::string::npos);
  EXPECT_NE(with(32 + 19, 0xff).find("bytes"), std::string::npos);
  EXPECT_NE(with(32 + 24 * 4, 0).find("time 0"), std::string::npos);
  EXPECT_NE(with(32 + 24 + 17, 0x20).find("waits for 8192"), std::string::npos);
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
