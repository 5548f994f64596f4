// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/engine/calendar.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

namespace orrery::sim {
namespace {

std::vector<std::uint32_t> take(Calendar& calendar, Tick at) {
  std::vector<std::uint32_t> nodes, ahead, soon;
  calendar.take(
      at, [&](const Event& e) { nodes.push_back(e.node()); },
      [&](const Event& e) { ahead.push_back(e.node()); }, [&](const Event& e) { soon.push_back(e.node()); });
  // Each was announced, twice.
  EXPECT_EQ(soon, nodes);
  EXPECT_EQ(ahead, nodes);
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

TEST(Calendar, GivesBackEveryEventAtItsTickNearAndBeyondTheHorizon) {
  const char* given = std::getenv("ORRERY_TEST_SEED");
  const std::uint64_t seed = given ? std::strtoull(given, nullptr, 0) : 20261121;
  SCOPED_TRACE(seed);
  Random random(seed);
  Calendar calendar(8);
  std::map<Tick, std::vector<std::uint32_t>> model;
  Tick now = 0;
  std::uint32_t id = 0;
  for (int step = 0; step < 20000; ++step) {
    for (std::uint32_t n = random.below(4); n > 0; --n) {
      // Most within the horizon of 256 ticks, some exactly at its edge, some far beyond.
      const Tick at = now + 1 + (random.below(8) == 0 ? random.below(5000) : random.below(256));
      calendar.push(at, {id, 0, 0, 0, 0});
      model[at].push_back(id++);
    }
    if (model.empty()) continue;
    ASSERT_EQ(calendar.next(), model.begin()->first);
    now = calendar.next();
    ASSERT_EQ(take(calendar, now), model.begin()->second);
    model.erase(model.begin());
  }
}

TEST(Calendar, IsEmptyOnlyWhenNothingIsLeft) {
  Calendar calendar(8);
  EXPECT_TRUE(calendar.empty());
  EXPECT_EQ(calendar.next(), kNever);
  calendar.push(100000, {7, 0, 0, 0, 0});
  EXPECT_FALSE(calendar.empty());
  EXPECT_EQ(calendar.next(), 100000u);
  EXPECT_EQ(take(calendar, 100000), (std::vector<std::uint32_t>{7}));
  EXPECT_TRUE(calendar.empty());
}

TEST(Calendar, AnnouncesEveryEventOfATickWithMoreThanOneChunkHolds) {
  Calendar calendar(8);
  std::vector<std::uint32_t> all;
  for (std::uint32_t node = 0; node < 100; ++node) {
    calendar.push(3, {node, 0, 0, 0, 0});
    all.push_back(node);
  }
  EXPECT_EQ(take(calendar, 3), all);
  EXPECT_TRUE(calendar.empty());
}

TEST(Calendar, TakesEventsThatVisitingAddsToLaterTicks) {
  Calendar calendar(8);
  calendar.push(1, {1, 0, 0, 0, 0});
  calendar.take(
      1,
      [&](const Event& e) {
        calendar.push(1 + 255, {e.node() + 1, 0, 0, 0, 0});
      },
      [](const Event&) {}, [](const Event&) {});
  EXPECT_EQ(calendar.next(), 256u);
  EXPECT_EQ(take(calendar, 256), (std::vector<std::uint32_t>{2}));
}

}  // namespace
}  // namespace orrery::sim
