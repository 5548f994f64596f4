// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/routing.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace orrery::model {
namespace {

TEST(Routing, DeliveryModeBitsMapToTheMoreOrderedMode) {
  EXPECT_EQ(routing_of_delivery_mode(0), Routing::adaptive_0);
  EXPECT_EQ(routing_of_delivery_mode(1), Routing::hashed_minimal);
  EXPECT_EQ(routing_of_delivery_mode(2), Routing::adaptive_0);
  EXPECT_EQ(routing_of_delivery_mode(3), Routing::in_order);
  EXPECT_EQ(routing_of_delivery_mode(8), Routing::hashed_non_minimal);
  EXPECT_EQ(routing_of_delivery_mode(0x10), Routing::hashed_minimal);
  EXPECT_EQ(routing_of_delivery_mode(0x20), Routing::adaptive_1);
  EXPECT_EQ(routing_of_delivery_mode(0x40), Routing::adaptive_2);
  EXPECT_EQ(routing_of_delivery_mode(0x80), Routing::adaptive_3);
  EXPECT_EQ(routing_of_delivery_mode(3 | 0x80), Routing::in_order);
  for (const RoutingWord& word : routing_words()) {
    EXPECT_TRUE(word.value < 0 ||
                routing_of_delivery_mode(static_cast<std::uint16_t>(word.value)) == word.routing)
        << word.word;
  }
}

TEST(Routing, InOrderKeepsOrderOnEveryNetwork) {
  for (int n = 0; n <= static_cast<int>(Network::crossbar); ++n) {
    EXPECT_TRUE(keeps_order(static_cast<Network>(n), Routing::in_order));
    for (int r = 0; r < kRoutings; ++r) {
      EXPECT_NE(routing_effect(static_cast<Network>(n), static_cast<Routing>(r)), "?");
    }
  }
}

}  // namespace
}  // namespace orrery::model
