// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/torus.hpp"
#include "emu/sim/bgl/bgl_run.hpp"
#include "emu/sim/tile/torus_grid.hpp"
#include "emu/sim/workload/traffic.hpp"
#include "tests/emu/sim/one_packet.hpp"

#include <gtest/gtest.h>

namespace orrery::sim {
namespace {

Box box_of(const BglConfig& config) { return Box{config.sides}; }

SimResult all_to_all(const BglConfig& config, std::uint64_t bytes, RunLimits limits = {},
                     bool finite = true) {
  AllToAll::Options options;
  options.bytes = bytes;
  options.finite_fifos = finite;
  options.seed = config.seed;
  AllToAll workload(box_of(config), 7, options);
  return run_bgl(config, workload, limits);
}

TEST(TorusGrid, AgreesWithTheModelsTorus) {
  const std::array<std::uint32_t, 3> sides{8, 4, 5};
  const TorusGrid grid(sides);
  const auto torus = model::Torus::make(model::plain_torus_shape(8, 4, 5)).value();
  for (Node n = 0; n < grid.nodes(); ++n) {
    const auto c = torus.coordinates(n);
    ASSERT_EQ(grid.coordinates(n), TorusGrid::pack(c.at[0], c.at[1], c.at[2]));
    for (int d = 0; d < 6; ++d) {
      ASSERT_EQ(grid.step(n, grid.coordinates(n), d), torus.neighbour(n, static_cast<model::Direction>(d)));
      ASSERT_EQ(grid.node(grid.step_packed(grid.coordinates(n), d)), grid.step(n, grid.coordinates(n), d));
    }
    for (Node to : {Node{0}, Node{77}, Node{159}}) {
      const auto steps = torus.steps(n, to, 0);
      const std::uint8_t hints = grid.hints(grid.coordinates(n), grid.coordinates(to), 0);
      for (int dim = 0; dim < 3; ++dim) {
        const int sign = (hints >> dim & 1) - (hints >> (dim + 3) & 1);
        const int wanted = steps[static_cast<std::size_t>(dim)];
        ASSERT_EQ(sign, (wanted > 0) - (wanted < 0)) << n << " to " << to;
      }
    }
  }
}

TEST(BglRouter, AFullPacketOccupiesALinkFor270ByteTimesAndAChunkFor46) {
  const BglConfig config;
  EXPECT_EQ(bgl_wire_ticks(config, 240), 270u);
  EXPECT_EQ(bgl_wire_ticks(config, 16), 46u);
}

TEST(BglRouter, AnAloneCutThroughPacketTakesItsHopsAndOneWireTime) {
  BglConfig config;
  config.hop_ticks = 10;
  for (auto [to, hops] : {std::pair{Node{1}, 1}, {Node{9}, 2}, {Node{73}, 3}, {Node{4 + 32 + 256}, 12}}) {
    OnePacket shot(0, to, 240);
    const SimResult result = run_bgl(config, shot, {});
    EXPECT_EQ(shot.hops, hops);
    EXPECT_EQ(shot.at, static_cast<Tick>(10 * hops + 270));
    EXPECT_EQ(result.outcome.stop, Stop::finished);
    EXPECT_TRUE(result.outcome.conserved);
  }
}

TEST(BglRouter, MoreSamplesThanMayBeAreThoseOfALongerInterval) {
  BglConfig config;
  config.sides = {4, 4, 4};
  RunLimits limits;
  limits.sample_every = 1;
  limits.most_samples = 16;
  limits.looks = 4;
  const SimResult joined = all_to_all(config, 240, limits);
  const auto& few = joined.outcome.samples;
  ASSERT_GE(few.size(), 8u);
  ASSERT_LT(few.size(), 16u);
  limits.sample_every = few[0].at;
  limits.most_samples = kMostSamples;
  const SimResult plain = all_to_all(config, 240, limits);
  EXPECT_GT(few[0].at, 100u);
  ASSERT_EQ(plain.outcome.samples.size(), few.size());
  for (std::size_t i = 0; i < few.size(); ++i) {
    const Sample& wide = plain.outcome.samples[i];
    EXPECT_EQ(few[i].at, wide.at);
    EXPECT_EQ(few[i].totals.delivered, wide.totals.delivered);
    EXPECT_EQ(few[i].totals.link_ticks, wide.totals.link_ticks);
    EXPECT_EQ(few[i].buffered, wide.buffered);
    EXPECT_EQ(few[i].vcs.size(), wide.vcs.size());
  }
  // New intervals have as many looks as those that were asked for.
  EXPECT_EQ(few.back().vcs[0].room, plain.outcome.samples.back().vcs[0].room);
  EXPECT_EQ(joined.outcome.end, plain.outcome.end);
}

TEST(BglRouter, APacketTakesTheTokensOfOneBufferUntilTheyAreBack) {
  // A full packet holds 8 of a buffer's 32 tokens, one chunk holds 1; on the bubble every packet holds 8.
  for (const auto& [payload, fixed, tokens] : {std::tuple{240, false, 8u}, {16, false, 1u}, {16, true, 8u}}) {
    BglConfig config;
    config.deterministic = fixed;
    OnePacket shot(0, 1, static_cast<std::uint16_t>(payload));
    RunLimits limits;
    limits.sample_every = 40;  // on its way from 0 to 10, in transfer until 46 or 270 later, then 10 back
    limits.looks = 4;
    const SimResult result = run_bgl(config, shot, limits);
    ASSERT_GE(result.outcome.samples.size(), 1u);
    const auto& vcs = result.outcome.samples[0].vcs;
    ASSERT_EQ(vcs.size(), 4u);  // two dynamic ones, bubble, priority
    EXPECT_EQ(vcs[0].taken + vcs[1].taken, fixed ? 0u : 4 * tokens);
    EXPECT_EQ(vcs[2].taken, fixed ? 4 * tokens : 0u);
    EXPECT_EQ(vcs[3].taken, 0u);
    const std::size_t used = fixed ? 2 : vcs[0].taken != 0 ? 0 : 1;
    EXPECT_EQ(vcs[used].room, 4u * 32 * 6 * 512);
    EXPECT_DOUBLE_EQ(vcs[used].fullest, tokens / 32.0);
    EXPECT_DOUBLE_EQ(vcs[used].mean(), tokens / (32.0 * 6 * 512));
  }
}

// Everything that samples say, in one line.
std::string curve_of(const SimResult& result) {
  std::string text;
  for (const Sample& s : result.outcome.samples) {
    text +=
        std::to_string(s.at) + " " + std::to_string(s.totals.delivered) + " " + std::to_string(s.buffered);
    for (const VcUse& use : s.vcs)
      text += " " + std::to_string(use.taken) + "/" + std::to_string(use.room) + " " +
              std::to_string(use.fullest);
    text += ";";
  }
  return text;
}

TEST(BglRouter, LookingAtBuffersChangesNothingAndSeesTheSameWithAnyThreads) {
  BglConfig config;
  config.sides = {4, 4, 4};
  RunLimits limits;
  limits.sample_every = 500;
  const SimResult plain = all_to_all(config, 960, limits);
  EXPECT_TRUE(plain.outcome.samples.at(1).vcs.empty());
  limits.looks = 8;
  const SimResult watched = all_to_all(config, 960, limits);
  EXPECT_EQ(plain.outcome.end, watched.outcome.end);
  EXPECT_EQ(plain.outcome.total.link_hops, watched.outcome.total.link_hops);
  EXPECT_EQ(plain.outcome.total.vc_hops, watched.outcome.total.vc_hops);
  ASSERT_GT(watched.outcome.samples.size(), 5u);
  const auto& busy = watched.outcome.samples[2].vcs;
  EXPECT_GT(busy[0].mean(), 0.2);
  EXPECT_GE(busy[0].fullest, 0.75);
  for (const auto& [threads, partitions] : {std::pair{2u, 2u}, {1u, 3u}}) {
    limits.threads = threads;
    limits.partitions = partitions;
    EXPECT_EQ(curve_of(all_to_all(config, 960, limits)), curve_of(watched)) << threads << " " << partitions;
  }
}

TEST(BglRouter, AllToAllDeliversEveryPacketByMinimalPaths) {
  BglConfig config;
  config.sides = {4, 4, 4};
  const SimResult result = all_to_all(config, 500);
  EXPECT_EQ(result.outcome.stop, Stop::finished);
  EXPECT_EQ(result.outcome.total.delivered, 64u * 63 * 3);
  EXPECT_EQ(result.outcome.in_flight, 0u);
  EXPECT_TRUE(result.outcome.conserved);
  // Mean distance of a ring of four is 1, over 64/63 of the pairs.
  EXPECT_EQ(result.outcome.total.delivered_hops, 64u * 64 * 3 * 3);
  EXPECT_EQ(result.outcome.total.link_hops, result.outcome.total.delivered_hops);
}

TEST(BglRouter, EveryFormOfEscapeAndSizeConservesPacketsWhileRunning) {
  for (auto escape : {EscapeKind::bubble, EscapeKind::dateline_pair})
    for (auto order : {EscapeOrder::dimension, EscapeOrder::direction})
      for (std::uint32_t vcs : {1u, 2u, 4u}) {
        BglConfig config;
        config.sides = {6, 4, 3};
        config.escape = escape;
        config.order = order;
        config.dynamic_vcs = vcs;
        RunLimits limits;
        limits.until = 20011;
        RateTraffic::Options options;
        options.payload_low = 1;
        RateTraffic workload(Destinations(Pattern::uniform, box_of(config), 0, {1, 1, 1}, 1), 72, options);
        const SimResult result = run_bgl(config, workload, limits);
        EXPECT_EQ(result.outcome.stop, Stop::time_limit);
        EXPECT_TRUE(result.outcome.conserved);
        EXPECT_GT(result.outcome.in_flight, 0u);
        EXPECT_GT(result.outcome.total.delivered, 1000u);
      }
}

TEST(BglRouter, IsBitIdenticalForAnyThreadsAndPartitions) {
  BglConfig config;
  config.sides = {6, 5, 8};
  config.in_network_fraction = 0.9;
  const auto run = [&](unsigned threads, unsigned partitions) {
    RunLimits limits;
    limits.until = 8000;
    limits.sample_every = 2000;
    limits.threads = threads;
    limits.partitions = partitions;
    RateTraffic::Options options;
    options.payload_low = 10;
    options.packets_per_node_tick = 0.9 * bgl_uniform_peak(config, 125);
    RateTraffic workload(Destinations(Pattern::hot_region, box_of(config), 0.25, {3, 3, 3}, 1), 240, options);
    return run_bgl(config, workload, limits);
  };
  const SimResult base = run(1, 1);
  EXPECT_GT(base.outcome.total.delivered, 1000u);
  for (auto [threads, partitions] : {std::pair{1u, 4u}, {2u, 2u}, {3u, 8u}, {8u, 8u}}) {
    const SimResult other = run(threads, partitions);
    EXPECT_EQ(other.outcome.total.delivered, base.outcome.total.delivered);
    EXPECT_EQ(other.outcome.total.link_hops, base.outcome.total.link_hops);
    EXPECT_EQ(other.outcome.total.vc_hops, base.outcome.total.vc_hops);
    EXPECT_EQ(other.outcome.total.unblocking, base.outcome.total.unblocking);
    EXPECT_EQ(other.outcome.total.events, base.outcome.total.events);
    EXPECT_EQ(other.outcome.latency.mean(), base.outcome.latency.mean());
    EXPECT_EQ(other.outcome.latency.max(), base.outcome.latency.max());
    ASSERT_EQ(other.outcome.samples.size(), base.outcome.samples.size());
    for (std::size_t i = 0; i < base.outcome.samples.size(); ++i) {
      EXPECT_EQ(other.outcome.samples[i].totals.delivered_hops,
                base.outcome.samples[i].totals.delivered_hops);
      EXPECT_EQ(other.outcome.samples[i].buffered, base.outcome.samples[i].buffered);
    }
  }
}

// A ring of six kept full: injection goes first, sizes are mixed, one small dynamic VC. Deadlock of the
// naive rule needs every buffer of the ring to have some space, none a full packet's.
SimResult mixed_sizes_on_a_ring(EscapeKind escape, std::uint64_t seed) {
  BglConfig config;
  config.sides = {6, 1, 1};
  config.escape = escape;
  config.dynamic_vcs = 1;
  config.dynamic_bytes = 256;
  config.in_network_fraction = 0;
  config.jsq = false;
  config.slq_fraction = 0;
  config.seed = seed;
  RunLimits limits;
  limits.until = 2'000'000;
  RateTraffic::Options options;
  options.payload_low = 1;
  options.seed = seed;
  RateTraffic workload(Destinations(Pattern::uniform, box_of(config), 0, {1, 1, 1}, seed), 6, options);
  return run_bgl(config, workload, limits);
}

TEST(BglRouter, TheNaiveBubbleRuleDeadlocksWithMixedSizesAndTheWatchdogNamesTheCycle) {
  int deadlocks = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const SimResult result = mixed_sizes_on_a_ring(EscapeKind::naive_bubble, seed);
    EXPECT_TRUE(result.outcome.conserved);
    if (result.outcome.stop != Stop::deadlock) continue;
    ++deadlocks;
    EXPECT_GT(result.outcome.in_flight, 0u);
    ASSERT_EQ(result.cycle.size(), 6u);  // right round the ring
    for (const std::string& channel : result.cycle)
      EXPECT_NE(channel.find("escape 0"), std::string::npos) << channel;
  }
  EXPECT_GE(deadlocks, 3);
}

TEST(BglRouter, TheCorrectedBubbleRuleNeverDeadlocksWithMixedSizes) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const SimResult result = mixed_sizes_on_a_ring(EscapeKind::bubble, seed);
    EXPECT_EQ(result.outcome.stop, Stop::time_limit) << seed;
    EXPECT_GT(result.outcome.total.delivered, 30000u);
  }
}

TEST(BglRouter, DeterministicPacketsUseTheEscapeOnlyAndArriveInOrder) {
  BglConfig config;
  config.sides = {4, 4, 2};
  config.deterministic = true;
  const SimResult result = all_to_all(config, 240);
  EXPECT_EQ(result.outcome.stop, Stop::finished);
  EXPECT_EQ(result.outcome.total.escape_hops, result.outcome.total.link_hops);
}

TEST(BglRouter, LinkErrorsCostRetriesAndNoPackets) {
  BglConfig config;
  config.sides = {4, 4, 4};
  const SimResult clean = all_to_all(config, 2400);
  config.bit_error_rate = 2e-5;  // 4 % of the full packets
  const SimResult noisy = all_to_all(config, 2400);
  EXPECT_EQ(clean.outcome.total.retries, 0u);
  EXPECT_EQ(noisy.outcome.total.delivered, clean.outcome.total.delivered);
  const double share =
      static_cast<double>(noisy.outcome.total.retries) / static_cast<double>(noisy.outcome.total.link_hops);
  EXPECT_NEAR(share, 0.043, 0.006);
  EXPECT_GT(noisy.outcome.end, clean.outcome.end);
}

TEST(BglRouter, AMeshHasNoLinksAcrossItsEdges) {
  BglConfig config;
  config.sides = {4, 3, 2};
  config.closed = {false, false, false};
  const SimResult result = all_to_all(config, 240);
  EXPECT_EQ(result.links, 2u * (3 * 3 * 2 + 4 * 2 * 2 + 4 * 3 * 1));
  EXPECT_EQ(result.outcome.stop, Stop::finished);
  EXPECT_TRUE(result.outcome.conserved);
}

TEST(BglRouter, RefusesWhatCannotBeBuilt) {
  BglConfig config;
  EXPECT_FALSE(validate_bgl(config).refused());
  config.sides = {0, 8, 8};
  EXPECT_NE(validate_bgl(config).why.find("expected 1 to 256"), std::string::npos);
  config = {};
  config.dynamic_bytes = 300;
  EXPECT_NE(validate_bgl(config).why.find("300"), std::string::npos);
  config = {};
  config.escape_bytes = 256;
  EXPECT_TRUE(validate_bgl(config).refused());
  config = {};
  config.slq_fraction = 1.5;
  EXPECT_NE(validate_bgl(config).why.find("1.5"), std::string::npos);
  config = {};
  config.processors = 3;
  EXPECT_NE(validate_bgl(config).why.find("expected 1 or 2"), std::string::npos);
  config = {};
  config.processor_ticks = 40;
  EXPECT_NE(validate_bgl(config).why.find("40 and 0"), std::string::npos);
  config = {};
  config.reception_bytes = 128;
  EXPECT_NE(validate_bgl(config).why.find("128"), std::string::npos);
}

}  // namespace
}  // namespace orrery::sim
