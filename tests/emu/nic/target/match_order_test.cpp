// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Random entries, messages, searches and unlinks by seed, against lists that are walked one by one: every
// event, in order, and every outcome must be the same.
#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/nic/target/match_bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace orrery::nic::match {
namespace {

struct Told {
  int type;
  int list;
  std::uint64_t user;
  std::uint64_t moved;
  int fail;
  friend bool operator==(const Told&, const Told&) = default;
};

std::string text(const Told& told) {
  return "type " + std::to_string(told.type) + " list " + std::to_string(told.list) + " user " +
         std::to_string(told.user) + " moved " + std::to_string(told.moved) + " fail " +
         std::to_string(told.fail);
}

// The rules, over plain lists.
class Lists {
 public:
  struct Item {
    NewEntry what;
    Appended name;
    std::uint64_t offset = 0;
    int held = 0;
    bool linked = true;
  };
  struct Message {
    Arrival arrival;
    std::uint64_t moved;
    Item* holder;
  };

  std::deque<Told> told;
  std::deque<Item> items;  // all that ever were; pointers stay
  std::vector<Item*> lists[2];
  std::deque<Message> unexpected;

  static bool matches(const NewEntry& what, const Arrival& arrival) {
    return ((what.match_bits ^ arrival.match_bits) & ~what.ignore_bits) == 0 &&
           (what.source.nid == kAny || what.source.nid == arrival.initiator.nid) &&
           (what.source.pid == kAny || what.source.pid == arrival.initiator.pid);
  }
  static std::uint64_t room(const NewEntry& what, std::uint64_t local, const Arrival& arrival) {
    const std::uint64_t offset = (what.options & kManageLocal) != 0 ? local : arrival.remote_offset;
    return offset >= what.length ? 0 : std::min(arrival.length, what.length - offset);
  }
  static bool takes(const NewEntry& what, std::uint64_t local, const Arrival& arrival) {
    return matches(what, arrival) &&
           ((what.options & kNoTruncate) == 0 || room(what, local, arrival) == arrival.length);
  }
  void tell(int type, int list, std::uint64_t user, std::uint64_t moved, int fail = 0) {
    told.push_back({type, list, user, moved, fail});
  }
  void let_go(Item* item) {
    if (--item->held == 0 && !item->linked) tell(kEventAutoFree, kOverflow, item->what.user, 0);
  }
  void take_unexpected(std::size_t index, std::uint64_t user) {
    const Message message = unexpected[index];
    unexpected.erase(unexpected.begin() + static_cast<std::ptrdiff_t>(index));
    tell(2 * static_cast<int>(message.arrival.move) + 1, kOverflow, user, message.moved);
    let_go(message.holder);
  }

  // Returns the new item, or null when messages used it up.
  void append(const NewEntry& what, const Appended& name) {
    std::uint64_t local = 0;
    while (what.list == kPriority) {
      std::size_t i = 0;
      while (i < unexpected.size() && !takes(what, local, unexpected[i].arrival)) ++i;
      if (i == unexpected.size()) break;
      const bool room_taken = (what.options & kManageLocal) != 0 && (what.options & kUnexpectedByLength) != 0;
      if (room_taken) local += unexpected[i].arrival.length;
      take_unexpected(i, what.user);
      const bool used_up =
          room_taken && what.min_free != 0 && (local > what.length || what.length - local < what.min_free);
      if ((what.options & kUseOnce) != 0 || used_up) {
        tell(kEventAutoUnlink, what.list, what.user, 0);
        return;
      }
    }
    items.push_back({what, name, local});
    lists[what.list].push_back(&items.back());
    tell(kEventLink, what.list, what.user, 0);
  }

  Fail send(const Arrival& arrival) {
    for (int list = 0; list < 2; ++list) {
      for (std::size_t i = 0; i < lists[list].size(); ++i) {
        Item& item = *lists[list][i];
        if (!takes(item.what, item.offset, arrival)) continue;
        const bool allowed = (item.what.options & (arrival.move == Move::put ? kOpPut : kOpGet)) != 0;
        if (!allowed) return kOperationViolation;
        if (item.what.uid != kAny && item.what.uid != arrival.uid) return kPermissionViolation;
        const std::uint64_t moved = room(item.what, item.offset, arrival);
        bool used_up = (item.what.options & kUseOnce) != 0;
        if ((item.what.options & kManageLocal) != 0) {
          item.offset += moved;
          used_up =
              used_up || (item.what.min_free != 0 && item.what.length - item.offset < item.what.min_free);
        }
        tell(2 * static_cast<int>(arrival.move), list, item.what.user, moved);
        if (list == kOverflow) {
          unexpected.push_back({arrival, moved, &item});
          ++item.held;
        }
        if (used_up) {
          item.linked = false;
          tell(kEventAutoUnlink, list, item.what.user, 0);
          lists[list].erase(lists[list].begin() + static_cast<std::ptrdiff_t>(i));
        }
        return kDelivered;
      }
    }
    return kDropped;
  }

  void search(const NewEntry& what, bool remove) {
    bool found = false;
    for (std::size_t i = 0; i < unexpected.size();) {
      if (!takes(what, 0, unexpected[i].arrival)) {
        ++i;
        continue;
      }
      found = true;
      if (remove) {
        take_unexpected(i, what.user);
      } else {
        tell(kEventSearch, kOverflow, what.user, unexpected[i].moved);
        ++i;
      }
      if ((what.options & kUseOnce) != 0) return;
    }
    if (!found) tell(kEventSearch, 0, what.user, 0, kNoMatch);
  }

  bool unlink(Item* item) {
    if (item->held != 0) return false;
    auto& list = lists[item->what.list];
    list.erase(std::find(list.begin(), list.end(), item));
    item->linked = false;
    return true;
  }
};

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
