// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/quadrics/stream_cam.hpp"

#include "emu/sim/quadrics/stream_firmware.hpp"
#include "emu/sim/scene/machine_timing.hpp"
#include "emu/sim/scene/simulate.hpp"
#include "emu/sim/tile/tile_run.hpp"
#include "emu/sim/workload/trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(StreamFirmware, HasCommandsForThreeMessagesOfASourceAndSetsUpOneAfterTheOther) {
  StreamFirmware firmware;
  for (Tick now = 0; now < 3; ++now) {
    EXPECT_EQ(firmware.begin(1, now), 0u);
    firmware.end(1, now, 100);  // done at 100, 200, 300
  }
  EXPECT_EQ(firmware.begin(2, 3), 0u);  // has its own
  EXPECT_EQ(firmware.begin(1, 3), 97u);
  firmware.end(1, 100, 100);  // 400
  EXPECT_EQ(firmware.begin(1, 250), 0u);
  EXPECT_EQ(firmware.begin(1, 250), 50u);
  EXPECT_EQ(firmware.act(310, 10), 100u);  // behind what was begun
  EXPECT_EQ(firmware.begin(1, 410), 0u);
  EXPECT_EQ(firmware.begin(1, 410), 0u);  // three that were not ended
  EXPECT_GT(firmware.bytes(), 0u);
  firmware.end(1, 500, 100);
  firmware.end(1, 500, 100);
  firmware.end(1, 500, 100);
  firmware.end(2, 500, 100);
  EXPECT_EQ(firmware.begin(3, 2000), 0u);
  firmware.end(3, 2000, 100);
  EXPECT_EQ(firmware.begin(4, 3000), 0u);
  EXPECT_EQ(firmware.bytes(), 32u);  // only that of 4 is not complete
}

// Node 1 puts `messages` of `bytes` to node 0, which is beside it: the time until the last one is there, ns.
double stream(std::uint32_t messages, std::uint32_t bytes, double firmware_us, std::uint64_t* stalls) {
  const auto torus = model::Torus::make(model::plain_torus_shape(4, 4, 4)).value();
  TorusTiming timing;
  EXPECT_EQ(timing_of(*model::build_machine("seastar").machine, &timing).why, "");
  timing.nic.firmware = static_cast<std::uint32_t>(firmware_us * 10000);
  Trace trace;
  trace.processes = 2;
  for (std::uint32_t i = 0; i < messages; ++i) trace.records.push_back({0, 1, 0, bytes, TraceKind::put});
  TraceTraffic traffic(trace, {0, 1}, 64, 64, kTileTickNs);
  const SimResult result = run_torus(torus, timing, traffic, {}, 1);
  EXPECT_EQ(result.outcome.stop, Stop::finished);
  EXPECT_TRUE(result.outcome.conserved);
  *stalls = result.outcome.total.receive_stalls;
  return static_cast<double>(result.outcome.end) * result.tick_ns;
}

// One source gets a message through each 0.96 us (1.56 us reliably) or as fast as its bytes come, as
// measured.
TEST(SeaStarRouter, ASourceIsServedAsFastAsItsReceiversFirmwareSetsUpCommands) {
  std::uint64_t stalls = 0;
  for (const double service : {0.96, 1.56})
    for (const std::uint32_t bytes : {64u, 128u, 512u, 1024u, 1536u, 4096u}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, " << service << " us");
      const double each = (stream(60, bytes, service, &stalls) - stream(20, bytes, service, &stalls)) / 40;
      EXPECT_NEAR(each, std::max(service * 1000, bytes / 2.0), 0.01 * each);
      // Without firmware only the bytes count.
      const double plain = (stream(60, bytes, 0, &stalls) - stream(20, bytes, 0, &stalls)) / 40;
      EXPECT_NEAR(plain, bytes / 2.0, 0.01 * plain);
      EXPECT_EQ(stalls, 0u);
    }
}

TEST(SeaStarRouter, FirmwareIsNotNoticedUntilASourceHasSentThreeMessages) {
  std::uint64_t stalls = 0;
  for (const std::uint32_t messages : {1u, 3u}) {
    EXPECT_EQ(stream(messages, 512, 0.96, &stalls), stream(messages, 512, 0, &stalls));
    EXPECT_EQ(stalls, 0u);
  }
  EXPECT_GT(stream(4, 512, 0.96, &stalls), stream(4, 512, 0, &stalls) + 100);
  stream(4, 512, 0.96, &stalls);
  EXPECT_EQ(stalls, 1u);
  RunSpec spec;
  spec.machine = "seastar";
  spec.nodes = "4x4x4";
  spec.bytes = 1024;
  const auto end = [&](double firmware_us, std::uint32_t exchanges, unsigned threads) {
    spec.firmware_us = firmware_us;
    spec.repeat = exchanges;
    spec.threads = threads;
    SimResult result;
    EXPECT_EQ(simulate(spec, &result).why, "");
    EXPECT_TRUE(result.outcome.conserved);
    stalls = result.outcome.total.receive_stalls;
    return result.outcome.end;
  };
  // Each source's one message and three; then all of them run out.
  for (const std::uint32_t exchanges : {1u, 3u}) {
    EXPECT_EQ(end(1.56, exchanges, 1), end(0, exchanges, 1));
    EXPECT_EQ(stalls, 0u);
  }
  const Tick late = end(1.56, 8, 1);
  EXPECT_GT(stalls, 64u);
  // 63 sources' messages past the third, one after the other.
  EXPECT_GT(late, Tick{63 * 4 * 15600});
  EXPECT_EQ(end(1.56, 8, 2), late);
  // A broadcast's message is one, however long.
  spec.workload = "broadcast";
  spec.bytes = 100000;
  EXPECT_EQ(end(1.56, 1, 1), end(0, 1, 1));
}

TEST(SeaStarRouter, FirmwareIsRefusedInOneLineWhereItIsNone) {
  const auto why = [](auto change) {
    RunSpec spec;
    spec.machine = "seastar";
    spec.nodes = "4x4x4";
    change(spec);
    SimResult result;
    return simulate(spec, &result).why;
  };
  EXPECT_EQ(why([](RunSpec& s) { s.firmware_us = -1; }),
            "firmware that takes -1 us for a message: expected 0 to 1000");
  EXPECT_EQ(why([](RunSpec& s) { s.firmware_us = 0.0 / 0.0; }).find("firmware that takes"), 0u);
  EXPECT_EQ(why([](RunSpec& s) { s.firmware_us = 1, s.machine = "gemini"; }),
            "firmware that takes 1 us for a message on gemini: expected 0, only seastar's receives");
  EXPECT_EQ(why([](RunSpec& s) { s.firmware_us = 1, s.grain = 2; }),
            "firmware and grain 2: expected grain 1, which tells messages of one packet");
}

}  // namespace
}  // namespace orrery::sim
