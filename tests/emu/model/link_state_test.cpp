// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/link_state.hpp"

#include "emu/model/machine_file.hpp"
#include "tests/emu/model/seed.hpp"
#include "tests/emu/model/state_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace orrery::model {
namespace {

using Promised = std::vector<std::pair<std::int64_t, std::int64_t>>;  // start, end; none overlaps another

// Where what wants `length` from `want` on fits first. What is over at `now` is forgotten.
std::int64_t first_gap(Promised* promised, std::int64_t want, std::int64_t length, std::int64_t now) {
  std::erase_if(*promised, [&](const auto& span) { return span.second <= now; });
  std::sort(promised->begin(), promised->end());
  std::int64_t at = want;
  for (const auto& [start, end] : *promised) {
    if (end <= at) continue;
    if (at + length <= start) break;
    at = end;
  }
  return at;
}

// Links of a dragonfly have two spans of their own. Whatever is asked of a few of them, messages on one link
// never overlap, each begins at the first gap that is long enough, and nothing becomes inexact: a plain list
// of all that was promised says when.
TEST(LinkState, LinksWithManyPromisesStayExact) {
  const BuiltMachine aries = build_machine("aries");
  Memory memory(LinkState::bytes_needed(aries.machine->pricing, LinkState::Kind::exact));
  LinkState state = LinkState::create(memory.span(), aries.machine->pricing, LinkState::Kind::exact).value();
  Choices pick(test_seed());
  constexpr std::uint32_t kLinks = 6;
  Promised promised[kLinks];
  std::int64_t now = 0;
  for (int i = 0; i < 20'000; ++i) {
    // Now and then it is quiet for long enough that everything is over.
    now += pick.below(200) == 0 ? 20'000 : pick.below(400);
    const std::uint32_t which = pick.below(kLinks), router = which / 3, port = which % 3;
    const LinePart part{.line = router,
                        .first = port,
                        .links = 1,
                        .line_first = router * kRouterServers,
                        .line_links = kRouterServers};
    const std::int64_t arrive = now + pick.below(3'000), length = 1 + pick.below(150);
    Promised& mine = promised[which];
    const std::int64_t expected = first_gap(&mine, arrive, length, now);
    // Looking is in turn left out: it makes a router hand out what it keeps for its links.
    if (pick.below(4) == 0) {
      ASSERT_EQ(state.line_idle(router, arrive) ? arrive : state.peek_link(part, 0, arrive, length), expected)
          << i;
    }
    ASSERT_EQ(arrive + state.reserve_line(part, 0, arrive, length, now), expected) << i;
    mine.emplace_back(expected, expected + length);
  }
  EXPECT_EQ(state.merged(), 0u);
}

// A stream of many requests at once, as Open MPI's windows of 256 gets are: a bundle and a NIC's receive side
// have few spans of their own, a link two. All stay exact however many gaps there are, in whatever order they
// are asked for, and what is over makes room.
TEST(LinkState, HundredsOfPromisesOfOneServerStayExact) {
  const BuiltMachine aries = build_machine("aries");
  Memory memory(LinkState::bytes_needed(aries.machine->pricing, LinkState::Kind::exact));
  LinkState state = LinkState::create(memory.span(), aries.machine->pricing, LinkState::Kind::exact).value();
  Choices pick(test_seed());
  constexpr std::size_t kServers = 6;
  Promised promised[kServers];
  const auto reserve = [&](std::size_t server, std::int64_t want, std::int64_t length, std::int64_t now) {
    const auto number = static_cast<std::uint32_t>(server / 3);
    if (server % 3 == 0) return state.reserve_receive(number, want, length, now);
    if (server % 3 == 1) return state.reserve_bundle(number, want, length, now);
    return want + state.reserve_line(router_part(number, number), 0, want, length, now);
  };
  std::int64_t now = 0;
  std::size_t most = 0;
  for (int i = 0; i < 30'000; ++i) {
    now += pick.below(3'000) == 0 ? 300'000 : pick.below(80);
    const std::size_t which = pick.below(kServers);
    const std::int64_t want = now + pick.below(200'000), length = 1 + pick.below(150);
    Promised& mine = promised[which];
    const std::int64_t expected = first_gap(&mine, want, length, now);
    if (which % 3 == 1) {
      ASSERT_EQ(state.peek_bundle(static_cast<std::uint32_t>(which / 3), want, length), expected) << i;
    }
    ASSERT_EQ(reserve(which, want, length, now), expected) << i;
    mine.emplace_back(expected, expected + length);
    most = std::max(most, mine.size());
  }
  EXPECT_GT(most, 400u);
  EXPECT_EQ(state.merged(), 0u);
}

// When there is no room left to lend, or a link has more than that holds, it becomes inexact, is counted, and
// no time is promised twice.
TEST(LinkState, WhenAllRoomIsLentOutItIsCounted) {
  const BuiltMachine aries = build_machine("aries");
  Memory memory(LinkState::bytes_needed(aries.machine->pricing, LinkState::Kind::exact));
  LinkState state = LinkState::create(memory.span(), aries.machine->pricing, LinkState::Kind::exact).value();
  const auto go = [&](std::uint32_t link, std::int64_t arrive) {
    return state.reserve_line(router_part(link / kRouterServers, link % kRouterServers), 0, arrive, 10, 0);
  };
  for (std::uint32_t link = 0; link < kRooms; ++link) {
    for (const std::int64_t arrive : {100, 200, 300, 400}) (void)go(link, arrive);
  }
  EXPECT_EQ(state.merged(), 0u);
  for (const std::int64_t arrive : {100, 200, 300, 400}) (void)go(kRooms, arrive);
  EXPECT_GT(state.merged(), 0u);
  const std::uint64_t before = state.merged();
  for (std::int64_t i = 0; i < 40; ++i) (void)go(0, 1000 + 100 * i);
  EXPECT_GT(state.merged(), before);
}

}  // namespace
}  // namespace orrery::model
