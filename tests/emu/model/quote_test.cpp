// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/quote.hpp"

#include "emu/model/collective.hpp"
#include "emu/model/explain.hpp"
#include "emu/model/machine_file.hpp"
#include "emu/model/path.hpp"
#include "tests/emu/model/seed.hpp"
#include "tests/emu/model/state_memory.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace orrery::model {
namespace {

class EveryMachine : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    built_ = build_machine(std::string(GetParam()));
    ASSERT_TRUE(built_.machine) << built_.error;
  }
  const Pricing& p() { return built_.machine->pricing; }
  QuoteRequest random_request(Choices* pick) {
    QuoteRequest r;
    r.op = static_cast<Op>(pick->below(kOps));
    r.routing = static_cast<Routing>(pick->below(kRoutings));
    r.src = pick->below(p().nodes);
    r.dst = pick->below(p().nodes);
    r.bytes = pick->below(2) == 0 ? pick->below(100) : pick->below(1 << 20);
    r.seed = pick->below(1000);
    return r;
  }
  BuiltMachine built_;
};

TEST_P(EveryMachine, PricesEveryOperationAndItsTimesAreInOrder) {
  Choices pick(test_seed());
  for (int i = 0; i < 5000; ++i) {
    QuoteRequest r = random_request(&pick);
    r.now = Picos{pick.below(1000000)};
    const Quote q = quote(p(), r, nullptr);
    EXPECT_GE(q.cpu_busy, Picos{});
    EXPECT_GE(q.data_at, r.now + q.cpu_busy);
    EXPECT_GE(q.local_event_at, r.now + q.cpu_busy);
    EXPECT_GE(q.remote_event_at, r.now + q.cpu_busy);
    EXPECT_EQ(q.waited, Picos{});
  }
}

TEST_P(EveryMachine, ExplanationAddsUpToTheQuoteForEveryOperation) {
  Choices pick(test_seed());
  for (int i = 0; i < 1000; ++i) {
    const QuoteRequest r = random_request(&pick);
    const Explanation e = explain(*built_.machine, r);
    const auto sum = [](const std::vector<ExplainedCost>& costs) {
      Picos total;
      for (const auto& c : costs) total += c.time;
      return total;
    };
    ASSERT_EQ(sum(e.to_data), e.quote.data_at) << op_name(r.op);
    ASSERT_EQ(e.local_from + sum(e.to_local), e.quote.local_event_at) << op_name(r.op);
    ASSERT_EQ(e.target_from + sum(e.at_target), e.quote.remote_event_at) << op_name(r.op);
    const std::size_t hops =
        p().network == Network::fat_tree && !e.route.empty() ? e.route.size() - 1 : e.route.size();
    ASSERT_EQ(hops, e.quote.hops);
    for (const auto& c : e.to_data) {
      EXPECT_FALSE(c.source.empty()) << c.what;
      EXPECT_GE(c.time, Picos{}) << op_name(r.op) << " " << c.what;
    }
  }
}

TEST_P(EveryMachine, TheSameRequestIsQuotedTheSameAndLoadNeverMakesItSooner) {
  Choices pick(test_seed());
  for (const auto kind : {LinkState::Kind::exact, LinkState::Kind::decayed}) {
    Memory a(LinkState::bytes_needed(p(), kind)), b(LinkState::bytes_needed(p(), kind));
    LinkState one = LinkState::create(a.span(), p(), kind).value(),
              two = LinkState::create(b.span(), p(), kind).value();
    Picos now;
    for (int i = 0; i < 3000; ++i) {
      QuoteRequest r = random_request(&pick);
      if (is_adaptive(r.routing)) r.routing = Routing::in_order;
      r.src %= 16;
      r.dst %= 16;
      now += Picos{pick.below(200000)};
      r.now = now;
      const Quote x = quote(p(), r, &one), y = quote(p(), r, &two), quiet = quote(p(), r, nullptr);
      ASSERT_EQ(x.data_at, y.data_at);
      ASSERT_EQ(x.local_event_at, y.local_event_at);
      ASSERT_GE(x.data_at, quiet.data_at);
      ASSERT_GE(x.waited, Picos{});
    }
  }
}

TEST_P(EveryMachine, AQuietStateChangesNothing) {
  Choices pick(test_seed());
  for (const auto kind : {LinkState::Kind::exact, LinkState::Kind::decayed}) {
    Memory memory(LinkState::bytes_needed(p(), kind));
    LinkState state = LinkState::create(memory.span(), p(), kind).value();
    Picos now;
    for (int i = 0; i < 500; ++i) {
      QuoteRequest r = random_request(&pick);
      r.bytes = r.bytes % 64;
      now += 500_us;
      r.now = now;
      const Quote loaded = quote(p(), r, &state), quiet = quote(p(), r, nullptr);
      ASSERT_EQ(loaded.data_at, quiet.data_at) << op_name(r.op) << " " << r.src << " " << r.dst;
      ASSERT_FALSE(loaded.detoured);
    }
    EXPECT_EQ(state.merged(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, EveryMachine,
                         testing::Values("aries", "gemini", "seastar", "bluegene-l", "asci-q", "ideal"),
                         [](const auto& machine) {
                           std::string name(machine.param);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(Quote, TheIdealMachineCostsNothing) {
  const BuiltMachine ideal = build_machine("ideal");
  for (int op = 0; op < kOps; ++op) {
    const Quote q =
        quote(ideal.machine->pricing,
              {.op = static_cast<Op>(op), .src = 1, .dst = 2, .bytes = 1 << 20, .now = 7_ns}, nullptr);
    EXPECT_EQ(q.data_at, 7_ns);
    EXPECT_EQ(q.local_event_at, 7_ns);
    EXPECT_EQ(q.cpu_busy, Picos{});
  }
}

// Two messages over one x line of a torus: the same stretch conflicts, disjoint stretches do not, although
// both lie in one aggregate.
TEST(Quote, StretchesOfATorusLineConflictOnlyWhereTheyOverlap) {
  const BuiltMachine bg = build_machine("bluegene-l");
  const Pricing& p = bg.machine->pricing;
  const auto wait_of_second = [&](NodeId src, NodeId dst) {
    Memory memory(LinkState::bytes_needed(p, LinkState::Kind::exact));
    LinkState state = LinkState::create(memory.span(), p, LinkState::Kind::exact).value();
    quote(p, {.op = Op::send, .src = 0, .dst = 2, .bytes = 24000}, &state);
    return quote(p, {.op = Op::send, .src = src, .dst = dst, .bytes = 240, .now = 1_ns}, &state).waited;
  };
  EXPECT_GT(wait_of_second(1, 3), 100_us);    // shares the link 1 -> 2; 24,000 B take 154 us
  EXPECT_EQ(wait_of_second(2, 4), Picos{});   // starts where the first one ends
  EXPECT_EQ(wait_of_second(3, 1), Picos{});   // the other direction
  EXPECT_EQ(wait_of_second(9, 11), Picos{});  // another line
}

// One message from each of a group's 96 routers to one other group: in order they queue at one bundle.
TEST(Quote, AdaptiveRoutingLeavesALoadedBundleAndInOrderDoesNot) {
  const BuiltMachine aries = build_machine("aries");
  const Pricing& p = aries.machine->pricing;
  Picos longest_wait[2];
  int detours[2] = {0, 0};
  for (const bool adaptive : {false, true}) {
    Memory memory(LinkState::bytes_needed(p, LinkState::Kind::exact));
    LinkState state = LinkState::create(memory.span(), p, LinkState::Kind::exact).value();
    for (std::uint32_t i = 0; i < 96; ++i) {
      const Quote q = quote(p,
                            {.op = Op::bte_put,
                             .routing = adaptive ? Routing::adaptive_0 : Routing::in_order,
                             .src = 4 * i,
                             .dst = 384 + 4 * i,
                             .bytes = 1 << 20,
                             .now = Picos{static_cast<std::int64_t>(i)},
                             .seed = i},
                            &state);
      detours[adaptive] += q.detoured;
      longest_wait[adaptive] = std::max(longest_wait[adaptive], q.waited);
    }
  }
  EXPECT_EQ(detours[false], 0);
  EXPECT_GT(detours[true], 10);
  EXPECT_GT(longest_wait[false], 200_us);  // 96 MiB over 34 cables
  EXPECT_LT(longest_wait[true] * 2, longest_wait[false]);
}

TEST(LinkState, TheLargestMachineFitsSixtyFourMebibytes) {
  MachineFile file = load_machine("aries");
  file.description->constants["topology.groups"].value = 241;
  const BuiltMachine largest = compile(*file.description);
  ASSERT_TRUE(largest.machine) << largest.error;
  ASSERT_EQ(largest.machine->pricing.nodes, 92544u);
  for (const auto kind : {LinkState::Kind::exact, LinkState::Kind::decayed}) {
    const std::size_t bytes = LinkState::bytes_needed(largest.machine->pricing, kind);
    std::printf("link state of 92,544 nodes: %zu bytes (%s)\n", bytes,
                kind == LinkState::Kind::exact ? "exact" : "decayed");
    EXPECT_LT(bytes, std::size_t{64} << 20);
  }
}

TEST(LinkState, AttachTakesOnlyABlockOfItsOwnMachine) {
  const BuiltMachine aries = build_machine("aries"), gemini = build_machine("gemini");
  Memory memory(LinkState::bytes_needed(aries.machine->pricing, LinkState::Kind::exact));
  EXPECT_EQ(LinkState::attach(memory.span().first(64), aries.machine->pricing).code(), Errc::corrupt);
  ASSERT_TRUE(LinkState::create(memory.span(), aries.machine->pricing, LinkState::Kind::exact).ok());
  EXPECT_TRUE(LinkState::attach(memory.span(), aries.machine->pricing).ok());
  EXPECT_EQ(LinkState::attach(memory.span(), gemini.machine->pricing).code(), Errc::corrupt);
  EXPECT_EQ(LinkState::attach(memory.span().first(4096), aries.machine->pricing).code(), Errc::size);
  EXPECT_EQ(LinkState::attach(memory.span().subspan(8), aries.machine->pricing).code(), Errc::alignment);
  EXPECT_EQ(
      LinkState::create(memory.span().first(128), aries.machine->pricing, LinkState::Kind::exact).code(),
      Errc::size);
}

// A message goes along a line while another that it meets half way makes it wait there, and only there: what
// comes behind it on the first links finds them as free as they are.
TEST(LinkState, AWaitHalfWayAlongALineLeavesTheLinksBehindFree) {
  const BuiltMachine bg = build_machine("bluegene-l");
  Memory memory(LinkState::bytes_needed(bg.machine->pricing, LinkState::Kind::exact));
  LinkState state = LinkState::create(memory.span(), bg.machine->pricing, LinkState::Kind::exact).value();
  constexpr std::int64_t kHop = 10, kLength = 100;
  const auto go = [&](std::uint32_t first, std::uint32_t links, std::int64_t arrive) {
    return state.reserve_line({0, first, links, 0, 8}, kHop, arrive, kLength, 0);
  };
  EXPECT_EQ(go(3, 1, 1000), 0);
  EXPECT_EQ(go(0, 5, 1000), 70) << "link 3 is reached at 1,030 and free at 1,100";
  EXPECT_EQ(go(0, 1, 1100), 0);
  EXPECT_EQ(go(3, 1, 1150), 50);
  EXPECT_EQ(go(4, 1, 1150), 60) << "reached by the second message at 1,110";
  EXPECT_EQ(go(7, 3, 1000), 190) << "round the end: link 0 is reached at 1,010 and free at 1,200";
  EXPECT_EQ(state.merged(), 0u);
}

// Whatever is asked of a cell: no two promises of an exact one overlap, and an inexact one never promises
// more than there is.
TEST(Promises, NeverPromiseMoreTimeThanThereIs) {
  Choices pick(test_seed());
  std::uint64_t merged = 0;
  for (int round = 0; round < 300; ++round) {
    Promises<4> cell{};
    std::atomic<std::uint64_t> merges{0};
    const std::int64_t longest = 1 + pick.below(200), spread = 1 + pick.below(4000);
    std::int64_t promised = 0, first = std::numeric_limits<std::int64_t>::max(), last = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> exact;
    for (int i = 0; i < 100; ++i) {
      const std::int64_t want = pick.below(static_cast<std::uint32_t>(spread)),
                         length = 1 + pick.below(static_cast<std::uint32_t>(longest));
      const std::int64_t seen = peek(cell, want, length);
      const std::int64_t start = reserve(cell, want, length, -1, &merges);
      ASSERT_EQ(start, seen);
      ASSERT_GE(start, want);
      promised += length;
      first = std::min(first, start);
      last = std::max(last, start + length);
      ASSERT_LE(promised, last - first);
      std::int64_t busy = 0;
      for (std::uint32_t n = 0; n < cell.count; ++n) {
        const Span& s = cell.at[n];
        ASSERT_LE(s.busy, s.end - s.start);
        ASSERT_TRUE(n == 0 || cell.at[n - 1].end <= s.start);
        busy += s.busy;
      }
      ASSERT_EQ(busy, promised);
      ASSERT_EQ(cell.latest, last);
      if (merges == 0) {
        for (const auto& [a, b] : exact) ASSERT_TRUE(start >= b || start + length <= a);
        exact.emplace_back(start, start + length);
      }
    }
    merged += merges;
  }
  EXPECT_GT(merged, 1000u);
}

TEST(Promises, BackToBackIsOneSpanAndPastTheHorizonIsForgotten) {
  Promises<4> cell{};
  std::atomic<std::uint64_t> merges{0};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(reserve(cell, 0, 10, -1, &merges), 10 * i);
  EXPECT_EQ(cell.count, 1u);
  EXPECT_EQ(reserve(cell, 2000, 10, -1, &merges), 2000);
  EXPECT_EQ(cell.count, 2u);
  EXPECT_EQ(reserve(cell, 5000, 10, 1500, &merges), 5000);
  EXPECT_EQ(cell.count, 2u) << "the first ended at 1,000";
  EXPECT_EQ(merges, 0u);
}

TEST(Promises, AFullCellUnitesTheClosestAndStillTakesWhatIsFree) {
  Promises<4> cell{};
  std::atomic<std::uint64_t> merges{0};
  for (const std::int64_t want : {0, 100, 1000, 2000}) reserve(cell, want, 10, -1, &merges);
  EXPECT_EQ(merges, 0u);
  EXPECT_EQ(reserve(cell, 3000, 10, -1, &merges), 3000);
  EXPECT_EQ(merges, 1u) << "0..10 and 100..110 became one, promised 20 of 110";
  ASSERT_EQ(cell.count, 4u);
  EXPECT_EQ(cell.at[0].busy, 20);
  const std::int64_t start = reserve(cell, 20, 10, -1, &merges);
  EXPECT_GE(start, 20);
  EXPECT_LE(start, 30) << "a fifth full: a short wait";
  EXPECT_EQ(reserve(cell, 0, 200, -1, &merges), 110) << "no room in it, and enough behind it";
}

// Packets that are spread over a router's links are in the way of each of them; a link is not in the way of
// another.
TEST(LinkState, ALinkIsInNobodysWayButItsOwn) {
  const BuiltMachine aries = build_machine("aries");
  Memory memory(LinkState::bytes_needed(aries.machine->pricing, LinkState::Kind::exact));
  LinkState state = LinkState::create(memory.span(), aries.machine->pricing, LinkState::Kind::exact).value();
  EXPECT_EQ(state.reserve_line(router_part(7, 0), 0, 0, 100, 0), 0);
  EXPECT_EQ(state.peek_link(router_part(7, 0), 0, 0, 10), 100);
  EXPECT_EQ(state.peek_link(router_part(7, 1), 0, 0, 10), 0);
  EXPECT_EQ(state.reserve_line(router_part(7, 1), 0, 0, 10, 0), 0);
  EXPECT_EQ(state.reserve_line(router_part(7, 0), 0, 0, 10, 0), 100);
  EXPECT_FALSE(state.line_idle(7, 0));
  EXPECT_TRUE(state.line_idle(7, 110));
  EXPECT_TRUE(state.line_idle(8, 0));
}

TEST(LinkState, ASteadyRateIsReadBackFromTheDecayedCounter) {
  const BuiltMachine aries = build_machine("aries");
  Memory memory(LinkState::bytes_needed(aries.machine->pricing, LinkState::Kind::decayed));
  LinkState state =
      LinkState::create(memory.span(), aries.machine->pricing, LinkState::Kind::decayed).value();
  std::uint64_t level = 0;
  std::int64_t now = 0;
  const std::int64_t step = kHalfLife.count() / 100;
  DecayedCounter& counter = LinkState::counter_at(state.counters() + 3 * sizeof(CounterCell));
  for (int i = 0; i < 5000; ++i) level = count_bytes(counter, now += step, 64);
  EXPECT_NEAR(static_cast<double>(level), 6400.0, 320.0);
  EXPECT_LT(count_bytes(counter, now + 40 * kHalfLife.count(), 0), 64u);
}

TEST(LinkState, ShortMessagesLoadADecayedLinkAsTheirBytesDo) {
  const BuiltMachine gemini = build_machine("gemini");
  const Pricing& p = gemini.machine->pricing;
  Memory memory(LinkState::bytes_needed(p, LinkState::Kind::decayed));
  LinkState state = LinkState::create(memory.span(), p, LinkState::Kind::decayed).value();
  constexpr std::int64_t kStep = 50'000, kRounds = 40'000;  // 8 B each 50 ns
  double sum = 0;
  Picos now;
  for (std::int64_t i = 0; i < kRounds; ++i) {
    now += Picos{kStep};
    quote(p, {.op = Op::fma_put, .src = 0, .dst = 1, .bytes = 8, .now = now}, &state);
    if (i >= kRounds / 10) sum += static_cast<double>(state.level_receive(1, now.count()));
  }
  const double wanted = 8.0 * static_cast<double>(kHalfLife.count()) / kStep;
  EXPECT_NEAR(sum / (kRounds * 0.9), wanted, wanted * 0.05);
}

TEST(QueueWait, GrowsWithUtilisationAndIsThatOfAnMD1Queue) {
  EXPECT_EQ(queue_wait_256(0), 0u);
  EXPECT_EQ(queue_wait_256(128), 128u);  // rho 1/2: half a service time
  for (std::uint32_t rho = 1; rho < 256; ++rho) EXPECT_GE(queue_wait_256(rho), queue_wait_256(rho - 1));
  EXPECT_EQ(queue_wait_256(1000), queue_wait_256(255));
}

TEST(Collective, MorePesThanNodesShareThem) {
  MachineFile file = load_machine("gemini");
  ASSERT_TRUE(file.description.has_value()) << file.error;
  for (const char* key : {"class", "cabinets", "rows"})
    file.description->constants.erase(std::string("topology.") + key);
  for (const auto& [key, value] : {std::pair{"x", 1}, {"y", 2}, {"z", 1}}) {
    Constant& c = file.description->constants[std::string("topology.") + key];
    c.kind = ConstantKind::count;
    c.value = value;
    c.source = "this test";
  }
  const BuiltMachine built = compile(*file.description);
  ASSERT_NE(built.machine, nullptr) << built.error;
  ASSERT_EQ(built.machine->pricing.nodes, 2u);
  for (int c = 0; c < kCollectives; ++c) {
    const auto which = static_cast<Collective>(c);
    const CollectiveQuote all = quote_collective(*built.machine, which, 2, 8);
    const CollectiveQuote more = quote_collective(*built.machine, which, 8, 8);
    EXPECT_GT(more.levels, all.levels);
    // What there is between two nodes, once a level.
    EXPECT_GE(more.time, all.time);
    EXPECT_LE(more.time, all.time * more.levels);
  }
}

TEST(Collective, OneNodeWaitsForNobodyAndMoreNodesNeverTakeLess) {
  for (const ShippedFile& file : shipped_machines()) {
    const BuiltMachine built = build_machine(std::string(file.name));
    for (int c = 0; c < kCollectives; ++c) {
      const auto which = static_cast<Collective>(c);
      EXPECT_EQ(quote_collective(*built.machine, which, 1, 8).time, Picos{});
      EXPECT_LE(quote_collective(*built.machine, which, 4, 8).time,
                quote_collective(*built.machine, which, 64, 8).time);
    }
  }
}

}  // namespace
}  // namespace orrery::model
