// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/board.hpp"

#include "emu/base/config.hpp"
#include "emu/base/log.hpp"
#include "emu/base/timed_path.hpp"
#include "emu/clock/thread_stat.hpp"
#include "emu/job/process_stat.hpp"

#include <algorithm>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::clock {

namespace {

constexpr std::int64_t kLookNs = 100'000'000;     // how often a PE that waits looks after the one that runs
constexpr std::int64_t kGlanceNs = 2'000'000;     // and after the one that looks, while time stands still
constexpr int kLooksBlocked = 5;                  // without any processor time: blocked in something foreign
constexpr std::int64_t kStuckNs = 1'000'000'000;  // without a turn for any PE: no thread will ask for one
constexpr int kSlicesToPeek = 10;                 // of kLookNs
constexpr int kLooksHint = 100;                   // 10 s of waiting for one PE: it is reported
constexpr std::uint32_t holder_of(std::uint32_t token) { return token >> 1; }

}  // namespace

Turns::Turns(Board& board, Owed owed, std::uint32_t self, const TurnSpins& spins, Debtor& debtor)
    : patience_ns_(static_cast<std::int64_t>(config::number("ORRERY_DEADLOCK")) * 1'000'000'000),
      board_(board),
      owed_(std::move(owed)),
      self_(self),
      shares_node_(owed_.is_shared(self)),
      spins_(spins),
      debtor_(debtor) {}

// The PE that may act first, and when. Keys of one time go by the PE's number.
ORRERY_TIMED_PATH std::uint32_t Turns::earliest(std::int64_t* key) const {
  const std::uint32_t pes = board_.header.pes;
  std::uint32_t best = 0;
  // Sequentially consistent: see give_away.
  std::int64_t least = board_.keys[0].load(std::memory_order_seq_cst);
  for (std::uint32_t pe = 1; pe < pes; ++pe) {
    const std::int64_t k = board_.keys[pe].load(std::memory_order_seq_cst);
    if (k < least) {
      least = k;
      best = pe;
    }
  }
  *key = least;
  return best;
}

// ---- what is owed ----

ORRERY_TIMED_PATH void Turns::expect(std::uint32_t pe, std::int64_t at) {
  if (board_.pes[pe].wakes.load(std::memory_order_relaxed) != Wakes::no &&
      board_.keys[pe].load(std::memory_order_relaxed) > at)
    board_.keys[pe].store(at, std::memory_order_relaxed);
}

// Whether another PE has to do something to that PE's node before that PE goes on at `key`. What is due at
// the same time comes in the order of the numbers; but a PE that waits to be woken only went on for it.
ORRERY_TIMED_PATH bool Turns::owed_before(std::uint32_t pe, std::int64_t key, Effect* effect) const {
  *effect = first_effect(owed_.row(pe));
  if (effect->at > key || effect->at == kNever || effect->pe == pe) return false;
  const PeSlot& slot = board_.pes[pe];
  const Wakes wakes = slot.wakes.load(std::memory_order_relaxed);
  const bool is_woken = wakes == Wakes::yes ||
                        (wakes == Wakes::before && key < board_.ends[pe].load(std::memory_order_relaxed));
  const bool asleep = is_woken && slot.touched.load(std::memory_order_relaxed) == 0;
  return asleep || effect->before(key, pe);
}

ORRERY_TIMED_PATH void Turns::collect_from(std::uint32_t pe, std::int64_t until) {
  self().state.store(PeState::waiting, std::memory_order_relaxed);
  board_.header.owed_until.store(until, std::memory_order_relaxed);
  hand_on(pe, Grant::debts);
  // Its turn over, the turn comes back: this PE is still the earliest.
  (void)await_grant();
}

// ---- turns ----

ORRERY_TIMED_PATH void Turns::hand_on(std::uint32_t next, Grant grant) {
  PeSlot& slot = board_.pes[next];
  board_.header.turns.fetch_add(1, std::memory_order_relaxed);
  // Release: the next one sees everything that was done before its turn. The grant comes last.
  board_.header.token.store(token_of(next, false), std::memory_order_release);
  slot.grant.store(static_cast<std::uint32_t>(grant), std::memory_order_seq_cst);
  if (slot.sleeping.load(std::memory_order_seq_cst) != 0) futex_wake(slot.grant, 1);
}

// The turn goes to the next PE; this PE does not wait for its own. To none when all wait for one that is
// blocked in something foreign. That one may come back at any moment (enter): it writes its key, its state
// and then looks at the token.
ORRERY_TIMED_PATH void Turns::give_away() {
  auto& token = board_.header.token;
  for (;;) {
    std::int64_t key = 0;
    const std::uint32_t next = earliest(&key);
    if (key != kNever) {
      Effect effect;
      if (owed_before(next, key, &effect)) {
        board_.header.owed_until.store(key, std::memory_order_relaxed);
        return hand_on(effect.pe, Grant::debts);
      }
      if (next != self_) return hand_on(next, Grant::turn);
      token.store(token_of(self_, false), std::memory_order_release);
      self().grant.store(static_cast<std::uint32_t>(Grant::turn), std::memory_order_release);
      return;
    }
    bool someone_left = false, foreign = false;
    for (std::uint32_t pe = 0; pe < board_.header.pes; ++pe) {
      // Acquire: whose state says that it is back has its key in place.
      const PeState state = board_.pes[pe].state.load(std::memory_order_acquire);
      someone_left = someone_left || state != PeState::gone;
      foreign = foreign || state == PeState::outside;
    }
    (void)earliest(&key);
    if (key != kNever) continue;
    // Another thread of a PE may still do something: see look_after_holder.
    const bool stuck = someone_left && !foreign && !someone_may_peek();
    board_.header.stuck_ns.store(stuck ? monotonic_ns() : 0, std::memory_order_relaxed);
    token.store(token_of(kNobody, false), std::memory_order_seq_cst);
    if (someone_may_peek()) stand_still();
    // Sequentially consistent: a PE that comes back finds the token free, or we find its key.
    std::uint32_t untaken = token_of(kNobody, false);
    if (!someone_has_key() ||
        !token.compare_exchange_strong(untaken, token_of(self_, true), std::memory_order_acq_rel))
      return;
    go_on();
  }
}

// False, where it `peeks`: the program is to look for what comes from outside.
ORRERY_TIMED_PATH bool Turns::await_grant(bool peeks) {
  PeSlot& mine = self();
  const auto granted = [&] { return mine.grant.load(std::memory_order_acquire) != 0; };
  Watched watched;
  for (;;) {
    if (!spins_.spin(granted)) {
      // Announced before the grant is looked at again: see hand_on.
      mine.sleeping.store(1, std::memory_order_seq_cst);
      while (mine.grant.load(std::memory_order_seq_cst) == 0) {
        if (futex_wait_for(mine.grant, 0, is_next_to_looker() ? kGlanceNs : kLookNs)) continue;
        if (stands()) {
          look_after_looker(watched);
          continue;
        }
        if (look_after_holder(watched)) break;
        // Time goes on without it: it looks now and then all the same, once around its loop.
        if (peeks && ++watched.slices % kSlicesToPeek == 0 &&
            mine.grant.load(std::memory_order_seq_cst) == 0) {
          mine.sleeping.store(0, std::memory_order_relaxed);
          mine.peek.store(Peek::looks, std::memory_order_seq_cst);
          turn_looks_ = 0;
          beside_time_ = true;
          return false;
        }
      }
      mine.sleeping.store(0, std::memory_order_relaxed);
    }
    if (granted()) {
      const std::uint32_t grant = mine.grant.exchange(0, std::memory_order_acquire);
      if (!is_for_time(grant)) {
        if (peeks && begins_to_look(grant)) return false;
        continue;
      }
      std::uint32_t expected = token_of(self_, false);
      // Acquire: pairs with hand_on. It fails when we were overtaken before we woke: then it is another PE's
      // turn, and ours comes again.
      if (!board_.header.token.compare_exchange_strong(expected, token_of(self_, true),
                                                       std::memory_order_acq_rel))
        continue;
      if (grant != static_cast<std::uint32_t>(Grant::debts)) break;
      debtor_.pay(board_.header.owed_until.load(std::memory_order_relaxed));
      give_away();
      watched = {.slices = watched.slices};
    } else if (board_.header.token.load(std::memory_order_acquire) == token_of(self_, true)) {
      break;  // taken over from a PE that does not go on
    }
  }
  mine.state.store(PeState::running, std::memory_order_relaxed);
  mine.peek.store(Peek::no, std::memory_order_seq_cst);
  time_ = board_.keys[self_].load(std::memory_order_relaxed);
  return true;
}

// Looks after the PE that has the turn. True: the turn is ours now.
bool Turns::look_after_holder(Watched& watched) {
  if (board_.header.ended.load(std::memory_order_acquire) != 0) _exit(kExitDeadlock);
  std::uint32_t token = board_.header.token.load(std::memory_order_acquire);
  const std::uint32_t holder = holder_of(token);
  if (holder == kNobody) {
    const std::int64_t since = board_.header.stuck_ns.load(std::memory_order_relaxed);
    std::int64_t key = 0;
    (void)earliest(&key);
    if (since != 0 && monotonic_ns() - since > kStuckNs && key == kNever && !someone_may_peek() &&
        board_.header.token.load(std::memory_order_seq_cst) == token)
      report_deadlock();
  }
  if (holder >= board_.header.pes || holder == self_) return false;
  PeSlot& slot = board_.pes[holder];
  if (token != watched.token) watched = {.token = token, .slices = watched.slices};
  ++watched.looks;
  ++watched.all_looks;
  const int pid = slot.pid.load(std::memory_order_relaxed);
  const int tid = slot.tid.load(std::memory_order_relaxed);
  if (watched.all_looks == kLooksHint) {
    log::warn("virtual time: the others have waited for PE {} for 10 s: it {}", holder,
              pid == 0 ? "has not started" : "computes, or was stopped");
  }
  if (pid == 0) return false;
  const bool dead = !job::process_stat(pid).exists;
  bool blocked = false;
  if (!dead && (token & 1) == 0 && slot.held.load(std::memory_order_relaxed) == 0) {
    const ThreadStat stat = thread_stat(pid, tid);
    if (stat.state != 'S' || stat.ticks != watched.used) watched.looks = 0;
    watched.used = stat.ticks;
    blocked = watched.looks >= kLooksBlocked;
  }
  if (!dead && !blocked) return false;
  if (!board_.header.token.compare_exchange_strong(token, token_of(self_, true), std::memory_order_acq_rel))
    return false;
  board_.keys[holder].store(kNever, std::memory_order_relaxed);
  owed_.forgive(holder);
  // Release: one that comes back meanwhile waits for this before it writes its key (enter).
  slot.state.store(dead ? PeState::gone : PeState::outside, std::memory_order_release);
  if (!dead) {
    const auto overtaken = board_.header.overtaken.fetch_add(1, std::memory_order_relaxed);
    if (overtaken == 0)
      log::warn(
          "virtual time: PE {} is blocked in something that has no virtual time; the others go on "
          "without it, and times are not exact from here",
          holder);
  }
  // Ours, or the earliest one's.
  std::int64_t key = 0;
  const std::uint32_t next = earliest(&key);
  Effect effect;
  if (key != kNever && next == self_ && !owed_before(self_, key, &effect)) return true;
  give_away();
  return false;
}

void Turns::join(std::uint32_t node, std::uint32_t process_slot) {
  PeSlot& mine = self();
  mine.node.store(node, std::memory_order_relaxed);
  mine.process.store(process_slot + 1, std::memory_order_relaxed);
  mine.tid.store(static_cast<int>(syscall(SYS_gettid)), std::memory_order_relaxed);
  mine.pid.store(getpid(), std::memory_order_relaxed);
  mine.state.store(PeState::waiting, std::memory_order_relaxed);
  board_.pe_of_process[process_slot].store(self_ + 1, std::memory_order_release);
  (void)await_grant();
  leave();
}

ORRERY_TIMED_PATH bool Turns::enter() {
  std::uint32_t expected = token_of(self_, false);
  if (board_.header.token.compare_exchange_strong(expected, token_of(self_, true), std::memory_order_acquire))
      [[likely]]
    return true;
  // Overtaken while it was blocked in something foreign: it goes on behind the PE that has the turn. The PE
  // that overtook it may be about to write that it is outside, unless it died there.
  const std::int64_t patience = monotonic_ns() + kLookNs;
  while (self().state.load(std::memory_order_acquire) == PeState::running && monotonic_ns() < patience)
    yield_cpu();
  const std::uint32_t holder = holder_of(expected);
  const std::int64_t at =
      holder < board_.header.pes ? board_.keys[holder].load(std::memory_order_relaxed) : 0;
  time_ = std::max(time_, at == kNever ? 0 : at);
  // In this order, and sequentially consistent: see give_away.
  board_.keys[self_].store(time_, std::memory_order_seq_cst);
  self().state.store(PeState::waiting, std::memory_order_release);
  expected = token_of(kNobody, false);
  if (board_.header.token.compare_exchange_strong(expected, token_of(self_, true),
                                                  std::memory_order_seq_cst)) {
    self().state.store(PeState::running, std::memory_order_relaxed);
    go_on();
  } else {
    (void)await_grant();
  }
  return false;
}

ORRERY_TIMED_PATH void Turns::leave() {
  self().waits_for.store(WaitsFor::nothing, std::memory_order_relaxed);
  board_.header.token.store(token_of(self_, false), std::memory_order_release);
}

void Turns::step_out() {
  board_.header.overtaken.fetch_add(1, std::memory_order_relaxed);
  self().state.store(PeState::outside, std::memory_order_relaxed);
  board_.keys[self_].store(kNever, std::memory_order_relaxed);
  give_away();
}

ORRERY_TIMED_PATH bool Turns::turn_at(std::int64_t key, Wakes wakes, WaitsFor why, bool peeks) {
  PeSlot& mine = self();
  board_.ends[self_].store(key, std::memory_order_relaxed);
  if (wakes != Wakes::no) key = std::min(key, first_effect(owed_.row(self_)).at);
  board_.keys[self_].store(key, std::memory_order_relaxed);
  std::int64_t first = 0;
  const std::uint32_t next = earliest(&first);
  mine.wakes.store(wakes, std::memory_order_relaxed);
  Effect effect;
  if (next == self_ && first != kNever && !owed_before(self_, key, &effect)) [[likely]] {
    mine.wakes.store(Wakes::no, std::memory_order_relaxed);
    time_ = key;
    mine.now.store(key, std::memory_order_relaxed);
    return true;
  }
  mine.waits_for.store(why, std::memory_order_relaxed);
  mine.state.store(PeState::waiting, std::memory_order_relaxed);
  mine.peek.store(peeks ? Peek::may : Peek::no, std::memory_order_relaxed);
  if (std::exchange(does_something_, false)) {
    by_themselves_ = board_.header.by_themselves.load(std::memory_order_relaxed);
    brought_ = board_.header.brought.load(std::memory_order_relaxed);
  }
  give_away();
  if (!await_grant(peeks)) return false;
  mine.wakes.store(Wakes::no, std::memory_order_relaxed);
  mine.now.store(time_, std::memory_order_relaxed);
  return true;
}

bool Turns::run_ahead(std::int64_t key, std::int64_t window) {
  for (std::uint32_t pe = 0; pe < board_.header.pes; ++pe) {
    const std::int64_t other = board_.keys[pe].load(std::memory_order_relaxed);
    if (pe != self_ && other < key && key - other > window) return false;
  }
  board_.keys[self_].store(key, std::memory_order_relaxed);
  self().now.store(key, std::memory_order_relaxed);
  time_ = key;
  return true;
}

// Moves the mark to (at, number); false: it is further already.
bool Turns::move_on(Board::Mark& mark, std::int64_t at, std::uint32_t number) {
  const std::int64_t last = mark.at.load(std::memory_order_relaxed);
  if (at < last || (at == last && number < mark.by.load(std::memory_order_relaxed))) return false;
  mark.at.store(at, std::memory_order_relaxed);
  mark.by.store(number, std::memory_order_relaxed);
  return true;
}

void Turns::note_seen(std::uint32_t row, std::int64_t at, std::uint32_t number) {
  Board::Seen& seen = board_.seen[row];
  (void)move_on(seen.looked, at, self_ + 1);
  const std::int64_t changed = seen.changed.at.load(std::memory_order_relaxed);
  if (at < changed || (at == changed && number < seen.changed.by.load(std::memory_order_relaxed)))
    board_.header.late.fetch_add(1, std::memory_order_relaxed);
}

void Turns::note_changed(std::uint32_t row, std::int64_t at, std::uint32_t number) {
  Board::Seen& seen = board_.seen[row];
  (void)move_on(seen.changed, at, number);
  if (!move_on(seen.looked, at, number)) board_.header.late.fetch_add(1, std::memory_order_relaxed);
}

bool Turns::has_earlier(std::uint32_t row, std::int64_t at) const {
  for (std::uint32_t pe = 0; pe < board_.header.pes; ++pe) {
    if (owed_.row(pe) != row || pe == self_) continue;
    // What is due at a PE's own time comes before it when the number is not larger.
    const std::int64_t key = board_.keys[pe].load(std::memory_order_relaxed);
    if (key < at || (key == at && pe < self_)) return true;
  }
  return false;
}

ORRERY_TIMED_PATH bool Turns::sleeps_until(std::uint32_t row, std::int64_t at) const {
  if (row == owed_.row(self_)) return false;
  const auto sleeps = [&](std::uint32_t pe) {
    // One that waits to be woken may be woken by something that is no effect on its node.
    const std::int64_t key = board_.keys[pe].load(std::memory_order_relaxed);
    return (key > at || (key == at && pe > self_)) &&
           board_.pes[pe].wakes.load(std::memory_order_relaxed) == Wakes::no;
  };
  if (!owed_.is_shared()) return sleeps(row);
  for (std::uint32_t pe = row; pe < board_.header.pes; ++pe) {
    if (owed_.row(pe) == row && !sleeps(pe)) return false;
  }
  return true;
}

void Turns::note_seen_by_all(std::int64_t at) {
  for (std::uint32_t pe = 0; pe < board_.header.pes; ++pe) {
    const PeSlot& slot = board_.pes[pe];
    if (pe != self_ && slot.state.load(std::memory_order_relaxed) != PeState::gone &&
        slot.now.load(std::memory_order_relaxed) > at)
      board_.header.late.fetch_add(1, std::memory_order_relaxed);
  }
}

ORRERY_TIMED_PATH void Turns::touch(std::uint32_t pe, std::int64_t when, Touch what) {
  PeSlot& slot = board_.pes[pe];
  const auto mark = static_cast<std::uint32_t>(what);
  if (slot.touched.load(std::memory_order_relaxed) < mark)
    slot.touched.store(mark, std::memory_order_relaxed);
  if (slot.wakes.load(std::memory_order_relaxed) != Wakes::no &&
      board_.keys[pe].load(std::memory_order_relaxed) > when)
    board_.keys[pe].store(when, std::memory_order_relaxed);
}

ORRERY_TIMED_PATH Touch Turns::take_touch() {
  PeSlot& mine = self();
  const auto what = static_cast<Touch>(mine.touched.load(std::memory_order_relaxed));
  if (what != Touch::nothing) mine.touched.store(0, std::memory_order_relaxed);
  return what;
}

// ---- the launcher's barrier ----

// Arrivals come in the order of time, so the last one's is the barrier's end.
void Turns::barrier_arrive() {
  BoardHeader& h = board_.header;
  barrier_ = h.barriers.load(std::memory_order_relaxed);
  std::uint32_t members = 0;
  for (std::uint32_t pe = 0; pe < h.pes; ++pe)
    members += board_.pes[pe].state.load(std::memory_order_relaxed) != PeState::gone ? 1 : 0;
  const std::uint32_t arrived = h.arrived.load(std::memory_order_relaxed) + 1;
  h.arrived.store(arrived, std::memory_order_relaxed);
  if (arrived < members) return;
  h.arrived.store(0, std::memory_order_relaxed);
  h.barrier_at.store(time_, std::memory_order_relaxed);
  h.barriers.store(barrier_ + 1, std::memory_order_relaxed);
  for (std::uint32_t pe = 0; pe < h.pes; ++pe) touch(pe, time_, Touch::news);
}

bool Turns::is_last() const {
  for (std::uint32_t pe = 0; pe < board_.header.pes; ++pe) {
    if (pe != self_ && board_.pes[pe].state.load(std::memory_order_relaxed) != PeState::gone) return false;
  }
  return true;
}

void Turns::finish() {
  PeSlot& mine = self();
  mine.state.store(PeState::gone, std::memory_order_relaxed);
  board_.keys[self_].store(kNever, std::memory_order_relaxed);
  give_away();
}

}  // namespace orrery::clock
