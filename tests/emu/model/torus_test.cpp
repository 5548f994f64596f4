// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/torus.hpp"

#include "tests/emu/model/seed.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <vector>

namespace orrery::model {
namespace {

Torus torus(const TorusShape& shape) {
  const auto t = Torus::make(shape);
  EXPECT_TRUE(t.ok());
  return t.value();
}

TorusShape opened(TorusShape shape, bool x, bool y, bool z) {
  shape.closed = {x, y, z};
  return shape;
}

std::vector<TorusShape> many_shapes() {
  std::vector<TorusShape> shapes = {plain_torus_shape(1, 1, 1),
                                    plain_torus_shape(2, 2, 2),
                                    plain_torus_shape(4, 4, 2),
                                    plain_torus_shape(8, 8, 1),
                                    plain_torus_shape(5, 7, 3),
                                    plain_torus_shape(8, 8, 8),
                                    plain_torus_shape(32, 16, 16),
                                    gemini_shape_of(1, 4, 8),
                                    gemini_shape_of(3, 4, 8, false),
                                    gemini_shape_of(10, 16, 24),
                                    gemini_shape_of(25, 32, 24),
                                    opened(plain_torus_shape(27, 16, 24), false, false, true),
                                    opened(plain_torus_shape(3, 1, 5), false, true, false)};
  for (int system_class = 0; system_class <= 3; ++system_class) {
    const auto g = gemini_shape(system_class, 3, system_class == 2 ? 2 : 1, system_class % 2 == 0);
    EXPECT_TRUE(g.ok());
    shapes.push_back(g.value());
    shapes.push_back(seastar_shape(system_class, 3, system_class == 2 ? 2 : 1).value());
  }
  return shapes;
}

TEST(Torus, CoordinatesRoundTripForEveryNodeOfEverySize) {
  for (const TorusShape& shape : many_shapes()) {
    const Torus t = torus(shape);
    ASSERT_EQ(t.nodes(), shape.nodes[0] * shape.nodes[1] * shape.nodes[2]);
    for (NodeId n = 0; n < t.nodes(); ++n) {
      const Coordinates c = t.coordinates(n);
      ASSERT_EQ(t.node_at(c), n);
      const Coordinates r = t.router_coordinates(t.router_of(n));
      ASSERT_EQ(r.at[0], c.at[0]);
      ASSERT_EQ(r.at[1], c.at[1] / shape.nodes_per_router);
      ASSERT_EQ(r.at[2], c.at[2]);
      ASSERT_EQ(t.router_at(r), t.router_of(n));
      ASSERT_EQ(t.nic_of(n), c.at[1] % shape.nodes_per_router);
    }
  }
}

TEST(Torus, CoordinatesRoundTripForEveryNodeOfEveryClassUpToTwelveCabinets) {
  for (int system_class = 0; system_class <= 3; ++system_class) {
    for (std::uint32_t cabinets = 1; cabinets <= 12; ++cabinets) {
      for (std::uint32_t rows = 1; rows <= 4; ++rows) {
        for (const auto& shape :
             {gemini_shape(system_class, cabinets, rows), seastar_shape(system_class, cabinets, rows)}) {
          if (!shape.ok()) continue;  // the class has no so many rows
          const Torus t = torus(shape.value());
          for (NodeId n = 0; n < t.nodes(); ++n) {
            const Coordinates c = t.coordinates(n);
            if (t.node_at(c) != n || t.router_at(t.router_coordinates(t.router_of(n))) != t.router_of(n)) {
              FAIL() << "class " << system_class << ", " << cabinets << " x " << rows << ", node " << n;
            }
          }
        }
      }
    }
  }
}

TEST(Torus, EveryLinkHasAReverseAndJoinsNeighbours) {
  for (const TorusShape& shape : many_shapes()) {
    const Torus t = torus(shape);
    for (LinkId link = 0; link < t.link_slots(); ++link) {
      if (!t.has_link(link)) continue;
      const LinkEnds ends = t.ends(link);
      ASSERT_NE(ends.from, ends.to);
      ASSERT_EQ(t.distance(ends.from, ends.to), 1u);
      const Direction d = t.direction_of(link);
      const std::uint32_t k = t.parallel_index(link);
      ASSERT_EQ(t.link(ends.from, d, k), link);
      const LinkId back = t.link(ends.to, opposite(d), k);
      ASSERT_TRUE(t.has_link(back));
      ASSERT_EQ(t.ends(back), (LinkEnds{ends.to, ends.from}));
    }
  }
}

TEST(Torus, EveryRouteIsMinimalConnectedLegalAndOrdered) {
  const std::uint64_t seed = test_seed();
  Choices pick(seed);
  for (const TorusShape& shape : many_shapes()) {
    const Torus t = torus(shape);
    for (int i = 0; i < 2000; ++i) {
      const NodeId src = pick.below(t.nodes()), dst = pick.below(t.nodes());
      const TorusChoice choice{i % 2 == 0 ? TorusOrder::direction : TorusOrder::dimension, mix64(seed + i)};
      const Route route = t.route(src, dst, choice);
      ASSERT_EQ(route.size(), t.distance(t.router_of(src), t.router_of(dst)));
      ASSERT_LE(route.size(), t.diameter());
      RouterId at = t.router_of(src);
      int last = -1;
      for (LinkId link : route) {
        ASSERT_TRUE(t.has_link(link));
        ASSERT_EQ(t.ends(link).from, at);
        at = t.ends(link).to;
        const Direction d = t.direction_of(link);
        const int rank = choice.order == TorusOrder::direction ? static_cast<int>(d) : dimension_of(d);
        ASSERT_GE(rank, last);
        last = rank;
      }
      ASSERT_EQ(at, t.router_of(dst));
    }
  }
}

TEST(Torus, DistanceIsTheShortestByBreadthFirstSearch) {
  for (const TorusShape& shape :
       {plain_torus_shape(5, 4, 3), opened(plain_torus_shape(5, 4, 3), false, true, false),
        gemini_shape_of(4, 8, 3, false)}) {
    const Torus t = torus(shape);
    for (RouterId from = 0; from < t.routers(); ++from) {
      std::vector<std::uint32_t> hops(t.routers(), ~0u);
      std::vector<RouterId> frontier{from};
      hops[from] = 0;
      for (std::size_t head = 0; head < frontier.size(); ++head) {
        for (std::uint32_t p = 0; p < t.links_per_router(); ++p) {
          const LinkId link = frontier[head] * t.links_per_router() + p;
          if (!t.has_link(link)) continue;
          const RouterId to = t.ends(link).to;
          if (hops[to] == ~0u) {
            hops[to] = hops[frontier[head]] + 1;
            frontier.push_back(to);
          }
        }
      }
      for (RouterId to = 0; to < t.routers(); ++to) ASSERT_EQ(t.distance(from, to), hops[to]);
    }
  }
}

TEST(Torus, ATieHalfWayRoundGoesEitherWayByTheSeed) {
  const Torus t = torus(plain_torus_shape(8, 8, 8));
  const RouterId to = t.router_at({{4, 0, 0}});
  EXPECT_EQ(t.steps(0, to, 0)[0], 4);
  EXPECT_EQ(t.steps(0, to, 1)[0], -4);
}

TEST(Torus, HintBitsClearOnLeavingTowardsTheFinalCoordinate) {
  const std::uint64_t seed = test_seed();
  const Torus t = torus(plain_torus_shape(8, 4, 6));
  Choices pick(seed);
  for (int i = 0; i < 2000; ++i) {
    const RouterId src = pick.below(t.routers()), dst = pick.below(t.routers());
    HintBits hints = t.hints(src, dst, mix64(seed + i));
    RouterId at = src;
    std::uint32_t moves = 0;
    while (!hints.arrived()) {
      Direction d = static_cast<Direction>(pick.below(kDirections));
      if (!hints.has(d)) continue;
      ASSERT_FALSE(hints.has(opposite(d)));
      at = t.neighbour(at, d);
      hints = t.hints_after(hints, at, d, dst);
      ++moves;
    }
    ASSERT_EQ(at, dst);
    ASSERT_EQ(moves, t.distance(src, dst));
  }
}

TEST(GeminiTorus, HasTenTorusLinksOfFourTilesARouter) {
  const Torus t = torus(gemini_shape_of(10, 16, 24));
  EXPECT_EQ(t.links_per_router(), 40u);
  EXPECT_EQ(t.parallel(Direction::x_plus), 8u);
  EXPECT_EQ(t.parallel(Direction::y_minus), 4u);
  EXPECT_EQ(t.parallel(Direction::z_plus), 8u);
  EXPECT_EQ(t.routers(), 1920u);
}

TEST(GeminiTorus, FortyCabinetExampleHasThePrintedBisection) {
  const auto shape = gemini_shape(3, 10, 4);
  ASSERT_TRUE(shape.ok());
  const Torus t = torus(shape.value());
  EXPECT_EQ(t.nodes(), 3840u);
  EXPECT_EQ(t.bisection_links(2), 320u);
  EXPECT_EQ(t.bisection_links(1), 480u);
  EXPECT_EQ(t.bisection_links(0), 768u);
  EXPECT_EQ(t.smallest_bisection_links(), 320u);
  EXPECT_FALSE(gemini_class_covers(3, 40));
}

TEST(GeminiTorus, AnOpenYHalvesItsBisection) {
  const Torus t = torus(gemini_shape_of(10, 16, 24, false));
  EXPECT_EQ(t.bisection_links(1), 240u);
  EXPECT_EQ(t.bisection_links(2), 320u);
}

// Count, by walking every link of one chassis in a large torus, the torus links that leave it.
TEST(GeminiTorus, EightyEightCabledLinksLeaveAChassis) {
  const Torus t = torus(gemini_shape_of(6, 16, 24));
  std::uint32_t leaving = 0;
  const auto inside = [&](RouterId r) {
    const Coordinates c = t.router_coordinates(r);
    return c.at[0] == 2 && c.at[1] < 2 && c.at[2] < 8;
  };
  for (LinkId link = 0; link < t.link_slots(); ++link) {
    const LinkEnds ends = t.ends(link);
    if (inside(ends.from) && !inside(ends.to) && t.parallel_index(link) % 4 == 0) ++leaving;
  }
  EXPECT_EQ(leaving, 88u);
  EXPECT_EQ(gemini_cabled_links_per_chassis(), 88u);
}

TEST(GeminiTorus, ClassesGiveThePrintedGeometry) {
  using Dims = std::array<std::uint32_t, 3>;
  EXPECT_EQ(gemini_shape(0, 2, 1).value().nodes, (Dims{6, 4, 8}));
  EXPECT_EQ(gemini_shape(1, 9, 1).value().nodes, (Dims{9, 12, 8}));
  EXPECT_EQ(gemini_shape(2, 12, 2).value().nodes, (Dims{12, 12, 16}));
  EXPECT_EQ(gemini_shape(3, 25, 8).value().nodes, (Dims{25, 32, 24}));
  EXPECT_FALSE(gemini_shape(4, 1, 1).ok());
  EXPECT_FALSE(gemini_shape(1, 4, 2).ok());
  EXPECT_FALSE(gemini_shape(2, 4, 1).ok());
  EXPECT_FALSE(gemini_shape(3, 0, 1).ok());
}

TEST(Torus, RefusesShapesThatCannotBe) {
  EXPECT_EQ(Torus::make(plain_torus_shape(0, 4, 4)).code(), Errc::invalid_param);
  EXPECT_EQ(Torus::make(gemini_shape_of(4, 3, 4)).code(), Errc::invalid_param);
  EXPECT_EQ(Torus::make(plain_torus_shape(256, 4, 4)).code(), Errc::size);
  EXPECT_EQ(Torus::make(plain_torus_shape(4096, 4096, 4096)).code(), Errc::size);
  TorusShape none = plain_torus_shape(4, 4, 4);
  none.torus_links[1] = 0;
  EXPECT_EQ(Torus::make(none).code(), Errc::invalid_param);
}

TEST(BlueGeneTorus, SixtyFourThousandNodesAreSixtyFourHopsAcross) {
  const Torus t = torus(plain_torus_shape(64, 32, 32));
  EXPECT_EQ(t.nodes(), 65536u);
  EXPECT_EQ(t.diameter(), 64u);
}

}  // namespace
}  // namespace orrery::model
