// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/match_classic.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace orrery::nic::match::classic {

// An event as the model has it.
struct Told {
  int type;
  std::uint64_t user;
  std::uint64_t moved;
  std::uint64_t offset;
  int fail;
  int threshold;
  std::uint32_t link;
  friend bool operator==(const Told&, const Told&) = default;
};

inline std::string text(const Told& told) {
  return "type " + std::to_string(told.type) + " user " + std::to_string(told.user) + " moved " +
         std::to_string(told.moved) + " offset " + std::to_string(told.offset) + " fail " +
         std::to_string(told.fail) + " threshold " + std::to_string(told.threshold) + " link " +
         std::to_string(told.link);
}

// The rules of Portals 3.3 over plain lists that are walked one by one: each call's outcome, and what is
// told, in order. Entries and descriptors have the numbers that the caller gave them.
class Lists {
 public:
  static constexpr std::uint32_t kPortals = 4;
  static constexpr std::uint32_t kAccesses = 4;

  struct Item {
    std::uint64_t id = 0;
    NewMatch what;
    bool exists = true;
    bool bound = false;
    bool attached = false;
    bool unlinks = false;
    bool full = false;
    std::uint64_t offset = 0;
    int in_flight = 0;
    Memory memory;
  };
  struct Message {
    Item* item = nullptr;
    std::uint64_t moved = 0;
    std::uint64_t offset = 0;
    std::uint32_t link = 0;
  };

  std::deque<Told> told;
  std::array<Access, kAccesses> accesses{};
  std::int64_t dropped = 0;

  Errc insert(std::uint64_t id, NewMatch what, std::uint64_t base) {
    Item& item = items_[id];
    item.id = id;
    item.what = what;
    std::vector<Item*>& list = lists_[what.portal];
    auto where = what.before ? list.begin() : list.end();
    if (base != 0) {
      where = std::find(list.begin(), list.end(), &items_.at(base));
      if (!what.before) ++where;
    }
    list.insert(where, &item);
    return Errc::ok;
  }
  bool is_there(std::uint64_t id) const { return items_.at(id).exists; }
  bool has_memory(std::uint64_t id) const { return is_there(id) && items_.at(id).attached; }

  Errc attach(std::uint64_t id, const Memory& memory, bool unlinks) {
    Item& item = items_.at(id);
    if (item.attached) return Errc::invalid_state;
    fill(item, memory);
    item.unlinks = unlinks;
    item.attached = true;
    return Errc::ok;
  }
  Errc bind(std::uint64_t id, const Memory& memory, bool unlinks) {
    Item& item = items_[id];
    item.id = id;
    item.bound = true;
    return attach(id, memory, unlinks);
  }
  Errc detach(std::uint64_t id) {
    Item& item = items_.at(id);
    if (item.in_flight != 0) return Errc::not_done;
    lose_memory_and_entry(item);
    return Errc::ok;
  }
  Errc remove(std::uint64_t id) {
    Item& item = items_.at(id);
    if (item.in_flight != 0) return Errc::not_done;
    leave(item);
    return Errc::ok;
  }
  Errc update(std::uint64_t id, const Memory& memory) {
    Item& item = items_.at(id);
    if (item.in_flight != 0) return Errc::not_done;
    fill(item, memory);
    return Errc::ok;
  }

  Fail accept(std::uint64_t message, const Arrival& arrival) {
    Item* const item = arrival.portal < kPortals && may_enter(arrival) ? find(arrival) : nullptr;
    if (item == nullptr) {
      ++dropped;
      return kDropped;
    }
    const std::uint64_t at = place(*item, arrival);
    const std::uint64_t moved = std::min(arrival.length, item->memory.length - at);
    messages_[message] = {item, moved, at, ++links_};
    ++item->in_flight;
    count(*item);
    item->offset += moved;
    item->full =
        item->full ||
        ((item->memory.options & kMaxSize) != 0 &&
         (item->offset > item->memory.length || item->memory.length - item->offset < item->memory.max_size));
    if ((item->memory.options & kNoStart) == 0)
      tell(*item, 2 * kind_of(arrival.move), moved, at, kDelivered, links_);
    return kDelivered;
  }
  void finish(std::uint64_t message, const Arrival& arrival, Fail outcome) {
    const Message& one = messages_.at(message);
    Item& item = *one.item;
    --item.in_flight;
    if ((item.memory.options & kNoEnd) == 0 || outcome != kDelivered)
      tell(item, 2 * kind_of(arrival.move) + 1, outcome == kDelivered ? one.moved : 0, one.offset, outcome,
           one.link);
    unlink_if_done(item);
  }

  // The initiator's side: what leaves through a descriptor.
  bool is_active(std::uint64_t id) const { return has_memory(id) && items_.at(id).memory.threshold != 0; }
  void begin(std::uint64_t id, std::uint64_t message, std::uint64_t moved) {
    Item& item = items_.at(id);
    ++item.in_flight;
    messages_[message] = {&item, moved, 0, ++links_};
    if ((item.memory.options & kNoStart) == 0) tell(item, kSend, moved, 0, kDelivered, links_);
    count(item);
  }
  void end(std::uint64_t message, bool acknowledged) {
    const Message& one = messages_.at(message);
    Item& item = *one.item;
    if ((item.memory.options & kNoEnd) == 0) tell(item, kSend + 1, one.moved, 0, kDelivered, one.link);
    if (acknowledged && item.attached && item.memory.threshold != 0 && item.memory.queue != 0) {
      count(item);
      tell(item, kAcknowledged, one.moved, 0, kDelivered, one.link);
    }
    --item.in_flight;
    unlink_if_done(item);
  }

 private:
  static int kind_of(Move move) { return move == Move::get ? 0 : move == Move::put ? 1 : 2; }
  static void count(Item& item) {
    if (item.memory.threshold > 0) --item.memory.threshold;
  }
  static void fill(Item& item, const Memory& memory) {
    item.memory = memory;
    item.offset = 0;
    item.full = false;
  }
  static std::uint64_t place(const Item& item, const Arrival& arrival) {
    return (item.memory.options & kManageRemote) != 0 ? arrival.remote_offset : item.offset;
  }

  bool may_enter(const Arrival& arrival) const {
    if (arrival.access >= kAccesses) return false;
    const Access& access = accesses[arrival.access];
    return access.allows != 0 && (access.source.nid == kAny || access.source.nid == arrival.initiator.nid) &&
           (access.source.pid == kAny || access.source.pid == arrival.initiator.pid) &&
           (access.uid == kAny || access.uid == arrival.uid) &&
           (access.jid == kAny || access.jid == arrival.jid) &&
           (access.portal == kAny || access.portal == arrival.portal);
  }
  Item* find(const Arrival& arrival) {
    for (Item* const item : lists_[arrival.portal]) {
      if (((item->what.match_bits ^ arrival.match_bits) & ~item->what.ignore_bits) != 0) continue;
      if (item->what.source.nid != kAny && item->what.source.nid != arrival.initiator.nid) continue;
      if (!item->attached || item->memory.threshold == 0 || item->full) continue;
      const bool writes = arrival.move != Move::get;
      const bool reads = arrival.move != Move::put;
      if (writes && (item->memory.options & kAllowPut) == 0) continue;
      if (reads && (item->memory.options & kAllowGet) == 0) continue;
      const std::uint64_t at = place(*item, arrival);
      if (at > item->memory.length) continue;
      if ((item->memory.options & kTruncate) == 0 && arrival.length > item->memory.length - at) continue;
      return item;
    }
    return nullptr;
  }
  void unlink_if_done(Item& item) {
    if (!item.attached || !item.unlinks || item.in_flight != 0) return;
    if (item.memory.threshold != 0 && !item.full) return;
    tell(item, kUnlinked, 0, 0, kDelivered, 0);
    lose_memory_and_entry(item);
  }
  void lose_memory_and_entry(Item& item) {
    item.attached = false;
    if (item.bound) item.exists = false;
    if (!item.bound && item.what.unlinks) leave(item);
  }
  void leave(Item& item) {
    std::vector<Item*>& list = lists_[item.what.portal];
    list.erase(std::find(list.begin(), list.end(), &item));
    item.attached = false;
    item.exists = false;
  }
  void tell(const Item& item, int type, std::uint64_t moved, std::uint64_t offset, Fail fail,
            std::uint32_t link) {
    if (item.memory.queue == 0) return;
    told.push_back({type, item.memory.user, moved, offset, fail, item.memory.threshold, link});
  }

  std::map<std::uint64_t, Item> items_;  // all that ever were; references stay
  std::array<std::vector<Item*>, kPortals> lists_;
  std::map<std::uint64_t, Message> messages_;
  std::uint32_t links_ = 0;
};

}  // namespace orrery::nic::match::classic
