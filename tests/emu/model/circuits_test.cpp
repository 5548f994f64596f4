// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What circuits of a fat tree wait for in the link state.
#include "emu/model/circuits.hpp"
#include "emu/model/explain.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/quote.hpp"
#include "tests/emu/model/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <vector>

namespace orrery::model {
namespace {

class CircuitsOf : public testing::TestWithParam<LinkState::Kind> {
 protected:
  void SetUp() override {
    built_ = build_machine("asci-q");
    ASSERT_NE(built_.machine, nullptr);
    const std::size_t size = LinkState::bytes_needed(p(), GetParam());
    memory_ = static_cast<std::byte*>(::operator new (size, std::align_val_t{64}));
    state_ = LinkState::create({memory_, size}, p(), GetParam()).value();
  }
  void TearDown() override { ::operator delete (memory_, std::align_val_t{64}); }
  const Pricing& p() const { return built_.machine->pricing; }
  Quote put(NodeId src, NodeId dst, std::uint64_t bytes, Picos now) {
    QuoteRequest r;
    r.op = Op::bte_put;
    r.src = src;
    r.dst = dst;
    r.bytes = bytes;
    r.now = now;
    r.seed = ++seed_;
    return quote(p(), r, &state_);
  }
  // `src` sends full packets to `dst` one after the other, for this long. Returns when it ends.
  Picos stream(NodeId src, NodeId dst, Picos now, Picos time) {
    for (const Picos end = now + time; now < end;) now = put(src, dst, packet(), now).local_event_at;
    return now;
  }
  Picos out() const { return p().ops[static_cast<std::size_t>(Op::bte_put)].out; }
  std::uint64_t packet() const { return p().packet.payload; }

  BuiltMachine built_;
  std::byte* memory_ = nullptr;
  LinkState state_;
  std::uint64_t seed_ = test_seed();
};

// Nodes 0 and 16 climb by the same digit and come down to the switch of nodes 200 to 203 by the same link;
// node 17 climbs by another one.
constexpr NodeId kOne = 0, kBeside = 16, kElsewhere = 17, kTarget = 200, kNextToIt = 201, kThird = 202;

TEST_P(CircuitsOf, OneSourceMeetsNobodysCircuits) {
  Choices pick(test_seed());
  Picos now;
  for (int i = 0; i < 500; ++i) {
    const Quote q = put(kOne, 1 + pick.below(p().nodes - 1), packet() * (1 + pick.below(3)), now);
    // Of a decayed state the receive side knows not whose load it is.
    ASSERT_LE(q.waited, GetParam() == LinkState::Kind::exact ? Picos{} : 200_ns);
    now = q.local_event_at;
  }
}

TEST_P(CircuitsOf, WaitForThoseThatComeDownTheSameLink) {
  const Picos now = stream(kBeside, kNextToIt, {}, 100_us);
  EXPECT_EQ(put(kElsewhere, kThird, packet(), now).waited, Picos{});
  // In a decayed state one of the links of the way is looked at, drawn by the seed.
  Picos most;
  for (int i = 0; i < 20; ++i) most = std::max(most, put(kOne, kTarget, packet(), now + 100_us * i).waited);
  const Picos data = p().shared_link[0][0](packet());
  EXPECT_GT(most, data / 20);
}

// What others carry, however little it has itself.
TEST_P(CircuitsOf, OfShortMessagesWaitAsLong) {
  Picos now;
  for (const std::uint64_t bytes : {0, 8}) {
    now = stream(kBeside, kNextToIt, now + 10000_us, 100_us);
    EXPECT_EQ(put(kElsewhere, kThird, bytes, now).waited, Picos{});
    Picos most;
    for (int i = 0; i < 20; ++i) most = std::max(most, put(kOne, kTarget, bytes, now + 100_us * i).waited);
    EXPECT_GT(most, p().shared_link[0][0](packet()) / 20) << bytes;
    // Where one link stands for all three of a way, that load is three links'.
    EXPECT_LT(most, p().shared_link[0][0](packet()) * 3) << bytes;
  }
}

TEST_P(CircuitsOf, WaitNoLongerThanHalfAPacketForData) {
  Picos now;
  for (int i = 0; i < 1000; ++i) {
    now += 100_ns;
    put(kBeside, kNextToIt, packet(), now);
    put(kBeside + 16, kThird, packet(), now);
  }
  CircuitWay way(p(), kOne, kTarget, state_.circuits(), true, 0);
  const std::int64_t data = 1'000'000;
  const CircuitWay::Waits w = way.waits(now.count(), data, 2 * data);
  EXPECT_GT(w.data, data / 10);
  EXPECT_LE(w.data, data / 2);
  EXPECT_GT(w.channels, 0);
}

TEST_P(CircuitsOf, CountAsTimePassesHoweverManyAreAskedForAtOnce) {
  for (int i = 0; i < 1000; ++i) put(kBeside, kNextToIt, packet(), {});
  // What may be counted in advance, four half-lives, is all but forgotten after eight more.
  const std::int64_t later = 12 * kHalfLife.count(), data = 1'000'000;
  CircuitWay way(p(), kOne, kTarget, state_.circuits(), true, 0);
  EXPECT_LT(way.waits(later, data, 2 * data).data, data / 50);
}

TEST_P(CircuitsOf, HoldTheirSourceForARoundTripEach) {
  const Picos round_trip = p().tree_latency[FatTree::nca_level(kOne, kTarget) + 1] * 2;
  const Picos one_way = p().tree_latency[FatTree::nca_level(kOne, kTarget) + 1];
  const Picos sooner = put(kOne, kTarget, 8, 1_us).data_at, later = put(kOne, kTarget, 8, 1_us).data_at;
  EXPECT_EQ(later - sooner, out() + one_way + round_trip);
  // Three packets of one message: the last tail comes two circuits after the first.
  const Quote three = put(kBeside, kNextToIt, 3 * packet(), 100_us);
  const Quote one = put(kBeside, kNextToIt, packet(), 200_us);
  const Picos stands =
      std::max(round_trip, p().ops[static_cast<std::size_t>(Op::bte_put)].host_lone(packet()));
  EXPECT_NEAR(((three.data_at - 100_us) - (one.data_at - 200_us)).count(), 2 * stands.count(), 4);
}

// One packet goes at its host's pace however long the round trip is, several at the round trips'.
TEST_P(CircuitsOf, AreExplainedByWhatHoldsThemUp) {
  QuoteRequest r;
  r.op = Op::bte_put;
  r.dst = p().nodes - 1;
  r.bytes = 8;
  EXPECT_EQ(explain(*built_.machine, r).streams_at, "host interface");
  r.bytes = 8 * packet();
  EXPECT_EQ(explain(*built_.machine, r).streams_at, "network path");
}

// Its own circuits follow each other, so those asked for at once do not queue at the receiver as well.
TEST_P(CircuitsOf, ABacklogOfOneSourceDoesNotLoadItsReceiver) {
  const Picos each = out() + p().tree_latency[FatTree::nca_level(kOne, kTarget) + 1] +
                     std::max(p().ops[static_cast<std::size_t>(Op::bte_put)].host_lone(packet()),
                              p().tree_latency[FatTree::nca_level(kOne, kTarget) + 1] * 2);
  const Picos first = put(kOne, kTarget, packet(), 1_us).data_at;
  Picos last;
  for (int i = 0; i < 100; ++i) last = put(kOne, kTarget, packet(), 1_us).data_at;
  EXPECT_EQ(last - first, each * 100);
}

// The links that are looked at are those that the tree's one way down names.
TEST_P(CircuitsOf, LookAtTheLinksOfTheirWayDown) {
  Choices pick(test_seed());
  const FatTree& tree = p().tree;
  for (int i = 0; i < 1000; ++i) {
    const NodeId src = pick.below(p().nodes), dst = pick.below(p().nodes);
    if (src == dst) continue;
    const std::uint32_t top = FatTree::nca_level(src, dst);
    std::uint32_t index = src / FatTree::kArity;
    for (std::uint32_t level = 0; level < top; ++level)
      index = tree.up_from(level, index, src >> (2 * level) & 3);
    Route down;
    tree.descend(top, index, dst, &down);
    const CircuitWay way(p(), src, dst, state_.circuits(), true, 0);
    ASSERT_EQ(way.cells().size(), top);
    for (const CircuitCell* cell : way.cells()) {
      const auto at = static_cast<std::uint32_t>(cell - state_.circuits());
      const LinkId link = tree.down_link(1 + at / p().nodes, at % p().nodes);
      ASSERT_NE(std::find(down.begin(), down.end(), link), down.end()) << src << " " << dst;
    }
    const CircuitWay drawn(p(), src, dst, state_.circuits(), false, pick.below(1u << 31));
    ASSERT_EQ(drawn.cells().size(), top == 0 ? 0u : 1u);
    for (const CircuitCell* cell : drawn.cells())
      ASSERT_NE(std::find(way.cells().begin(), way.cells().end(), cell), way.cells().end());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CircuitsOf, testing::Values(LinkState::Kind::exact, LinkState::Kind::decayed),
                         [](const auto& kind) {
                           return kind.param == LinkState::Kind::exact ? "exact" : "decayed";
                         });

}  // namespace
}  // namespace orrery::model
