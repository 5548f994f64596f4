// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/collective/collective_engine.hpp"

#include "emu/base/asymmetric_fence.hpp"
#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace orrery::nic {
namespace {

constexpr std::uint8_t kAdd = 0x15;  // IADD

// One PE: its engine, and the leaf through which it joins the VCE of a.
struct Pe {
  Pe(parts::Node& of, std::uint32_t child)
      : node(of),
        engine({of.host, of.pending, of.host.self().slot, of.peers, of.ports, of.transport, of.regions,
                of.moves, nullptr, false}),
        key(of.expose(result.data(), sizeof result)) {
    edge.set = true;
    edge.nic_address = 0;
    edge.child = child;
  }
  Errc join(std::uint64_t reduction, std::uint64_t value) {
    return engine.join(*node.port, edge,
                       {.value = {.operand = {value, 0}, .reduction = reduction, .command = kAdd},
                        .result = result.data(),
                        .key = key});
  }
  bool done() const { return ce_result::there(result[0]); }
  parts::Node& node;
  CollectiveEngine engine;
  CeEdge edge;
  std::array<std::uint64_t, 3> result{};
  MemKey key;
};

struct TwoPes : ::testing::Test {
  parts::Pair pair;
  Pe a{pair.a, 0};
  Pe b{pair.b, 1};
  std::uint32_t vce = 0;

  TwoPes() { (void)asymmetric_fence::enrol(); }
  void SetUp() override {
    vce = a.engine.create(*pair.a.port).value();
    a.edge.id = b.edge.id = ce_id(0, vce);
    CeEdge leaves[2];
    std::vector<const CeEdge*> children;
    for (std::uint32_t i = 0; i < 2; ++i) {
      leaves[i].set = true;
      leaves[i].nic_address = i;
      leaves[i].id = UINT32_MAX;
      leaves[i].child = i;
      children.push_back(&leaves[i]);
    }
    ASSERT_EQ(a.engine.configure(vce, children, nullptr, nullptr, 0), Errc::ok);
    a.engine.attach(*pair.a.port, a.edge);
    b.engine.attach(*pair.b.port, b.edge);
  }
  void look() {
    for (int i = 0; i < 3; ++i) {
      a.engine.progress();
      (void)a.engine.serve();
      b.engine.progress();
      (void)b.engine.serve();
    }
  }
};

TEST_F(TwoPes, EachGetsTheSum) {
  EXPECT_FALSE(a.engine.active());
  EXPECT_TRUE(pair.a.pending.is_quiet());
  ASSERT_EQ(a.join(1, 40), Errc::ok);
  EXPECT_TRUE(a.engine.active());
  EXPECT_FALSE(pair.a.pending.is_quiet()) << "polls move it";
  EXPECT_FALSE(pair.a.pending.holds_operations());
  look();
  EXPECT_FALSE(a.done());
  ASSERT_EQ(b.join(1, 2), Errc::ok);
  look();
  ASSERT_TRUE(a.done() && b.done());
  EXPECT_EQ(a.result[1], 42u);
  EXPECT_EQ(b.result[1], 42u);
}

TEST_F(TwoPes, WhatIsUnderWayAtAVceThatGoesEndsUnexpectedly) {
  ASSERT_EQ(a.join(1, 1), Errc::ok);
  a.engine.destroy(vce);
  look();
  ASSERT_TRUE(a.done());
  EXPECT_EQ(static_cast<CeStatus>(ce_result::status(a.result[0])), CeStatus::unexpected);
}

TEST_F(TwoPes, TheDeathOfAPeEndsWhatWaitsForIt) {
  ASSERT_EQ(a.join(1, 1), Errc::ok);
  pair.b.host.lives = false;
  a.engine.peer_died(pair.b.host.self());
  look();
  ASSERT_TRUE(a.done());
  EXPECT_NE(static_cast<CeStatus>(ce_result::status(a.result[0])), CeStatus::ok);
}

TEST_F(TwoPes, APortThatClosesIsToldNothingMore) {
  ASSERT_EQ(b.join(1, 1), Errc::ok);
  b.engine.forget(*pair.b.port);
  ASSERT_EQ(a.join(1, 1), Errc::ok);
  look();
  EXPECT_TRUE(a.done());
  EXPECT_FALSE(b.done());
}

TEST_F(TwoPes, RoomThatIsKeptIsNotRefusedLater) {
  ASSERT_TRUE(b.engine.reserve(b.edge, 1));
  EXPECT_FALSE(b.engine.reserve(b.edge, 1)) << "one in a lane";
  b.engine.arrived(b.edge, 1);
  EXPECT_TRUE(b.engine.reserve(b.edge, 1));
  b.engine.arrived(b.edge, 1);
}

TEST_F(TwoPes, AVceIsForChildrenWithNumbersOfTheirOwn) {
  CeEdge one;
  one.set = true;
  one.id = UINT32_MAX;
  const std::vector<const CeEdge*> twice{&one, &one};
  EXPECT_EQ(a.engine.configure(vce, {}, nullptr, nullptr, 0), Errc::invalid_param);
  EXPECT_EQ(a.engine.configure(vce, twice, nullptr, nullptr, 0), Errc::invalid_param);
}

}  // namespace
}  // namespace orrery::nic
