// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/mapping.hpp"

#include "emu/base/config.hpp"
#include "emu/memory/address_space.hpp"
#include "emu/memory/lent_space.hpp"
#include "lib/cci/debug.hpp"
#include "lib/cci/endpoint.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace orrery::cci::mapping {

namespace {

struct State {
  std::mutex mu;  // the file, and all work on it
  std::unique_ptr<memory::AddressSpace> space;
  std::atomic<bool> has_space{false};
  std::atomic<bool> off{false};  // for good
  std::atomic<std::uint64_t> moving_begin{0}, moving_end{0};

  std::mutex list_mu;
  std::vector<Endpoint*> endpoints;
};

// Never destroyed: threads of endpoints that the client has left may be at work when the process ends.
State& state() {
  static State& all = *new State;
  return all;
}

void each_endpoint(const std::function<void(Endpoint&)>& body) {
  const std::lock_guard lock(state().list_mu);
  for (Endpoint* const endpoint : state().endpoints) body(*endpoint);
}

bool in_file(State& all, memory::Range range) {
  if (all.space == nullptr || range.empty()) return false;
  const auto info = all.space->inspect(range.begin, range.size());
  return info.ok() && info.value().cover == memory::Cover::direct;
}

// On the thread that makes the process's first NIC, whose memory file this one stands in the way of.
void give_up() {
  State& all = state();
  const std::lock_guard lock(all.mu);
  all.off.store(true, std::memory_order_relaxed);
  each_endpoint([](Endpoint& endpoint) {
    endpoint.set_mapped({0, UINT64_MAX}, [](memory::Range) { return false; });
  });
  all.space.reset();
  all.has_space.store(false, std::memory_order_relaxed);
}

// REQUIRES: all.mu.
bool make_space(State& all) {
  if (all.space != nullptr) return true;
  if (all.off.load(std::memory_order_relaxed)) return false;
  // That of a NIC: peers' copies are not held off while its service thread moves memory, so CCI leaves it be.
  if (memory::space_exists() || config::text("ORRERY_ADOPT") == "never") {
    all.off.store(true, std::memory_order_relaxed);
    return false;
  }
  auto space = memory::AddressSpace::create({});
  if (!space.ok()) {
    all.off.store(true, std::memory_order_relaxed);
    return false;
  }
  all.space = std::move(space).value();
  all.has_space.store(true, std::memory_order_relaxed);
  memory::lend_space(&give_up);
  return true;
}

struct Guard final : memory::SwitchGuard {
  const std::function<bool()>& goes_on;
  explicit Guard(const std::function<bool()>& g) : goes_on(g) {}
  Status before_switch(memory::Range chunk) override {
    if (!goes_on()) return Errc::invalid_state;
    bool held_off = true;
    each_endpoint([&](Endpoint& endpoint) { held_off = held_off && endpoint.hold_off(chunk); });
    return held_off ? Status{} : Status{Errc::timeout};
  }
  void after_switch(memory::Range, bool) override {}
};

// Runs `work` on memory of the range, which counts as being moved meanwhile. REQUIRES: all.mu.
void while_moving(State& all, memory::Range range, const std::function<void()>& work) {
  all.moving_begin.store(range.begin, std::memory_order_seq_cst);
  all.moving_end.store(range.end, std::memory_order_seq_cst);
  work();
  // First this: what is registered from here on is not held off.
  all.moving_end.store(0, std::memory_order_seq_cst);
  each_endpoint([&](Endpoint& endpoint) {
    endpoint.set_mapped(range, [&](memory::Range piece) { return in_file(all, piece); });
  });
}

}  // namespace

void add(Endpoint* endpoint) {
  const std::lock_guard lock(state().list_mu);
  state().endpoints.push_back(endpoint);
}

void remove(Endpoint* endpoint) {
  const std::lock_guard lock(state().list_mu);
  std::erase(state().endpoints, endpoint);
}

bool can_guard() {
  State& all = state();
  const std::lock_guard lock(all.mu);
  return make_space(all) || memory::space_exists();
}

bool move(memory::Range range, const std::function<bool()>& goes_on) {
  State& all = state();
  const std::lock_guard lock(all.mu);
  if (!make_space(all)) return false;
  const memory::Range hull = memory::page_hull(range);
  while_moving(all, hull, [&] {
    Guard guard(goes_on);
    const Status moved = all.space->adopt(range.begin, range.size(), guard);
    if (!moved.ok())
      debug::tell(debug::Topic::ep, std::string("registered memory stays where it is: ") +
                                        std::string(errc_name(moved.code())));
  });
  return in_file(all, range);
}

void look_while(memory::Range range, const std::function<void(bool)>& body) {
  State& all = state();
  const std::unique_lock lock(all.mu, std::try_to_lock);
  body(lock.owns_lock() && in_file(all, range));
}

bool is_moving(memory::Range range) {
  const std::uint64_t end = state().moving_end.load(std::memory_order_seq_cst);
  return end != 0 &&
         memory::page_hull(range).overlaps({state().moving_begin.load(std::memory_order_seq_cst), end});
}

void end(memory::Range range, bool stalled) {
  State& all = state();
  if (!all.has_space.load(std::memory_order_relaxed) || range.empty()) return;
  if (!stalled && !is_moving(range)) return;
  const std::lock_guard lock(all.mu);
  if (!stalled || all.space == nullptr) return;
  const memory::Range hull = memory::page_hull(range);
  each_endpoint([&](Endpoint& endpoint) { endpoint.set_mapped(hull, [](memory::Range) { return false; }); });
  while_moving(all, hull, [&] {
    const std::function<bool()> always = [] { return true; };
    Guard guard(always);
    if (!all.space->release(hull.begin, hull.size(), guard).ok())
      debug::tell(debug::Topic::ep, "a peer that is stopped may still write to deregistered memory");
  });
}

void with_file(const std::function<void(int)>& body) {
  State& all = state();
  const std::lock_guard lock(all.mu);
  body(all.space != nullptr ? all.space->file() : -1);
}

// Not `mu`: a move waits for the fork to end, between two parts.
void lock_for_fork() { state().list_mu.lock(); }

void unlock_after_fork(bool is_child) {
  State& all = state();
  if (is_child) {
    all.endpoints.clear();
    all.off.store(true, std::memory_order_relaxed);
    all.has_space.store(false, std::memory_order_relaxed);
    all.moving_end.store(0, std::memory_order_relaxed);
    // A thread of the parent may have held it, which is not here. What it guarded stays.
    (void)all.space.release();
    new (&all.mu) std::mutex;
  }
  all.list_mu.unlock();
}

}  // namespace orrery::cci::mapping
