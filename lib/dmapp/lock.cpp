// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"
#include "emu/base/log.hpp"
#include "emu/base/patient_yield.hpp"
#include "emu/base/wait.hpp"
#include "lib/dmapp/issue.hpp"
#include "lib/dmapp/lock_loss.hpp"
#include "lib/dmapp/lock_protocol.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <string_view>

// The calls of locks: places for those that are held, and the protocol (lock_protocol.hpp) over the NIC.
namespace orrery::dmapp {

namespace {

constexpr std::int64_t kLockLookNs = 5'000'000;  // between looks at which PEs live
constexpr std::int64_t kLinkNs = 200'000'000;    // after which one that should have said its name is missed
constexpr unsigned kDefaultLocks = 128;
constexpr unsigned kMostLocks = 1023;

constexpr std::uint64_t offset_of(std::size_t place, lock::LockWord word) {
  constexpr std::size_t kMembers[] = {offsetof(LockPlace, next), offsetof(LockPlace, granted),
                                      offsetof(LockPlace, lost)};
  return place * sizeof(LockPlace) + kMembers[static_cast<std::size_t>(word)];
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

thread_local int t_lost_with = -1;  // lock_lost_with()

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

// The protocol's words by the NIC, of one lock and one place of this PE.
class Words {
 public:
  Words(Context& context, const Place& lock, std::size_t place)
      : context_(context), lock_(lock), place_(place), missed_at_(monotonic_ns() + kLinkNs) {}

  dmapp_return_t rc() const { return rc_; }
  Context& context() const { return context_; }

  std::uint64_t swap(std::uint64_t value) {
    return amo(nic::amo::command(nic::AmoOp::swap, nic::kAmoFetch), value, 0);
  }
  std::uint64_t compare_swap(std::uint64_t from, std::uint64_t to) {
    return amo(nic::amo::command(nic::AmoOp::compare_swap, nic::kAmoFetch), from, to);
  }
  std::uint64_t get() { return get(lock_); }
  void put(int pe, lock::LockWord word, std::size_t place, std::uint64_t value) {
    Issue issue(context_, Mode::blocking);
    issue.put(context_.find_inside(pe, offset_of(place, word)), &value, sizeof value);
    rc_ = issue.finish();
  }
  std::uint64_t get(int pe, lock::LockWord word, std::size_t place) {
    return get(context_.find_inside(pe, offset_of(place, word)));
  }
  std::uint64_t own(lock::LockWord word) const { return member(word).load(std::memory_order_acquire); }
  void set_own(lock::LockWord word, std::uint64_t value) const {
    member(word).store(value, std::memory_order_release);
  }
  bool ok() const { return rc_ == DMAPP_RC_SUCCESS; }
  void watch(int pe) const {
    if (pe != context_.pe()) context_.world().watch(pe);
  }
  bool alive(int pe) const { return context_.world().alive(pe); }
  static bool ended() { return !Visit::is_current(); }
  bool missed() const { return monotonic_ns() > missed_at_ && !all_live(); }
  bool all_live() const {
    const World& world = context_.world();
    for (int pe = 0; pe < world.npes(); ++pe) {
      world.watch(pe);
      if (!world.alive(pe)) return false;
    }
    return true;
  }

 private:
  std::atomic<std::uint64_t>& member(lock::LockWord word) const {
    LockPlace& mine = context_.world().inside().locks[place_];
    switch (word) {
      case lock::LockWord::next:
        return mine.next;
      case lock::LockWord::granted:
        return mine.granted;
      case lock::LockWord::lost:
        break;
    }
    return mine.lost;
  }
  std::uint64_t get(const Place& place) {
    std::uint64_t word = 0;
    Issue issue(context_, Mode::blocking);
    issue.get(place, &word, sizeof word);
    rc_ = issue.finish();
    return word;
  }
  std::uint64_t amo(std::uint8_t command, std::uint64_t a, std::uint64_t b) {
    std::uint64_t old = 0;
    Issue issue(context_, Mode::blocking);
    issue.amo(lock_, command, &old, a, b);
    rc_ = issue.finish();
    return old;
  }

  Context& context_;
  const Place lock_;
  const std::size_t place_;
  const std::int64_t missed_at_;
  dmapp_return_t rc_ = DMAPP_RC_SUCCESS;
};

// Returns when the word that the turn awaits is there, or when it gave up.
template <typename Turn>
void await(Words& words, Turn& turn) {
  Context& context = words.context();
  // There each look lets time pass, and many in vain are a wait.
  const bool timed = context.nic().clock() != nullptr;
  const auto there = [&] { return words.own(Turn::awaits()) != 0; };
  const WaitBudget budget{.spins = timed ? 1u : 50u, .yields = 0};
  // The lock goes to the one that has waited longest, so that every turn of it waits for a core.
  PatientYield yield;
  std::int64_t look_at = monotonic_ns() + kLockLookNs;
  for (;;) {
    if (spin_then_yield(budget, there)) return;
    context.progress();
    if (!timed) yield();
    if (monotonic_ns() < look_at) continue;
    look_at = monotonic_ns() + kLockLookNs;
    // That asks other PEs, at moments of real time: under a clock only where one has died.
    if (timed && !Words::ended() && words.all_live()) continue;
    if (turn.gave_up()) return;
  }
}

// The turn's end: neither again nor wait.
template <typename Turn>
lock::Step play(Words& words, Turn& turn) {
  for (;;) {
    const lock::Step step = turn.step();
    if (step == lock::Step::wait)
      await(words, turn);
    else if (step != lock::Step::again)
      return step;
  }
}

dmapp_return_t return_of_step(lock::Step step, const Words& words) {
  switch (step) {
    case lock::Step::busy:
      return DMAPP_RC_BUSY;
    case lock::Step::lost:
      return DMAPP_RC_TRANSACTION_ERROR;
    case lock::Step::failed:
      return words.rc();
    default:
      return DMAPP_RC_SUCCESS;
  }
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
  t_lost_with = -1;
  const Visit visit;
  Context* const context = visit.context();
  if (context == nullptr || handle == nullptr || flags != 0) return DMAPP_RC_INVALID_PARAM;
  Place lock;
  const dmapp_return_t found = context->find(segment, host, address, sizeof *address, &lock);
  if (found != DMAPP_RC_SUCCESS) return found;
  if (lock.address % 8 != 0) return DMAPP_RC_ALIGNMENT_ERROR;
  const Taken taken = take_place({.address = address, .segment = *segment, .host = host});
  if (taken.place == kLockPlaces) return DMAPP_RC_RESOURCE_ERROR;
  LockPlace& mine = context->world().inside().locks[taken.place];
  mine.next.store(0, std::memory_order_relaxed);
  mine.granted.store(0, std::memory_order_relaxed);
  mine.lost.store(0, std::memory_order_relaxed);
  Words words(*context, lock, taken.place);
  lock::Acquire turn(words, lock::name_of(context->pe(), taken.place), context->npes(), waits);
  const lock::Step step = play(words, turn);
  if (step != lock::Step::held) {
    if (turn.place_is_free()) give_place(taken.place);
    if (step == lock::Step::lost) t_lost_with = turn.lost_with();
    return return_of_step(step, words);
  }
  note_held(taken.place);
  *handle = taken.handle;
  return DMAPP_RC_SUCCESS;
}

// `ended`: no PE writes to the place any more.
dmapp_return_t release(std::size_t place, const Held& held, bool* ended) {
  *ended = false;
  t_lost_with = -1;
  const Visit visit;
  Context* const context = visit.context();
  if (context == nullptr) return DMAPP_RC_INVALID_PARAM;
  Place lock;
  const dmapp_return_t found =
      context->find(&held.segment, held.host, held.address, sizeof *held.address, &lock);
  if (found != DMAPP_RC_SUCCESS) return found;
  // What was done under the lock is seen by the next one that takes it.
  const dmapp_return_t done = dmapp_gsync_wait();
  Words words(*context, lock, place);
  lock::Release turn(words, lock::name_of(context->pe(), place), context->npes());
  const lock::Step step = play(words, turn);
  *ended = turn.place_is_free();
  if (step == lock::Step::lost) t_lost_with = turn.lost_with();
  return step == lock::Step::released ? done : return_of_step(step, words);
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

int lock_lost_with() { return t_lost_with; }

}  // namespace orrery::dmapp

using orrery::dmapp::Context;
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
