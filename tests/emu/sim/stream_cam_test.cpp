// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/stream_cam.hpp"
#include "emu/sim/machine_timing.hpp"
#include "emu/sim/simulate.hpp"
#include "emu/sim/tile_run.hpp"
#include "emu/sim/trace.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::sim {
namespace {

TEST(StreamCam, StallsForAMessageTooManyAndForOneThatWasSwappedOut) {
  StreamCam cam;
  EXPECT_FALSE(cam.pass(1, true, false, 2));
  EXPECT_FALSE(cam.pass(2, true, false, 2));
  EXPECT_FALSE(cam.pass(9, true, true, 2));  // one packet: read out of the FIFO
  EXPECT_FALSE(cam.pass(1, false, false, 2));
  EXPECT_TRUE(cam.pass(3, true, false, 2));  // 2 waited longest: out
  EXPECT_EQ(cam.open(), 3u);
  EXPECT_FALSE(cam.pass(1, false, true, 2));  // ends
  EXPECT_FALSE(cam.pass(4, true, false, 2));  // its entry is free
  EXPECT_TRUE(cam.pass(2, false, false, 2));  // back in, 3 out
  EXPECT_FALSE(cam.pass(4, false, true, 2));
  EXPECT_TRUE(cam.pass(3, false, true, 2));  // back in, though an entry is free
  EXPECT_FALSE(cam.pass(2, false, true, 2));
  EXPECT_EQ(cam.open(), 0u);
}

TEST(StreamCam, AnAnswerBetweenThePacketsOfAnotherMessageKeepsTheEntry) {
  StreamCam cam;
  EXPECT_FALSE(cam.pass(1, true, false, 1));
  EXPECT_FALSE(cam.pass(1, true, false, 1));
  EXPECT_FALSE(cam.pass(1, false, true, 1));
  EXPECT_EQ(cam.open(), 1u);
  EXPECT_FALSE(cam.pass(1, false, true, 1));
  EXPECT_EQ(cam.open(), 0u);
}

// Nodes 1..senders all put `bytes` to node 0 of a SeaStar torus of 512.
SimResult incast(Node senders, std::uint32_t bytes, unsigned threads = 1, std::uint32_t entries = 256) {
  const auto torus = model::Torus::make(model::plain_torus_shape(8, 8, 8)).value();
  TorusTiming timing;
  EXPECT_EQ(timing_of(*model::build_machine("seastar").machine, &timing).why, "");
  EXPECT_EQ(timing.nic.cam_entries, 256u);
  timing.nic.cam_entries = entries;
  Trace trace;
  trace.processes = 512;
  for (std::uint32_t p = 1; p <= senders; ++p) trace.records.push_back({0, p, 0, bytes, TraceKind::put});
  std::vector<Node> places(512);
  for (Node n = 0; n < 512; ++n) places[n] = n;
  TraceTraffic traffic(trace, places, 512, 64, kTileTickNs);
  RunLimits limits;
  limits.threads = threads;
  SimResult result = run_torus(torus, timing, traffic, limits, 1);
  EXPECT_EQ(result.outcome.stop, Stop::finished);
  EXPECT_TRUE(result.outcome.conserved);
  EXPECT_EQ(result.outcome.total.delivered, std::uint64_t{senders} * ((bytes + 63) / 64));
  return result;
}

TEST(SeaStarRouter, AnIncastOfMoreThan256MessagesStallsTheReceiver) {
  constexpr std::uint32_t kBytes = 8192;  // long enough for most to be under way at once
  for (const Node senders : {100u, 256u}) {
    const SimResult result = incast(senders, kBytes);
    EXPECT_EQ(result.outcome.total.receive_stalls, 0u) << senders;
    EXPECT_EQ(result.outcome.total.receive_stall_ticks, 0u);
  }
  const SimResult many = incast(500, kBytes), plain = incast(500, kBytes, 1, 0);
  EXPECT_GT(many.outcome.total.receive_stalls, 500u - 256);
  EXPECT_EQ(many.outcome.total.receive_stall_ticks, many.outcome.total.receive_stalls * 15000);
  EXPECT_EQ(plain.outcome.total.receive_stalls, 0u);
  // The receiver takes nothing while it stands still.
  EXPECT_GE(many.outcome.end, many.outcome.total.receive_stall_ticks);
  EXPECT_GT(many.outcome.end, plain.outcome.end + many.outcome.total.receive_stall_ticks / 2);
  // Messages of one packet need no entry.
  EXPECT_EQ(incast(500, 64).outcome.total.receive_stalls, 0u);
  const SimResult crew = incast(500, kBytes, 2);
  EXPECT_EQ(crew.outcome.end, many.outcome.end);
  EXPECT_EQ(crew.outcome.total.receive_stalls, many.outcome.total.receive_stalls);
}

}  // namespace
}  // namespace orrery::sim
