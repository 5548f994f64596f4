// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Random entries, messages, searches and unlinks by seed, against lists that are walked one by one: every
// event, in order, and every outcome must be the same.
#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/nic/target/match_bench.hpp"
#include "tests/emu/nic/target/match_model.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace orrery::nic::match {
namespace {

std::string run(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  Bench bench;
  Lists lists;
  std::uint64_t user = 0;
  const auto entry = [&] {
    NewEntry what = bench.entry(below(4), ++user);
    what.options = (below(8) != 0 ? kOpPut : 0u) | (below(4) != 0 ? kOpGet : 0u);
    if (below(2) == 0) what.options |= kUseOnce;
    if (below(4) == 0) what.options |= kNoTruncate;
    if (below(3) == 0) what.options |= kManageLocal;
    if (below(2) == 0) what.options |= kUnexpectedByLength;
    if (below(3) == 0) what.ignore_bits = below(4) == 0 ? UINT64_MAX : below(4);
    if (below(3) == 0) what.source.nid = static_cast<std::uint32_t>(below(2));
    if (below(3) == 0) what.source.pid = static_cast<std::uint32_t>(below(2));
    if (below(9) == 0) what.uid = static_cast<std::uint32_t>(below(2));
    what.length = below(64);
    if (below(2) == 0) what.min_free = below(16);
    return what;
  };
  for (int step = 0; step < 400; ++step) {
    const std::string where = " at step " + std::to_string(step);
    switch (below(10)) {
      case 0:
      case 1:
      case 2: {
        NewEntry what = entry();
        what.list = below(3) == 0 ? kOverflow : kPriority;
        const auto appended = bench.put_in(what);
        if (!appended.ok()) return "append failed" + where;
        lists.append(what, appended.value());
        break;
      }
      case 3: {
        const NewEntry what = entry();
        const bool remove = below(2) == 0;
        Session session(bench.view);
        if (!search(session, what, remove).ok()) return "search failed" + where;
        lists.search(what, remove);
        break;
      }
      case 4: {
        auto& list = lists.lists[below(2)];
        if (list.empty()) break;
        Lists::Item* const item = list[below(list.size())];
        Session session(bench.view);
        const bool done = unlink(session, item->name.entry, item->name.generation).ok();
        if (done != lists.unlink(item)) return "unlink differs" + where;
        break;
      }
      default: {
        Arrival arrival = bench.message(below(4), below(40));
        arrival.move = below(4) == 0 ? Move::get : Move::put;
        arrival.remote_offset = below(3) == 0 ? below(70) : 0;
        arrival.initiator = {static_cast<std::uint32_t>(below(2)), static_cast<std::uint32_t>(below(2))};
        arrival.uid = static_cast<std::uint32_t>(below(2));
        const Fail expected = lists.send(arrival);
        const Fail got = bench.send(arrival).fail;
        if (got != expected)
          return "fail " + std::to_string(got) + " instead of " + std::to_string(expected) + where;
      }
    }
    EventRecord event{};
    while (bench.next(&event)) {
      const Told got{event.type, event.list, event.user, event.moved, event.fail};
      if (lists.told.empty()) return "an event too many: " + text(got) + where;
      if (!(got == lists.told.front())) return text(got) + " instead of " + text(lists.told.front()) + where;
      lists.told.pop_front();
    }
    if (!lists.told.empty()) return "no event " + text(lists.told.front()) + where;
  }
  return "";
}

TEST(MatchOrder, IsThatOfPlainListsWalkedOneByOne) { box::for_every_seed(300, 20'000, run); }

}  // namespace
}  // namespace orrery::nic::match
