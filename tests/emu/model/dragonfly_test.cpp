// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/dragonfly.hpp"

#include "tests/emu/model/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace orrery::model {
namespace {

std::vector<Dragonfly> many_systems() {
  std::vector<Dragonfly> out;
  for (const DragonflyShape shape :
       {DragonflyShape{1, 0, 6}, DragonflyShape{1, 0, 1}, DragonflyShape{2, 0, 6}, DragonflyShape{2, 7, 3},
        DragonflyShape{6, 12, 6}, DragonflyShape{8, 0, 6}, DragonflyShape{9, 0, 2}, DragonflyShape{15, 0, 6},
        DragonflyShape{49, 0, 6}, DragonflyShape{64, 0, 6}, DragonflyShape{97, 2, 6},
        DragonflyShape{241, 0, 6}}) {
    const auto d = Dragonfly::make(shape);
    EXPECT_TRUE(d.ok()) << shape.groups;
    out.push_back(d.value());
  }
  return out;
}

struct Count {
  int green = 0, black = 0, blue = 0;
};

Count check_walk(const Dragonfly& d, const Route& route, RouterId from, RouterId to) {
  Count count;
  RouterId at = from;
  for (LinkId link : route) {
    EXPECT_TRUE(d.has_link(link));
    EXPECT_EQ(d.ends(link).from, at);
    at = d.ends(link).to;
    switch (d.colour(link)) {
      case LinkColour::green:
        ++count.green;
        break;
      case LinkColour::black:
        ++count.black;
        break;
      case LinkColour::blue:
        ++count.blue;
        break;
    }
  }
  EXPECT_EQ(at, to);
  return count;
}

TEST(Dragonfly, CoordinatesRoundTripForEveryNodeOfEverySize) {
  for (const Dragonfly& d : many_systems()) {
    for (NodeId n = 0; n < d.nodes(); ++n) {
      const DragonflyPlace p = d.place(n);
      ASSERT_EQ(d.node_at(p), n);
      ASSERT_LT(p.group, d.groups());
      ASSERT_LT(p.chassis, d.chassis_in(p.group));
    }
  }
}

TEST(Dragonfly, CoordinatesRoundTripForEveryNodeOfEveryNumberOfGroups) {
  for (std::uint32_t groups = 1; groups <= Dragonfly::kMaxGroups; ++groups) {
    for (const std::uint32_t last : {1u, 2u, 3u, 4u, 5u, 6u}) {
      const auto made = Dragonfly::make({groups, 0, last});
      if (!made.ok()) continue;  // no cable for every group in so small a last one
      const Dragonfly& d = made.value();
      // The groups before the last one are those of a smaller system.
      const NodeId first = last == 6 ? 0 : (groups - 1) * Dragonfly::kNodesPerGroup;
      for (NodeId n = first; n < d.nodes(); ++n) {
        const DragonflyPlace p = d.place(n);
        if (d.node_at(p) != n || p.group >= groups || p.chassis >= d.chassis_in(p.group)) {
          FAIL() << groups << " groups, node " << n;
        }
      }
    }
  }
}

TEST(Dragonfly, TheEndsOfABlueLinkAreThoseOfItsRouteAndAnOwnOneStartsAtTheRouter) {
  Choices pick(test_seed());
  for (const Dragonfly& d : many_systems()) {
    for (int i = 0; i < 2000 && d.groups() > 1; ++i) {
      const RouterId from = pick.below(d.routers()), to = pick.below(d.routers());
      const std::uint32_t a = d.group_of_router(from), b = d.group_of_router(to);
      if (a == b) continue;
      const std::uint32_t index = pick.below(d.links_per_bundle());
      ASSERT_EQ(d.blue_ends(a, b, index), d.ends(d.blue(a, b, index)));
      Choices choices(mix64(static_cast<std::uint64_t>(i))), same = choices, any = choices, again = choices;
      const std::uint32_t own = d.own_blue(from, to, &choices);
      ASSERT_LT(own, d.links_per_bundle());
      ASSERT_EQ(d.group_of_router(d.blue_ends(a, b, own).to), b);
      // What the hot path works out without the link, and as many draws.
      constexpr std::uint32_t kGroup = Dragonfly::kRoutersPerGroup;
      const auto pick = [&](std::uint32_t own_cables, bool wanted, Choices* c) {
        const LinkEnds ends = d.pick_blue(from % kGroup, a, b, own_cables, wanted ? ~std::uint64_t{0} : 0, c);
        return LinkEnds{a * kGroup + ends.from, b * kGroup + ends.to};
      };
      ASSERT_EQ(pick(d.bundle(), true, &same), d.blue_ends(a, b, own));
      ASSERT_EQ(same.below(1u << 30), choices.below(1u << 30));
      ASSERT_EQ(pick(0, true, &any), d.blue_ends(a, b, again.below(d.links_per_bundle())));
      ASSERT_EQ(any.below(1u << 30), again.below(1u << 30));
      pick(d.bundle(), false, &any);  // not wanted: no draws
      ASSERT_EQ(any.below(1u << 30), again.below(1u << 30));
    }
  }
}

TEST(Dragonfly, EveryLinkHasAReverseOfItsColour) {
  for (const Dragonfly& d : many_systems()) {
    for (LinkId link = 0; link < d.link_slots(); ++link) {
      if (!d.has_link(link)) continue;
      const LinkEnds ends = d.ends(link);
      ASSERT_NE(ends.from, ends.to);
      ASSERT_LT(ends.to, d.routers());
      bool back = false;
      for (std::uint32_t p = 0; p < Dragonfly::kPorts && !back; ++p) {
        const LinkId candidate = ends.to * Dragonfly::kPorts + p;
        back = d.has_link(candidate) && d.colour(candidate) == d.colour(link) &&
               d.ends(candidate).to == ends.from;
      }
      ASSERT_TRUE(back) << link;
    }
  }
}

TEST(Dragonfly, ARouterHasFifteenGreenFifteenBlackAndTenBlueLinks) {
  const Dragonfly d = Dragonfly::make({2, 120, 6}).value();
  ASSERT_FALSE(Dragonfly::make({2, 241, 6}).ok());
  const Dragonfly full = Dragonfly::make({2, 0, 6}).value();
  EXPECT_EQ(full.bundle(), 240u);
  for (RouterId r = 0; r < full.routers(); ++r) {
    Count count;
    for (std::uint32_t p = 0; p < Dragonfly::kPorts; ++p) {
      const LinkId link = r * Dragonfly::kPorts + p;
      ASSERT_TRUE(full.has_link(link));
      count.green += full.colour(link) == LinkColour::green;
      count.black += full.colour(link) == LinkColour::black;
      count.blue += full.colour(link) == LinkColour::blue;
    }
    ASSERT_EQ(count.green, 15);
    ASSERT_EQ(count.black, 15);
    ASSERT_EQ(count.blue, 10);
  }
  EXPECT_EQ(d.cables_used_per_group(), 120u);
}

TEST(Dragonfly, EveryPairOfGroupsIsJoinedByAnEqualBundleBothWays) {
  for (const Dragonfly& d : many_systems()) {
    if (d.groups() < 2 || d.groups() > 70) continue;
    std::vector<std::uint32_t> links(d.groups() * d.groups(), 0);
    for (LinkId link = 0; link < d.link_slots(); ++link) {
      if (!d.has_link(link) || d.colour(link) != LinkColour::blue) continue;
      const LinkEnds ends = d.ends(link);
      ++links[d.group_of_router(ends.from) * d.groups() + d.group_of_router(ends.to)];
    }
    for (std::uint32_t a = 0; a < d.groups(); ++a) {
      for (std::uint32_t b = 0; b < d.groups(); ++b) {
        ASSERT_EQ(links[a * d.groups() + b], a == b ? 0 : d.links_per_bundle());
      }
    }
  }
}

TEST(Dragonfly, BlueIndexAndWiringAgreeAndSpreadABundleOverPairs) {
  for (const Dragonfly& d : many_systems()) {
    if (d.groups() < 2 || d.groups() > 70) continue;
    for (std::uint32_t b = 1; b < d.groups(); ++b) {
      std::set<LinkId> links;
      std::set<RouterId> routers;
      for (std::uint32_t i = 0; i < d.links_per_bundle(); ++i) {
        const LinkId link = d.blue(0, b, i);
        ASSERT_TRUE(d.has_link(link));
        ASSERT_EQ(d.group_of_router(d.ends(link).from), 0u);
        ASSERT_EQ(d.group_of_router(d.ends(link).to), b);
        links.insert(link);
        routers.insert(d.ends(link).from);
      }
      ASSERT_EQ(links.size(), d.links_per_bundle());
      ASSERT_EQ(routers.size(), std::min(2 * d.bundle(), d.chassis_in(0) * Dragonfly::kSlots));
    }
  }
}

TEST(Dragonfly, EveryMinimalRouteIsMinimalAndLegal) {
  const std::uint64_t seed = test_seed();
  Choices pick(seed);
  for (const Dragonfly& d : many_systems()) {
    for (int i = 0; i < 3000; ++i) {
      const RouterId from = pick.below(d.routers()), to = pick.below(d.routers());
      Route route;
      d.minimal(from, to, mix64(seed + i), &route);
      const Count count = check_walk(d, route, from, to);
      if (d.group_of_router(from) == d.group_of_router(to)) {
        ASSERT_EQ(count.blue, 0);
        ASSERT_EQ(count.green, from % 16 != to % 16 ? 1 : 0);
        ASSERT_EQ(count.black, from / 16 != to / 16 ? 1 : 0);
      } else {
        ASSERT_EQ(count.blue, 1);
        ASSERT_LE(count.green, 2);
        ASSERT_LE(count.black, 2);
        ASSERT_LE(route.size(), Dragonfly::kMaxMinimalHops);
      }
    }
  }
}

TEST(Dragonfly, OwnLinksAreTakenWhereTheRouterHasOne) {
  Choices pick(test_seed());
  for (const Dragonfly& d : many_systems()) {
    for (int i = 0; i < 2000 && d.groups() > 1; ++i) {
      const RouterId from = pick.below(d.routers()), to = pick.below(d.routers());
      bool owns = false;
      for (std::uint32_t p = Dragonfly::kGreen + Dragonfly::kBlack; p < Dragonfly::kPorts; ++p) {
        const LinkId link = from * Dragonfly::kPorts + p;
        owns = owns || (d.has_link(link) && d.group_of_router(d.ends(link).to) == d.group_of_router(to));
      }
      Route route;
      d.minimal_by_own_link(from, to, mix64(i), &route);
      check_walk(d, route, from, to);
      if (d.group_of_router(from) == d.group_of_router(to)) continue;
      ASSERT_EQ(owns, d.colour(route[0]) == LinkColour::blue && route[0] / Dragonfly::kPorts == from);
    }
  }
}

TEST(Dragonfly, AValiantRouteHasAtMostTenLinksAndFourVirtualChannels) {
  const std::uint64_t seed = test_seed();
  Choices pick(seed);
  std::size_t longest = 0;
  for (const Dragonfly& d : many_systems()) {
    for (int i = 0; i < 3000; ++i) {
      const RouterId from = pick.below(d.routers()), to = pick.below(d.routers());
      Route route;
      std::size_t up = 0;
      const RouterId root = d.valiant(from, to, mix64(seed + i), &route, &up);
      ASSERT_EQ(up == 0 ? from : d.ends(route[up - 1]).to, root);
      const Count count = check_walk(d, route, from, to);
      ASSERT_LE(route.size(), Dragonfly::kMaxHops);
      longest = std::max(longest, route.size());
      if (d.group_of_router(from) == d.group_of_router(to)) {
        ASSERT_EQ(count.blue, 0);
        ASSERT_LE(count.green, 2);
        ASSERT_LE(count.black, 2);
      }
      for (std::size_t hop = 0; hop < route.size(); ++hop) {
        ASSERT_LE(d.virtual_channel(route, hop, up), 3u);
      }
    }
  }
  EXPECT_EQ(longest, Dragonfly::kMaxHops);
}

// A cycle in the dependency graph of (link, channel) would allow deadlock. Links of one phase are
// ordered green before black, phases by channel: checked on every consecutive pair of links.
TEST(Dragonfly, ChannelsAndColoursNeverStepBack) {
  const std::uint64_t seed = test_seed();
  const Dragonfly d = Dragonfly::make({8, 0, 6}).value();
  Choices pick(seed);
  for (int i = 0; i < 20000; ++i) {
    const RouterId from = pick.below(d.routers()), to = pick.below(d.routers());
    Route route;
    std::size_t up = 0;
    d.valiant(from, to, mix64(seed + i), &route, &up);
    std::uint32_t last = 0;
    for (std::size_t hop = 0; hop < route.size(); ++hop) {
      const std::uint32_t rank =
          d.virtual_channel(route, hop, up) * 4 + static_cast<std::uint32_t>(d.colour(route[hop]));
      ASSERT_TRUE(hop == 0 || rank > last) << hop;
      last = rank;
    }
  }
}

TEST(Dragonfly, SizesAndCablesAreThePrintedOnes) {
  EXPECT_EQ(Dragonfly::kCablesPerGroup, 240u);
  EXPECT_EQ(Dragonfly::kMaxGroups, 241u);
  EXPECT_EQ(Dragonfly::kMaxNodes, 92544u);
  EXPECT_EQ(Dragonfly::make({241, 0, 6}).value().nodes(), 92544u);
  EXPECT_EQ(Dragonfly::make({6, 12, 6}).value().cables_used_per_group(), 60u);
  EXPECT_EQ(Dragonfly::make({8, 12, 6}).value().cables_used_per_group(), 84u);
  EXPECT_EQ(Dragonfly::total_cables(12, 6), 180u);
  EXPECT_EQ(Dragonfly::total_cables(12, 8), 336u);
  EXPECT_EQ(Dragonfly::largest_bundle(8), 34u);
  EXPECT_EQ(Dragonfly::largest_bundle(64), 3u);
  EXPECT_EQ(Dragonfly::largest_bundle(241), 1u);
  EXPECT_EQ(Dragonfly::make({64, 0, 6}).value().cables_used_per_group() * 4, 756u);
}

TEST(Dragonfly, RefusesSystemsThatCannotBe) {
  EXPECT_EQ(Dragonfly::make({0, 0, 6}).code(), Errc::invalid_param);
  EXPECT_EQ(Dragonfly::make({242, 0, 6}).code(), Errc::invalid_param);
  EXPECT_EQ(Dragonfly::make({4, 0, 0}).code(), Errc::invalid_param);
  EXPECT_EQ(Dragonfly::make({4, 0, 7}).code(), Errc::invalid_param);
  EXPECT_EQ(Dragonfly::make({8, 35, 6}).code(), Errc::size);
  EXPECT_EQ(Dragonfly::make({241, 0, 1}).code(), Errc::size);
}

}  // namespace
}  // namespace orrery::model
