// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"
#include "emu/base/log.hpp"
#include "emu/base/patient_yield.hpp"
#include "emu/base/wait.hpp"
#include "lib/dmapp/issue.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <string_view>

// Locks that wait in a queue (Mellor-Crummey and Scott, 1991): the descriptor names the last one in it, or is
// 0; each waits on a place of its own memory, which the one before it writes to.
//
//   descriptor: 63 lost | 31..0 name of the last place    name: PE + 1 << 10 | place
//
// A holder, or one that waits before others, that dies takes the lock with it: the one behind it sees that,
// marks the descriptor as lost, and all others see that.
namespace orrery::dmapp {

namespace {

constexpr std::uint64_t kLost = std::uint64_t{1} << 63;
constexpr std::uint64_t kGranted = 1;
constexpr std::int64_t kLockLookNs = 5'000'000;  // between looks at which PEs live
constexpr std::int64_t kLinkNs = 200'000'000;    // after which one that should have said its name is missed
constexpr unsigned kDefaultLocks = 128;
constexpr unsigned kMostLocks = 1023;

constexpr std::uint64_t name_of(int pe, std::size_t place) {
  return (static_cast<std::uint64_t>(pe) + 1) << 10 | place;
}
constexpr int pe_of(std::uint64_t name) { return static_cast<int>((name & 0xffff'ffff) >> 10) - 1; }
constexpr std::size_t place_of(std::uint64_t name) { return name & 0x3ff; }
constexpr std::uint64_t offset_of(std::size_t place, std::size_t member) {
  return place * sizeof(LockPlace) + member;
}

// A lock that this PE holds or awaits.
struct Held {
  bool used = false;
  bool holds = false;
  std::uint32_t generation = 0;
  dmapp_lock_desc_t* address = nullptr;
  dmapp_seg_desc_t segment{};
  int host = -1;
};
std::mutex g_locks_mu;
std::array<Held, kLockPlaces> g_held;  // guarded by g_locks_mu
std::uint64_t g_epoch_of_held = 0;     // guarded by g_locks_mu: the world that they are of

unsigned most_locks() {
  static const unsigned most = [] {
    const char* const set = ::secure_getenv("DMAPP_MAX_LOCKS");
    if (set == nullptr) return kDefaultLocks;
    const std::string_view text(set);
    unsigned number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && stop == text.data() + text.size() && number >= 1 && number <= kMostLocks)
      return number;
    log::error("DMAPP_MAX_LOCKS={}: expected 1 to {}; {} it is", text, kMostLocks, kDefaultLocks);
    return kDefaultLocks;
  }();
  return most;
}

constexpr std::uint64_t handle_of(std::size_t place, std::uint32_t generation) {
  return std::uint64_t{generation} << 16 | (place + 1);
}

// One word of a PE, by the fast path or not. ok, or what kept it.
struct Words {
  Context& context;
  dmapp_return_t rc = DMAPP_RC_SUCCESS;

  std::uint64_t swap(const Place& place, std::uint64_t value) {
    return amo(place, nic::amo::command(nic::AmoOp::swap, nic::kAmoFetch), value, 0);
  }
  std::uint64_t compare_swap(const Place& place, std::uint64_t from, std::uint64_t to) {
    return amo(place, nic::amo::command(nic::AmoOp::compare_swap, nic::kAmoFetch), from, to);
  }
  std::uint64_t get(const Place& place) {
    std::uint64_t word = 0;
    Issue issue(context, Mode::blocking);
    issue.get(place, &word, sizeof word);
    rc = issue.finish();
    return word;
  }
  void put(const Place& place, std::uint64_t word) {
    Issue issue(context, Mode::blocking);
    issue.put(place, &word, sizeof word);
    rc = issue.finish();
  }

 private:
  std::uint64_t amo(const Place& place, std::uint8_t command, std::uint64_t a, std::uint64_t b) {
    std::uint64_t old = 0;
    Issue issue(context, Mode::blocking);
    issue.amo(place, command, &old, a, b);
    rc = issue.finish();
    return old;
  }
};

// Waits until a word of this PE's own part is not 0: the value. 0: `give_up` said so, which is asked now and
// then.
template <typename GiveUp>
std::uint64_t await(Words& words, std::uint64_t offset, GiveUp give_up) {
  Context& context = words.context;
  const Place place = context.find_inside(context.pe(), offset);
  const auto* const word = reinterpret_cast<const std::atomic<std::uint64_t>*>(
      reinterpret_cast<const std::byte*>(&context.world().inside()) + offset);
  std::uint64_t value = 0;
  const bool timed = context.nic().clock() != nullptr;
  const auto there = [&] {
    // By the NIC where time is modelled: that is what lets it pass.
    value = timed ? words.get(place) : word->load(std::memory_order_acquire);
    return value != 0;
  };
  const WaitBudget budget{.spins = 50, .yields = timed ? 20u : 0u};
  // The lock goes to the one that has waited longest, so that every turn of it waits for a core.
  PatientYield yield;
  std::int64_t look_at = monotonic_ns() + kLockLookNs;
  for (;;) {
    if (spin_then_yield(budget, there)) return value;
    context.progress();
    if (!timed) yield();
    if (monotonic_ns() < look_at) continue;
    look_at = monotonic_ns() + kLockLookNs;
    if (give_up()) return there() ? value : 0;
  }
}

// The lock is lost to all PEs.
dmapp_return_t lose(Words& words, const Place& lock) {
  (void)words.swap(lock, kLost);
  return DMAPP_RC_TRANSACTION_ERROR;
}

struct Taken {
  std::size_t place = kLockPlaces;
  std::uint64_t handle = 0;
};

// A place for a lock that is to be held; place kLockPlaces: as many as may be are in use.
Taken take_place(const Held& asked) {
  const std::lock_guard lock(g_locks_mu);
  const std::uint64_t epoch = g_epoch.load(std::memory_order_relaxed);
  if (g_epoch_of_held != epoch) {
    for (Held& held : g_held) held.used = false;
    g_epoch_of_held = epoch;
  }
  const unsigned most = most_locks();
  for (std::size_t i = 0; i < most; ++i) {
    if (g_held[i].used) continue;
    const std::uint32_t generation = g_held[i].generation + 1;
    g_held[i] = asked;
    g_held[i].used = true;
    g_held[i].generation = generation;
    return {i, handle_of(i, generation)};
  }
  return {};
}

// REQUIRES: no PE writes to it any more, but the one that was given the lock. Where a lock is lost, one that
// waits behind may still say its name, and one before may still grant it: such a place is not used again.
void give_place(std::size_t place) {
  const std::lock_guard lock(g_locks_mu);
  g_held[place].used = false;
}

void note_held(std::size_t place) {
  const std::lock_guard lock(g_locks_mu);
  g_held[place].holds = true;
}

dmapp_return_t acquire(dmapp_lock_desc_t* address, const dmapp_seg_desc_t* segment, int host,
                       std::uint64_t flags, bool waits, dmapp_lock_handle_t* handle) {
  const Visit visit;
  Context* const context = visit.context();
  if (context == nullptr || handle == nullptr || flags != 0) return DMAPP_RC_INVALID_PARAM;
  Place lock;
  const dmapp_return_t found = context->find(segment, host, address, sizeof *address, &lock);
  if (found != DMAPP_RC_SUCCESS) return found;
  if (lock.address % 8 != 0) return DMAPP_RC_ALIGNMENT_ERROR;
  const Taken taken = take_place({.address = address, .segment = *segment, .host = host});
  if (taken.place == kLockPlaces) return DMAPP_RC_RESOURCE_ERROR;
  // Before any other PE knows the name.
  const auto fail = [&](dmapp_return_t rc) {
    give_place(taken.place);
    return rc;
  };
  World& world = context->world();
  LockPlace& mine = world.inside().locks[taken.place];
  mine.next.store(0, std::memory_order_relaxed);
  mine.granted.store(0, std::memory_order_relaxed);
  const std::uint64_t name = name_of(context->pe(), taken.place);
  Words words{*context};
  if (!waits) {
    const std::uint64_t old = words.compare_swap(lock, 0, name);
    if (words.rc != DMAPP_RC_SUCCESS) return fail(words.rc);
    if (old != 0) return fail((old & kLost) != 0 ? DMAPP_RC_TRANSACTION_ERROR : DMAPP_RC_BUSY);
  } else {
    const std::uint64_t before = words.swap(lock, name);
    if (words.rc != DMAPP_RC_SUCCESS) return fail(words.rc);
    if ((before & kLost) != 0) return lose(words, lock);
    if (before != 0) {
      const int pe = pe_of(before);
      if (pe < 0 || pe >= context->npes()) return lose(words, lock);  // no lock was here
      if (pe != context->pe()) world.watch(pe);
      words.put(context->find_inside(pe, offset_of(place_of(before), offsetof(LockPlace, next))), name);
      if (words.rc != DMAPP_RC_SUCCESS) return lose(words, lock);
      const std::uint64_t granted = await(words, offset_of(taken.place, offsetof(LockPlace, granted)), [&] {
        return !Visit::is_current() || !world.alive(pe) || (words.get(lock) & kLost) != 0 ||
               words.rc != DMAPP_RC_SUCCESS;
      });
      if (granted != kGranted) return lose(words, lock);
    }
  }
  note_held(taken.place);
  *handle = taken.handle;
  return DMAPP_RC_SUCCESS;
}

// Whether some PE has died that may have been about to say that it waits.
bool anybody_died(const World& world) {
  for (int pe = 0; pe < world.npes(); ++pe) {
    world.watch(pe);
    if (!world.alive(pe)) return true;
  }
  return false;
}

// `ended`: no PE writes to the place any more.
dmapp_return_t release(std::size_t place, const Held& held, bool* ended) {
  *ended = false;
  const Visit visit;
  Context* const context = visit.context();
  if (context == nullptr) return DMAPP_RC_INVALID_PARAM;
  Place lock;
  const dmapp_return_t found =
      context->find(&held.segment, held.host, held.address, sizeof *held.address, &lock);
  if (found != DMAPP_RC_SUCCESS) return found;
  // What was done under the lock is seen by the next one that takes it.
  const dmapp_return_t done = dmapp_gsync_wait();
  Words words{*context};
  const LockPlace& mine = context->world().inside().locks[place];
  const std::uint64_t name = name_of(context->pe(), place);
  if (mine.next.load(std::memory_order_acquire) == 0) {
    const std::uint64_t old = words.compare_swap(lock, name, 0);
    if (words.rc != DMAPP_RC_SUCCESS) return words.rc;
    *ended = old == name;
    if (*ended) return done;
    if ((old & kLost) != 0) return DMAPP_RC_TRANSACTION_ERROR;
  }
  const std::int64_t missed_at = monotonic_ns() + kLinkNs;
  const std::uint64_t next = await(words, offset_of(place, offsetof(LockPlace, next)), [&] {
    return !Visit::is_current() || (monotonic_ns() > missed_at && anybody_died(context->world()));
  });
  const int pe = pe_of(next);
  if (next == 0 || pe < 0 || pe >= context->npes()) return lose(words, lock);
  *ended = true;
  words.put(context->find_inside(pe, offset_of(place_of(next), offsetof(LockPlace, granted))), kGranted);
  return words.rc == DMAPP_RC_SUCCESS ? done : lose(words, lock);
}

// Takes the one that `is_it` says out of those that are held, and releases it.
template <typename IsIt>
dmapp_return_t release_one(IsIt is_it) {
  std::size_t place = kLockPlaces;
  Held held;
  {
    const std::lock_guard lock(g_locks_mu);
    if (g_epoch_of_held != g_epoch.load(std::memory_order_relaxed)) return DMAPP_RC_NOT_FOUND;
    for (std::size_t i = 0; i < kLockPlaces && place == kLockPlaces; ++i) {
      if (g_held[i].used && g_held[i].holds && is_it(i, g_held[i])) place = i;
    }
    if (place == kLockPlaces) return DMAPP_RC_NOT_FOUND;
    held = g_held[place];
    g_held[place].holds = false;  // no other thread releases it meanwhile
  }
  bool ended = false;
  const dmapp_return_t rc = release(place, held, &ended);
  if (ended) give_place(place);
  return rc;
}

}  // namespace
}  // namespace orrery::dmapp

using orrery::dmapp::here;

extern "C" {

dmapp_return_t dmapp_lock_acquire(dmapp_lock_desc_t* lock_addr, dmapp_seg_desc_t* lock_seg,
                                  dmapp_pe_t lock_host, uint64_t flags, dmapp_lock_handle_t* handle) {
  return orrery::dmapp::acquire(lock_addr, lock_seg, lock_host, flags, true, handle);
}

dmapp_return_t dmapp_lock_try(dmapp_lock_desc_t* lock_addr, dmapp_seg_desc_t* lock_seg, dmapp_pe_t lock_host,
                              uint64_t flags, dmapp_lock_handle_t* handle) {
  return orrery::dmapp::acquire(lock_addr, lock_seg, lock_host, flags, false, handle);
}

dmapp_return_t dmapp_lock_release(dmapp_lock_handle_t handle, uint64_t flags) {
  if (here() == nullptr || flags != 0) return DMAPP_RC_INVALID_PARAM;
  return orrery::dmapp::release_one([handle](std::size_t place, const orrery::dmapp::Held& held) {
    return orrery::dmapp::handle_of(place, held.generation) == handle;
  });
}

dmapp_return_t dmapp_lock_release_addr(dmapp_lock_desc_t* lock_addr, dmapp_pe_t lock_host, uint64_t flags) {
  const Context* const context = here();
  if (context == nullptr || lock_addr == nullptr || flags != 0 || lock_host < 0 ||
      lock_host >= context->npes())
    return DMAPP_RC_INVALID_PARAM;
  return orrery::dmapp::release_one([=](std::size_t, const orrery::dmapp::Held& held) {
    return held.address == lock_addr && held.host == lock_host;
  });
}

}  // extern "C"
