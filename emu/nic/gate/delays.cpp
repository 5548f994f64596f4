// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/delays.hpp"

#include "emu/base/wait.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/thread_word.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>

namespace orrery::nic {

Errc Delays::hold_back(const Request& request, std::int64_t delay_ns) {
  if (delay_ns == 0 && count_.load(std::memory_order_acquire) == 0) return Errc::not_done;
  // Made before the lock, in vain when nothing is in its way: to read the program's memory may wait for
  // the thread that serves its faults, which may have to post an operation itself first.
  std::list<Delayed> kept;
  kept.push_back({.request = request});
  // The program may change its source once the post has returned, but that of a block transfer or of a
  // message to a buffer, whose event says when: so the engine, or a frame without room, which may get it when
  // its time comes, has a source that outlives this record.
  const wire::VerbTraits& verb = wire::traits(request.op);
  if (verb.payload && verb.unit == wire::Unit::region &&
      (request.flags & (kBlockTransfer | kLocalOffset)) == 0) {
    const auto* const from = reinterpret_cast<const std::byte*>(request.local_address);
    Delayed& one = kept.front();
    one.payload.assign(from, from + request.length);
    one.request.local_address = reinterpret_cast<std::uint64_t>(one.payload.data());
  }
  std::int64_t due = monotonic_ns() + delay_ns;
  {
    const std::lock_guard lock(mu_);
    bool behind = false;
    for (const Delayed& before : list_) {
      const bool ordered = before.request.peer == request.peer && (request.flags & kInOrder) != 0;
      const bool fenced = (request.flags & kFence) != 0 ||
                          ((request.flags & kBlockTransfer) != 0 && (before.request.flags & kFence) != 0);
      if (!ordered && !fenced) continue;
      behind = true;
      due = std::max(due, before.due_ns);
    }
    if (delay_ns == 0 && !behind) return Errc::not_done;
    if (list_.size() >= kCapacity) return Errc::no_resource;
    auto place = list_.end();
    while (place != list_.begin() && std::prev(place)->due_ns > due) --place;
    kept.front().due_ns = due;
    list_.splice(place, kept);
    retain(request.completion);
    count_.fetch_add(1, std::memory_order_release);
  }
  ring_if_asleep();
  return Errc::ok;
}

Errc Delays::hold(const Request& request) {
  const bool is_credit = request.op == Op::credit;
  std::list<Delayed> kept;
  kept.push_back({.request = request, .due_ns = monotonic_ns(), .is_held = true});
  Delayed& one = kept.front();
  if (is_credit) {
    const auto* const from = reinterpret_cast<const std::byte*>(request.local_address);
    one.payload.assign(from, from + request.length);
    one.request.local_address = reinterpret_cast<std::uint64_t>(one.payload.data());
  }
  transport_.count_in_flight(*request.peer, 1);
  bool is_newer = false;
  {
    const std::lock_guard lock(mu_);
    const auto replaces = [&](const Delayed& before) {
      return is_credit && before.request.op == Op::credit && before.is_held && !before.running &&
             before.request.peer == request.peer && before.request.remote_address == request.remote_address &&
             before.request.remote == request.remote;
    };
    const auto before = std::find_if(list_.begin(), list_.end(), replaces);
    is_newer = before != list_.end();
    if (is_newer) {
      before->payload.swap(one.payload);
      before->request.local_address = reinterpret_cast<std::uint64_t>(before->payload.data());
    } else {
      list_.splice(list_.end(), kept);
      retain(request.completion);
      count_.fetch_add(1, std::memory_order_release);
    }
  }
  if (is_newer) {
    transport_.count_in_flight(*request.peer, -1);  // its lock comes before that of the list
    abandon(request.completion);
    return Errc::ok;
  }
  ring_if_asleep();
  return Errc::ok;
}

bool Delays::run() {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  if (running_.exchange(true, std::memory_order_acquire)) return true;
  const std::int64_t now = monotonic_ns();
  for (;;) {
    Delayed* first = nullptr;
    {
      const std::lock_guard lock(mu_);
      if (list_.empty() || list_.front().due_ns > now) break;
      first = &list_.front();
      first->running = true;
    }
    if (!carry_out(*first)) {
      const std::lock_guard lock(mu_);
      first->running = false;
      break;
    }
    if (first->is_held) transport_.count_in_flight(*first->request.peer, -1);
    std::list<Delayed> done;  // freed without the lock
    const std::lock_guard lock(mu_);
    // Later ones with an earlier time may stand before it by now.
    const auto at =
        std::find_if(list_.begin(), list_.end(), [first](const Delayed& d) { return &d == first; });
    done.splice(done.end(), list_, at);
    count_.fetch_sub(1, std::memory_order_release);
  }
  running_.store(false, std::memory_order_release);
  return count_.load(std::memory_order_acquire) != 0;
}

// One delayed operation, now. False: there is no room for it on the wire, later.
bool Delays::carry_out(Delayed& d) {
  const Begun begun = router_.route(d.request, kSharedHazardSlot);
  if (begun.kind == Begun::Kind::no_room) return false;
  if (begun.kind == Begun::Kind::ended) complete(d.request.completion, begun.status, Teller::other);
  release(d.request.completion);
  return true;
}

void Delays::ring_if_asleep() {
  if (view_.service().poller.load(std::memory_order_relaxed) == Poller::none) services_.ring_self();
}

}  // namespace orrery::nic
