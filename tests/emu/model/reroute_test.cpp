// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/reroute.hpp"

#include "tests/emu/model/seed.hpp"

#include <gtest/gtest.h>

namespace orrery::model {
namespace {

template <typename Topology>
void expect_walk(const Topology& t, const FailedLinks& failed, const Route& route, RouterId from,
                 RouterId to) {
  RouterId at = from;
  for (LinkId link : route) {
    ASSERT_TRUE(t.has_link(link));
    ASSERT_FALSE(failed.contains(link));
    ASSERT_EQ(t.ends(link).from, at);
    at = t.ends(link).to;
  }
  ASSERT_EQ(at, to);
}

TEST(Reroute, ALostTileLinkIsMaskedByItsParallelsWithoutNewTables) {
  const Torus t = Torus::make(gemini_shape_of(4, 8, 8)).value();
  FailedLinks failed(t.link_slots());
  for (std::uint32_t k = 0; k < 7; ++k) failed.fail(t.link(0, Direction::x_plus, k));
  const auto detour = route_around(t, failed, 0, 1, {});
  ASSERT_TRUE(detour.ok());
  EXPECT_FALSE(detour.value().quiesced);
  ASSERT_EQ(detour.value().route.size(), 1u);
  EXPECT_EQ(detour.value().route[0], t.link(0, Direction::x_plus, 7));
  failed.fail(t.link(0, Direction::x_plus, 7));
  const auto around = route_around(t, failed, 0, 1, {});
  ASSERT_TRUE(around.ok());
  EXPECT_TRUE(around.value().quiesced);
  EXPECT_GT(around.value().route.size(), 1u);
}

TEST(Reroute, RandomLossesAreAvoidedOnEveryTopology) {
  const std::uint64_t seed = test_seed();
  Choices pick(seed);
  const Torus torus = Torus::make(plain_torus_shape(6, 5, 4)).value();
  const Dragonfly fly = Dragonfly::make({4, 2, 2}).value();
  const FatTree tree = FatTree::make(4).value();
  FailedLinks a(torus.link_slots()), b(fly.link_slots()), c(tree.link_slots());
  for (LinkId i = 0; i < torus.link_slots() / 8; ++i) a.fail(pick.below(torus.link_slots()));
  for (LinkId i = 0; i < fly.link_slots() / 8; ++i) b.fail(pick.below(fly.link_slots()));
  for (LinkId i = 0; i < tree.link_slots() / 20; ++i) c.fail(pick.below(tree.link_slots()));
  int reached = 0;
  for (int i = 0; i < 1000; ++i) {
    const NodeId s = pick.below(torus.nodes()), d = pick.below(torus.nodes());
    if (const auto r = route_around(torus, a, s, d, {TorusOrder::direction, mix64(i)}); r.ok()) {
      ++reached;
      expect_walk(torus, a, r.value().route, torus.router_of(s), torus.router_of(d));
    }
    const NodeId fs = pick.below(fly.nodes()), fd = pick.below(fly.nodes());
    if (const auto r = route_around(fly, b, fs, fd, mix64(i)); r.ok()) {
      ++reached;
      expect_walk(fly, b, r.value().route, fly.router_of(fs), fly.router_of(fd));
    }
    const NodeId ts = pick.below(tree.nodes()), td = pick.below(tree.nodes());
    if (const auto r = route_around(tree, c, ts, td, mix64(i)); r.ok() && ts != td) {
      ++reached;
      expect_walk(tree, c, r.value().route, tree.vertex_of(ts), tree.vertex_of(td));
      bool down = false;
      for (LinkId link : r.value().route) {
        ASSERT_FALSE(down && tree.is_up(link));
        down = !tree.is_up(link);
      }
    }
  }
  EXPECT_GT(reached, 2500);
}

TEST(Reroute, ACutOffNodeIsUnreachable) {
  const Torus t = Torus::make(plain_torus_shape(4, 4, 4)).value();
  FailedLinks failed(t.link_slots());
  for (int d = 0; d < kDirections; ++d) failed.fail(t.link(5, static_cast<Direction>(d)));
  EXPECT_EQ(route_around(t, failed, 5, 6, {}).code(), Errc::unreachable);
  EXPECT_TRUE(route_around(t, failed, 6, 5, {}).ok());
  const FatTree tree = FatTree::make(2).value();
  FailedLinks cut(tree.link_slots());
  cut.fail(tree.down_link(0, 3));
  EXPECT_EQ(route_around(tree, cut, 0, 3, 1).code(), Errc::unreachable);
}

}  // namespace
}  // namespace orrery::model
