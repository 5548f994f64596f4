// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/match_unit.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace orrery::nic::match {

struct Told {
  int type;
  int list;
  std::uint64_t user;
  std::uint64_t moved;
  int fail;
  friend bool operator==(const Told&, const Told&) = default;
};

inline std::string text(const Told& told) {
  return "type " + std::to_string(told.type) + " list " + std::to_string(told.list) + " user " +
         std::to_string(told.user) + " moved " + std::to_string(told.moved) + " fail " +
         std::to_string(told.fail);
}

// The rules of a match unit over plain lists that are walked one by one: what it tells, in order.
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
    if (item->held != 0 || !item->linked) return false;
    auto& list = lists[item->what.list];
    list.erase(std::find(list.begin(), list.end(), item));
    item->linked = false;
    return true;
  }
};

}  // namespace orrery::nic::match
