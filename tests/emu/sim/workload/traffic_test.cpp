// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/workload/traffic.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

namespace orrery::sim {
namespace {

TEST(Shuffle, IsABijectionForEverySizeAndKey) {
  for (std::uint32_t n : {1u, 2u, 3u, 7u, 512u, 1000u}) {
    Shuffle shuffle(n);
    for (std::uint64_t key : {0u, 1u, 99u}) {
      std::set<std::uint32_t> seen;
      for (std::uint32_t i = 0; i < n; ++i) seen.insert(shuffle.at(i, key));
      EXPECT_EQ(seen.size(), n);
      EXPECT_LT(*seen.rbegin(), n);
    }
  }
}

using Pairs = std::map<std::pair<Node, Node>, std::uint64_t>;

Pairs drain(AllToAll& workload, Node nodes, std::uint32_t fifos) {
  Pairs bytes;
  Random random(1);
  for (Node node = 0; node < nodes; ++node)
    for (std::uint32_t fifo = 0; fifo < fifos; ++fifo) {
      Send send;
      while (workload.next(node, fifo, 0, random, send) == Next::send) {
        EXPECT_NE(send.dst, node);
        EXPECT_LE(send.payload, 240u);
        bytes[{node, send.dst}] += send.payload;
      }
    }
  return bytes;
}

TEST(AllToAll, SendsEveryPairItsBytesOnceWhateverTheOrderAndTheFifos) {
  for (bool finite : {true, false})
    for (auto order : {AllToAll::Order::random, AllToAll::Order::shift}) {
      AllToAll::Options options;
      options.bytes = 500;
      options.finite_fifos = finite;
      options.order = order;
      AllToAll workload(Node{30}, options);
      const Pairs bytes = drain(workload, 30, 6);
      EXPECT_EQ(bytes.size(), 30u * 29);
      for (auto& [pair, sum] : bytes) EXPECT_EQ(sum, 500u) << pair.first << " to " << pair.second;
      EXPECT_EQ(workload.expected_packets(), 30u * 29 * 3);
    }
}

TEST(AllToAll, FillsEachInfiniteFifoWithPacketsThatGoFurthestItsWay) {
  const Box box{{8, 4, 4}};
  for (std::uint32_t burst : {1u, 3u}) {
    AllToAll::Options options;
    options.bytes = 500;
    options.burst = burst;
    options.finite_fifos = false;
    options.by_direction = true;
    AllToAll workload(box, 7, options);
    Random random(1);
    Pairs bytes;
    std::map<std::uint32_t, int> half_way;  // by FIFO, of packets that may go either way along x
    for (std::uint32_t fifo = 0; fifo < 6; ++fifo) {
      Send send;
      while (workload.next(5, fifo, 0, random, send) == Next::send) {
        EXPECT_TRUE(send.hints >> fifo & 1) << "to " << send.dst << " in FIFO " << fifo;
        const std::array<Node, 3> by{(send.dst % 8 + 8 - 5) % 8, send.dst / 8 % 4, send.dst / 32};
        for (std::size_t d = 0; d < 3; ++d) {
          const bool plus = send.hints >> d & 1, minus = send.hints >> (d + 3) & 1;
          EXPECT_EQ(plus + minus, by[d] != 0 ? 1 : 0);
          if (2 * by[d] != box.sides[d] && by[d] != 0) {
            EXPECT_EQ(plus, 2 * by[d] < box.sides[d]);
          }
        }
        std::array<Node, 3> hops{};
        for (std::size_t d = 0; d < 3; ++d) hops[d] = std::min(by[d], box.sides[d] - by[d]);
        EXPECT_EQ(hops[fifo % 3], *std::max_element(hops.begin(), hops.end()));
        if (by[0] == 4) ++half_way[send.hints >> 3 & 1];
        bytes[{5, send.dst}] += send.payload;
      }
    }
    EXPECT_EQ(bytes.size(), 127u);
    for (auto& [pair, sum] : bytes) EXPECT_EQ(sum, 500u) << "to " << pair.second;
    EXPECT_GT(half_way[0], 0);
    EXPECT_GT(half_way[1], 0);
  }
}

TEST(AllToAll, InStepANodeWaitsForItsOwnMessageBeforeTheNext) {
  AllToAll::Options options;
  options.bytes = 500;  // three packets
  options.order = AllToAll::Order::shift;
  options.in_step = true;
  AllToAll workload(Node{5}, options);
  Random random(1);
  Send send;
  Packet packet;
  for (int message = 0; message < 4; ++message) {
    std::set<Node> to;
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(workload.next(2, 0, 0, random, send), Next::send);
      to.insert(send.dst);
    }
    EXPECT_EQ(to.size(), 1u);
    if (message == 3) break;
    EXPECT_EQ(workload.next(2, 0, 0, random, send), Next::idle);
    EXPECT_FALSE(workload.delivered(2, packet, 0, false));
    EXPECT_FALSE(workload.delivered(2, packet, 0, false));
    EXPECT_EQ(workload.next(2, 0, 0, random, send), Next::idle);
    EXPECT_TRUE(workload.delivered(2, packet, 0, false));
  }
}

TEST(AllToAll, ANodeSendsNoMoreBeyondWhatHasArrivedThanItMayBeAhead) {
  AllToAll::Options options;
  options.bytes = 500;  // three packets of at most 240
  options.order = AllToAll::Order::shift;
  options.ahead = 4 * 240 + 239;  // four packets: into the second message
  AllToAll workload(Node{5}, options);
  Random random(1);
  Send send;
  Packet packet;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(workload.next(2, 0, 0, random, send), Next::send);
  for (int i = 4; i < 12; ++i) {
    EXPECT_EQ(workload.next(2, 0, 0, random, send), Next::idle);
    EXPECT_TRUE(workload.delivered(2, packet, 0, false));
    ASSERT_EQ(workload.next(2, 0, 0, random, send), Next::send) << i;
  }
  // What arrives first may be answered for later.
  AllToAll late(Node{5}, options);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(late.delivered(2, packet, 0, false));
  for (int i = 0; i < 6; ++i) ASSERT_EQ(late.next(2, 0, 0, random, send), Next::send);
  EXPECT_EQ(late.next(2, 0, 0, random, send), Next::idle);
}

TEST(AllToAll, StaysInsideItsPlanesAndLines) {
  AllToAll::Options options;
  const Box box{{4, 3, 2}};
  AllToAll planes(box, 3, options);  // x and y: two planes of twelve
  const Pairs in_planes = drain(planes, 24, 6);
  EXPECT_EQ(in_planes.size(), 24u * 11);
  for (auto& [pair, sum] : in_planes) EXPECT_EQ(pair.first / 12, pair.second / 12);
  AllToAll lines(box, 2, options);  // y
  const Pairs in_lines = drain(lines, 24, 6);
  EXPECT_EQ(in_lines.size(), 24u * 2);
  for (auto& [pair, sum] : in_lines) {
    EXPECT_EQ(pair.first % 4, pair.second % 4);
    EXPECT_EQ(pair.first / 12, pair.second / 12);
  }
}

TEST(AllToAll, LeavesNodesOutsideAListedSetSilent) {
  AllToAll workload(Node{20}, std::vector<Node>{3, 5, 19}, AllToAll::Options{});
  const Pairs bytes = drain(workload, 20, 6);
  EXPECT_EQ(bytes.size(), 6u);
  EXPECT_TRUE(bytes.count({19, 3}));
}

TEST(RateTraffic, OffersTheRateThatWasAskedFor) {
  RateTraffic::Options options;
  options.packets_per_node_tick = 0.02;
  RateTraffic workload(Destinations(Pattern::uniform, Box{{8, 8, 8}}, 0, {1, 1, 1}, 1), 512, options);
  Random random(3);
  std::uint64_t sent = 0;
  const Tick until = 20000;
  for (Node node = 0; node < 512; ++node)
    for (std::uint32_t fifo = 0; fifo < 6; ++fifo) {
      Send send;
      Tick now = 0;
      for (;;) {
        const Next next = workload.next(node, fifo, now, random, send);
        if (next == Next::send) {
          ++sent;
          EXPECT_LE(send.created, now);
          continue;
        }
        ASSERT_EQ(next, Next::later);
        ASSERT_GT(send.created, now);
        now = send.created;
        if (now > until) break;
      }
    }
  const double expected = 0.02 * 512 * static_cast<double>(until);
  // Poisson: 204,800 packets have a deviation of 453; six of them.
  EXPECT_NEAR(static_cast<double>(sent), expected, 2800);
}

TEST(Destinations, FollowTheirPattern) {
  const Box box{{4, 4, 4}};
  Random random(5);
  const auto pick = [&](Pattern pattern, Node node) {
    return Destinations(pattern, box, 0.25, {2, 2, 2}, 9).pick(node, random);
  };
  EXPECT_EQ(pick(Pattern::complement, 1), 62u);
  EXPECT_EQ(pick(Pattern::tornado, 0), 1u + 4 + 16);
  EXPECT_EQ(pick(Pattern::transpose, 1), 16u);  // (1,0,0) -> (0,0,1)
  for (int i = 0; i < 200; ++i) {
    const Node near = pick(Pattern::neighbour, 0);
    EXPECT_TRUE(near == 1 || near == 3 || near == 4 || near == 12 || near == 16 || near == 48) << near;
    EXPECT_NE(pick(Pattern::uniform, 17), 17u);
  }
  std::set<Node> images;
  for (Node n = 0; n < 64; ++n) images.insert(pick(Pattern::permutation, n));
  EXPECT_EQ(images.size(), 64u);
}

TEST(Destinations, SendTheAskedShareIntoTheHotRegion) {
  const Box box{{16, 16, 16}};
  Destinations where(Pattern::hot_region, box, 0.25, {8, 8, 8}, 1);
  Random random(11);
  int inside = 0;
  const int draws = 200000;
  for (int i = 0; i < draws; ++i) {
    const Node to = where.pick(4095, random);
    inside += to % 16 < 8 && to / 16 % 16 < 8 && to / 256 < 8;
  }
  // 25 % + 12.5 % of the rest; the deviation is 0.1 points.
  EXPECT_NEAR(static_cast<double>(inside) / draws, 0.25 + 0.75 * 0.125, 0.006);
}

}  // namespace
}  // namespace orrery::sim
