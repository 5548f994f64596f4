// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/fat_tree.hpp"

#include "tests/emu/model/seed.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace orrery::model {
namespace {

TEST(FatTree, HasTheQuaternaryCounts) {
  std::uint32_t nodes = 1;
  for (std::uint32_t n = 1; n <= FatTree::kMaxLevels; ++n) {
    nodes *= 4;
    const FatTree t = FatTree::make(n).value();
    EXPECT_EQ(t.nodes(), nodes);
    EXPECT_EQ(t.switches(), n * nodes / 4);
  }
  EXPECT_EQ(FatTree::make(5).value().switches(), 1280u);
  EXPECT_EQ(QuadricsPackaging{}.elites(), 1280u);
  EXPECT_FALSE(FatTree::make(0).ok());
  EXPECT_FALSE(FatTree::make(9).ok());
}

TEST(FatTree, EveryNodeOfEverySizeHangsOnItsOwnPort) {
  for (std::uint32_t n = 1; n <= FatTree::kMaxLevels; ++n) {
    const FatTree t = FatTree::make(n).value();
    for (NodeId p = 0; p < t.nodes(); ++p) {
      const LinkEnds up = t.ends(t.up_link(0, p)), down = t.ends(t.down_link(0, p));
      if (up.from != t.vertex_of(p) || up.to != t.switch_id(0, p / FatTree::kArity) || down.from != up.to ||
          down.to != up.from) {
        FAIL() << n << " levels, node " << p;
      }
    }
  }
}

TEST(FatTree, EveryElitePortIsWiredOnceEachWay) {
  for (std::uint32_t n = 1; n <= 5; ++n) {
    const FatTree t = FatTree::make(n).value();
    std::vector<int> in(t.switches() + t.nodes(), 0), out(t.switches() + t.nodes(), 0);
    std::set<std::pair<RouterId, RouterId>> joined;
    for (LinkId link = 0; link < t.link_slots(); ++link) {
      const LinkEnds ends = t.ends(link);
      ++out[ends.from];
      ++in[ends.to];
      ASSERT_TRUE(joined.emplace(ends.from, ends.to).second);
    }
    for (const auto& [from, to] : joined) ASSERT_EQ(joined.count({to, from}), 1u);
    for (RouterId v = 0; v < t.switches(); ++v) {
      const bool top = v / t.switches_per_level() == n - 1;
      ASSERT_EQ(in[v], top ? 4 : 8);
      ASSERT_EQ(out[v], top ? 4 : 8);
    }
    for (NodeId p = 0; p < t.nodes(); ++p) ASSERT_EQ(in[t.vertex_of(p)] + out[t.vertex_of(p)], 2);
  }
}

TEST(FatTree, EveryRouteGoesUpThenDownAndIsMinimal) {
  const std::uint64_t seed = test_seed();
  Choices pick(seed);
  for (std::uint32_t n = 1; n <= FatTree::kMaxLevels; ++n) {
    const FatTree t = FatTree::make(n).value();
    for (int i = 0; i < 3000; ++i) {
      const NodeId src = pick.below(t.nodes()), dst = pick.below(t.nodes());
      Route route;
      t.route(src, dst, mix64(seed + i), &route);
      if (src == dst) {
        ASSERT_TRUE(route.empty());
        continue;
      }
      ASSERT_EQ(route.size(), t.switches_crossed(src, dst) + 1);
      RouterId at = t.vertex_of(src);
      bool down = false;
      for (LinkId link : route) {
        ASSERT_TRUE(t.has_link(link));
        ASSERT_EQ(t.ends(link).from, at);
        ASSERT_FALSE(down && t.is_up(link));
        down = !t.is_up(link);
        at = t.ends(link).to;
      }
      ASSERT_EQ(at, t.vertex_of(dst));
    }
  }
}

TEST(FatTree, DownIsDeterministicUpIsFree) {
  const FatTree t = FatTree::make(5).value();
  std::set<LinkId> ups, downs_from_same_top;
  for (std::uint64_t s = 0; s < 4000; ++s) {
    Route route;
    t.route(0, 1023, s, &route);
    ups.insert(route[4]);
  }
  EXPECT_EQ(ups.size(), 256u);  // every switch of the top level is reachable
}

TEST(FatTree, LevelsAreThoseOfTheHighestDifferingDigit) {
  EXPECT_EQ(FatTree::nca_level(0, 1), 0u);
  EXPECT_EQ(FatTree::nca_level(0, 4), 1u);
  EXPECT_EQ(FatTree::nca_level(3, 1020), 4u);
  EXPECT_EQ(FatTree::make(5).value().switches_crossed(0, 1023), 9u);
  EXPECT_EQ(FatTree::make(5).value().switches_crossed(0, 1), 1u);
}

TEST(FatTree, MulticastTurnsAtTheLeftmostCoveringSwitchAndReachesEachNodeOnce) {
  const FatTree t = FatTree::make(5).value();
  const auto all = t.multicast(17, 0, 1023).value();
  EXPECT_EQ(all.root_level, 4u);
  EXPECT_EQ(all.root, t.switch_id(4, 0));
  EXPECT_EQ(all.branches, 1024u + 256u + 64u + 16u + 4u);
  const auto few = t.multicast(17, 16, 31).value();
  EXPECT_EQ(few.root_level, 1u);
  EXPECT_EQ(few.branches, 16u + 4u);
  EXPECT_FALSE(t.multicast(0, 5, 4).ok());
  EXPECT_FALSE(t.multicast(0, 5, 1024).ok());
  EXPECT_FALSE(t.multicast(1024, 0, 1).ok());
}

TEST(FatTree, OnlyNeighbouringNodesAreAMulticastSet) {
  const std::vector<NodeId> run{5, 6, 7}, gap{5, 7, 8}, none{};
  EXPECT_TRUE(FatTree::contiguous(run));
  EXPECT_FALSE(FatTree::contiguous(gap));
  EXPECT_FALSE(FatTree::contiguous(none));
}

}  // namespace
}  // namespace orrery::model
