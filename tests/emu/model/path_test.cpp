// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/path.hpp"

#include "emu/model/explain.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/quote.hpp"
#include "tests/emu/model/seed.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace orrery::model {
namespace {

// A machine and a link state of it.
class Loaded {
 public:
  Loaded(const std::string& name, LinkState::Kind kind)
      : built_(build_machine(name)),
        size_(LinkState::bytes_needed(pricing(), kind)),
        block_(new std::byte[size_ + 64]) {
    state_ = LinkState::create(memory(), pricing(), kind).value();
  }
  const Pricing& pricing() const { return built_.machine->pricing; }
  LinkState* state() { return &state_; }
  std::span<std::byte> memory() {
    const auto at = (reinterpret_cast<std::uintptr_t>(block_.get()) + 63) / 64 * 64;
    return {reinterpret_cast<std::byte*>(at), size_};
  }
  void copy_to(Loaded* other) { std::memcpy(other->memory().data(), memory().data(), size_); }
  Quote send(NodeId src, NodeId dst, std::uint64_t bytes, Routing routing, Picos now = {},
             std::uint64_t seed = 0) {
    return quote(pricing(),
                 {.op = Op::bte_put,
                  .routing = routing,
                  .src = src,
                  .dst = dst,
                  .bytes = bytes,
                  .now = now,
                  .seed = seed},
                 &state_);
  }

 private:
  BuiltMachine built_;
  std::size_t size_;
  std::unique_ptr<std::byte[]> block_;
  LinkState state_;
};

// Nodes of the dragonfly: router (chassis, slot) of group 0, NIC.
NodeId node(std::uint32_t chassis, std::uint32_t slot, std::uint32_t nic = 0) {
  return (chassis * Dragonfly::kSlots + slot) * Dragonfly::kNics + nic;
}

// The number of the counter of a decayed state that a stretch counts in.
std::uint32_t counter_of(const Stretch& stretch, const LinkState& state) {
  return static_cast<std::uint32_t>((stretch.cell - state.counters()) / sizeof(CounterCell));
}

constexpr std::uint64_t kBulk = 1 << 20;  // 280 us on one green or black link

TEST(Path, TheStretchesOfAnOrderedModeAreTheLinksOfItsRoute) {
  Loaded exact("aries", LinkState::Kind::exact), decayed("aries", LinkState::Kind::decayed);
  const Pricing& p = exact.pricing();
  const Dragonfly& d = p.dragonfly;
  const std::uint32_t bundles = d.groups() * d.groups();
  Choices pick(test_seed());
  for (int i = 0; i < 5000; ++i) {
    for (const Routing routing : {Routing::in_order, Routing::hashed_minimal, Routing::hashed_non_minimal}) {
      const QuoteRequest r{.routing = routing,
                           .src = pick.below(p.nodes),
                           .dst = pick.below(p.nodes),
                           .seed = pick.below(1000)};
      const Route route = route_of(p, r);
      Path a, b;
      find_path(p, routing, r.seed, r.src, r.dst, exact.state(), &a);
      find_path(p, routing, r.seed, r.src, r.dst, decayed.state(), &b);
      ASSERT_EQ(a.hops, route.size());
      ASSERT_EQ(a.stretches, route.size());
      ASSERT_EQ(b.stretches, route.size());
      for (std::uint32_t hop = 0; hop < route.size(); ++hop) {
        const LinkEnds ends = d.ends(route[hop]);
        const std::uint32_t port = route[hop] % Dragonfly::kPorts;
        if (port < Dragonfly::kLocal) {
          ASSERT_EQ(a.at[hop].kind, Stretch::router);
          ASSERT_EQ(part_of(a.at[hop], *exact.state()).line, ends.from);
          ASSERT_EQ(part_of(a.at[hop], *exact.state()).first, port);
          ASSERT_EQ(counter_of(b.at[hop], *decayed.state()),
                    bundles + d.routers() + ends.from * Dragonfly::kLocal + port);
        } else {
          const std::uint32_t bundle = d.group_of_router(ends.from) * d.groups() + d.group_of_router(ends.to);
          ASSERT_EQ(a.at[hop].kind, Stretch::bundle);
          ASSERT_EQ(exact.state()->bundle_at(a.at[hop].cell), bundle);
          ASSERT_EQ(counter_of(b.at[hop], *decayed.state()), bundle);
        }
      }
    }
  }
}

// Each link of a line has a number of its own, so what two routes have in common is what their stretches
// have.
TEST(Path, TheStretchesOfATorusAreTheLinksOfItsRoute) {
  for (const char* name : {"gemini", "seastar", "bluegene-l"}) {
    Loaded machine(name, LinkState::Kind::exact), counting(name, LinkState::Kind::decayed);
    const Pricing& p = machine.pricing();
    Choices pick(test_seed());
    std::map<std::pair<RouterId, int>, std::uint32_t> numbers;  // of the links from a router in a direction
    std::set<std::uint32_t> taken;
    for (int i = 0; i < 5000; ++i) {
      const Routing routing = i % 2 == 0 ? Routing::adaptive_0 : Routing::in_order;
      const QuoteRequest r{.routing = routing,
                           .src = pick.below(p.nodes),
                           .dst = pick.below(p.nodes),
                           .seed = pick.below(1000)};
      Path path, decayed;
      find_path(p, routing, r.seed, r.src, r.dst, machine.state(), &path);
      find_path(p, routing, r.seed, r.src, r.dst, counting.state(), &decayed);
      const Route route = route_of(p, r);
      ASSERT_EQ(path.hops, route.size());
      ASSERT_EQ(decayed.stretches, path.stretches);
      std::uint32_t before = 0;
      for (std::uint32_t s = 0; s < path.stretches; ++s) {
        const Stretch& stretch = path.at[s];
        ASSERT_EQ(stretch.kind, Stretch::line);
        const LinePart part = part_of(stretch, *machine.state());
        ASSERT_EQ(stretch.before, before);
        ASSERT_LT(part.line, LinkState::cells(p, LinkState::Kind::exact));
        const std::uint32_t counter = counter_of(decayed.at[s], *counting.state());
        ASSERT_LT(counter, LinkState::cells(p, LinkState::Kind::decayed));
        ASSERT_EQ(decayed.at[s].links, stretch.links);
        ASSERT_EQ(decayed.at[s].price, stretch.price);
        ASSERT_EQ(stretch.links, part.links);
        bool counted = false;
        for (std::uint32_t i = 0; i < part.links; ++i) {
          const LinkId link = route[before + i];
          const Direction d = p.torus.direction_of(link);
          // The price is the dimension's, which is that of the link there.
          ASSERT_EQ(stretch.price, dimension_of(d));
          ASSERT_EQ(part.line % 2, is_minus(d) ? 1u : 0u);
          const std::uint32_t position = (part.first + i) % part.line_links;
          const std::uint32_t number = part.line_first + position;
          const auto [known, fresh] =
              numbers.emplace(std::pair{p.torus.ends(link).from, static_cast<int>(d)}, number);
          ASSERT_EQ(known->second, number);
          ASSERT_TRUE(!fresh || taken.insert(number).second);
          counted = counted || number == counter;
        }
        ASSERT_TRUE(counted) << "the link that a decayed state counts is one of the way";
        before += part.links;
      }
      ASSERT_EQ(before, route.size());
    }
  }
}

TEST(GroupLinks, OrderedMessagesWaitForTheGreenLinkThatTheyShareAndForNoOther) {
  const auto second = [](NodeId src, NodeId dst) {
    Loaded aries("aries", LinkState::Kind::exact);
    aries.send(node(0, 0, 0), node(0, 1, 0), kBulk, Routing::in_order);
    return aries.send(src, dst, 8, Routing::in_order, 1_ns).waited;
  };
  EXPECT_GT(second(node(0, 0, 1), node(0, 1, 1)), 100_us);  // another NIC of both routers
  EXPECT_EQ(second(node(0, 0, 1), node(0, 2, 1)), Picos{});
  EXPECT_EQ(second(node(0, 1, 1), node(0, 0, 1)), Picos{});  // the other direction
  EXPECT_EQ(second(node(1, 0, 1), node(1, 1, 1)), Picos{});  // another chassis
}

TEST(GroupLinks, OrderedMessagesWaitForTheBlackLinkThatTheyShareAndForNoOtherCopy) {
  int waited = 0, free = 0;
  for (std::uint32_t nic = 0; nic < 16; ++nic) {
    Loaded aries("aries", LinkState::Kind::exact);
    const Pricing& p = aries.pricing();
    const NodeId a = node(0, 3, 0), b = node(4, 3, 0), c = node(0, 3, 1 + nic % 3),
                 d = node(4, 3, 1 + nic / 4 % 3);
    const auto link = [&](NodeId src, NodeId dst) {
      return route_of(p, {.routing = Routing::in_order, .src = src, .dst = dst})[0];
    };
    aries.send(a, b, kBulk, Routing::in_order);
    const Quote q = aries.send(c, d, 8, Routing::in_order, 1_ns);
    EXPECT_EQ(q.waited > 100_us, link(a, b) == link(c, d));
    ++(q.waited > Picos{} ? waited : free);
  }
  EXPECT_GT(waited, 0);
  EXPECT_GT(free, 0);
}

// The second link of a route: two routers of a chassis reach one router of another chassis by the same black
// link of the router between them.
TEST(GroupLinks, MessagesOfTwoRoutersMeetAtTheBlackLinkBehindTheirGreenOnes) {
  int met = 0;
  for (std::uint32_t nic = 0; nic < 8; ++nic) {
    Loaded aries("aries", LinkState::Kind::exact);
    const NodeId a = node(0, 1), b = node(0, 2, nic % 4), far = node(2, 7, 0),
                 far_too = node(2, 7, 1 + nic / 4);
    const auto last = [&](NodeId src, NodeId dst) {
      return route_of(aries.pricing(), {.routing = Routing::in_order, .src = src, .dst = dst})[1];
    };
    aries.send(a, far, kBulk, Routing::in_order);
    const bool same = last(a, far) == last(b, far_too);
    EXPECT_EQ(aries.send(b, far_too, 8, Routing::in_order, 1_ns).waited > 100_us, same);
    met += same;
  }
  EXPECT_GT(met, 0);
}

TEST(GroupLinks, AdaptiveMessagesGoRoundALoadedLinkByOneLinkMore) {
  Loaded aries("aries", LinkState::Kind::exact);
  const Quote first = aries.send(node(0, 0, 0), node(0, 1, 0), kBulk, Routing::adaptive_0);
  EXPECT_EQ(first.hops, 1u);
  EXPECT_FALSE(first.detoured);
  const Quote round = aries.send(node(0, 0, 1), node(0, 1, 1), 8, Routing::adaptive_0, 1_ns);
  EXPECT_EQ(round.waited, Picos{});
  EXPECT_EQ(round.hops, 2u);
  EXPECT_TRUE(round.detoured);
  Loaded quiet("aries", LinkState::Kind::exact);
  const Quote direct = quiet.send(node(0, 0, 1), node(0, 1, 1), 8, Routing::adaptive_0, 1_ns);
  EXPECT_EQ(round.data_at, direct.data_at + aries.pricing().hop);
  EXPECT_EQ(round.local_event_at, direct.local_event_at + aries.pricing().hop);
}

TEST(GroupLinks, AStrongBiasWaitsALittleRatherThanGoRound) {
  // 1 KiB is 0.3 us of a link: less than the 64 packets of the strongest bias, more than none.
  Loaded none("aries", LinkState::Kind::exact), strong("aries", LinkState::Kind::exact);
  none.send(node(0, 0, 0), node(0, 1, 0), 1024, Routing::in_order);
  strong.send(node(0, 0, 0), node(0, 1, 0), 1024, Routing::in_order);
  EXPECT_TRUE(none.send(node(0, 0, 1), node(0, 1, 1), 8, Routing::adaptive_0).detoured);
  const Quote waits = strong.send(node(0, 0, 1), node(0, 1, 1), 8, Routing::adaptive_3);
  EXPECT_FALSE(waits.detoured);
  EXPECT_GT(waits.waited, Picos{});
}

// Under any load that others have left, on the same candidates.
TEST(GroupLinks, AnAdaptiveMessageNeverWaitsLongerThanItsMinimalPathWould) {
  Choices pick(test_seed());
  int round = 0;
  for (int load = 0; load < 20; ++load) {
    Loaded a("aries", LinkState::Kind::exact), b("aries", LinkState::Kind::exact);
    Picos now;
    for (int i = 0; i < 300; ++i) {
      now += Picos{pick.below(2'000'000)};
      const NodeId src = pick.below(64), dst = pick.below(384);
      const std::uint64_t bytes = 1 + pick.below(1 << 17), seed = pick.below(1000);
      a.copy_to(&b);
      const Quote adaptive = a.send(src, dst, bytes, Routing::adaptive_0, now, seed);
      const Quote minimal = b.send(src, dst, bytes, Routing::hashed_minimal, now, seed);
      // The NIC comes before the choice: only the waits behind it are compared.
      ASSERT_LE(adaptive.waited, minimal.waited + Picos{1});
      ASSERT_LE(adaptive.hops, minimal.hops + 1);
      round += adaptive.detoured;
      if (i % 3 == 0) b.copy_to(&a);
    }
  }
  EXPECT_GT(round, 100);
}

// Beyond one group: bundles that are busy from now on for a random time each, other links free. The
// candidates' loads are then what a message really waits, so no choice may make it wait longer than the
// minimal route.
TEST(GroupChoice, AnAdaptiveMessageNeverWaitsLongerThanItsMinimalBundleWould) {
  Choices pick(test_seed());
  int detoured = 0;
  Loaded quiet("aries", LinkState::Kind::exact), a("aries", LinkState::Kind::exact),
      b("aries", LinkState::Kind::exact);
  const Dragonfly& d = a.pricing().dragonfly;
  const std::uint32_t groups = d.groups();
  ASSERT_GE(groups, 3u);
  const std::uint32_t nodes_per_group = a.pricing().nodes / groups;
  for (int load = 0; load < 400; ++load) {
    const Picos now{1 + pick.below(1'000'000)};
    quiet.copy_to(&a);
    for (std::uint32_t from = 0; from < groups; ++from)
      for (std::uint32_t to = 0; to < groups; ++to)
        if (from != to && pick.below(4) != 0)
          a.state()->reserve_bundle(from * groups + to, now.count(), 1 + pick.below(50'000'000), 0);
    a.copy_to(&b);
    const std::uint32_t from = pick.below(groups), to = (from + 1 + pick.below(groups - 1)) % groups;
    const NodeId src = from * nodes_per_group + pick.below(nodes_per_group);
    const NodeId dst = to * nodes_per_group + pick.below(nodes_per_group);
    const std::uint64_t bytes = 1 + pick.below(1 << 16), seed = pick.below(1000);
    const Quote minimal = b.send(src, dst, bytes, Routing::hashed_minimal, now, seed);
    for (const Routing mode :
         {Routing::adaptive_0, Routing::adaptive_1, Routing::adaptive_2, Routing::adaptive_3}) {
      a.copy_to(&b);
      const Quote adaptive = b.send(src, dst, bytes, mode, now, seed);
      ASSERT_LE(adaptive.waited, minimal.waited) << "load " << load << " mode " << static_cast<int>(mode);
      ASSERT_TRUE(adaptive.detoured || adaptive.waited == minimal.waited);
      detoured += adaptive.detoured;
    }
  }
  EXPECT_GT(detoured, 100);
}

TEST(GroupLinks, ADecayedStateMakesABusyLinkSlowAndLeavesTheOthers) {
  Loaded aries("aries", LinkState::Kind::decayed);
  Picos now;
  // 4 KiB a microsecond are 4.1 GB/s of the 4 GB/s that a green link carries.
  for (int i = 0; i < 100; ++i) aries.send(node(0, 0), node(0, 1), 4096, Routing::in_order, now += 1_us);
  // Each time other NICs of the same routers.
  const auto waits = [&](std::uint32_t nic, std::uint32_t slot, Routing routing) {
    return aries.send(node(0, 0, nic), node(0, slot, nic), 4096, routing, now).waited;
  };
  EXPECT_GT(waits(1, 1, Routing::in_order), 1_us);
  EXPECT_LT(waits(2, 2, Routing::in_order), 100_ns);
  EXPECT_LT(waits(3, 1, Routing::adaptive_0), 100_ns);
}

// A message that goes over a third group is counted there and not on the bundle that it avoids, nor on the
// links of its router twice.
TEST(GroupChoice, ADetourInADecayedStateIsCountedWhereItGoes) {
  Loaded aries("aries", LinkState::Kind::decayed);
  const std::uint32_t groups = aries.pricing().dragonfly.groups(),
                      nodes_per_group = aries.pricing().nodes / groups;
  Picos now;
  const auto level_of_bundle = [&](std::uint32_t from, std::uint32_t to) {
    return aries.state()->level(from * groups + to, now.count());
  };
  // More than the bundle between groups 0 and 1 carries, from many NICs.
  for (NodeId i = 0; i < 64; ++i) aries.send(i, nodes_per_group + i, kBulk, Routing::in_order, now);
  const std::uint64_t before = level_of_bundle(0, 1);
  std::uint64_t others = 0;
  for (std::uint32_t to = 2; to < groups; ++to) others += level_of_bundle(0, to);
  ASSERT_EQ(others, 0u);
  const Quote round = aries.send(100, nodes_per_group + 100, 4096, Routing::adaptive_0, now);
  ASSERT_TRUE(round.detoured);
  EXPECT_EQ(level_of_bundle(0, 1), before);
  for (std::uint32_t to = 2; to < groups; ++to) others += level_of_bundle(0, to);
  EXPECT_GE(others, 4095u) << "less what a rate is rounded by";
  EXPECT_LE(others, 4096u);
}

// Property: two threads that hand each other the turn, as PEs under virtual time do, see each other's
// promises: what one NIC receives comes one message after the other. Each arrival is a message's time from
// the next, so a lost promise shows.
TEST(LinkStateThreads, TwoThreadsThatTakeTurnsNeverGetTheSameTimeOfAReceiver) {
  constexpr int kRounds = 2000, kEach = 6;  // a round: as many messages as the receiver remembers one by one
  constexpr std::uint64_t kBytes = 65536;
  Loaded aries("aries", LinkState::Kind::exact);
  std::vector<std::int64_t> arrivals[2];
  std::atomic<int> turn{0};
  const auto sender = [&](int me) {
    for (int n = me; n < kRounds * kEach; n += 2) {
      while (turn.load(std::memory_order_acquire) != n) std::this_thread::yield();
      // All of a round called at one moment: neither thread's calls are earlier than the other's.
      const Quote q = aries.send(static_cast<NodeId>(me), 1000, kBytes, Routing::in_order,
                                 Picos{std::int64_t{n / kEach} * 1'000'000'000});
      arrivals[me].push_back(q.data_at.count());
      turn.store(n + 1, std::memory_order_release);
    }
  };
  std::thread other(sender, 1);
  sender(0);
  other.join();
  std::vector<std::int64_t> all = arrivals[0];
  all.insert(all.end(), arrivals[1].begin(), arrivals[1].end());
  std::sort(all.begin(), all.end());
  const std::int64_t length =
      aries.pricing().ops[static_cast<std::size_t>(Op::bte_put)].host_lone(kBytes).count();
  ASSERT_EQ(aries.state()->merged(), 0u);
  for (std::size_t i = 1; i < all.size(); ++i) ASSERT_GE(all[i] - all[i - 1], length) << i;
}

TEST(LinkStateThreads, ADecayedStateTakesTwoThreadsAtOnce) {
  Loaded aries("aries", LinkState::Kind::decayed);
  const auto sender = [&](NodeId me) {
    for (int i = 0; i < 2000; ++i) {
      const Picos now{static_cast<std::int64_t>(i) * 1'000'000};
      const Quote q = aries.send(me, 1000, 64, Routing::adaptive_0, now);
      EXPECT_GE(q.waited, Picos{});
      EXPECT_GE(q.data_at, now);
    }
  };
  std::thread other(sender, NodeId{1});
  sender(0);
  other.join();
}

}  // namespace
}  // namespace orrery::model
