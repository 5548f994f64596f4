// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// When nothing can happen in virtual time any more, but a PE's program waits by looking: what it looks for
// may come from outside the clock (the launcher, a socket, another thread). Time stands still then, and the
// programs look, all of them, in real time. A PE that finds something goes on, at the latest time that any PE
// has: so it does not matter which of them is the first to find what came to all.
#include "emu/base/log.hpp"
#include "emu/clock/board.hpp"
#include "emu/job/process_stat.hpp"

#include <algorithm>
#include <utility>

#include <unistd.h>

namespace orrery::clock {

namespace {

// How long, in real time, after the last one that found something others may find something too.
constexpr std::int64_t kSettleNs = 20'000'000;
// That is enough when all that look have looked, in vain, this long after it, with nothing awake around them
// that could bring something. Else they are waited for so long.
constexpr std::int64_t kQuietNs = 2'000'000, kLongestSettleNs = 2'000'000'000;
constexpr std::uint32_t kQuietRounds = 2, kLooksAway = 512, kLooksAtRest = 64;
// How long those that look are waited for.
constexpr std::int64_t kLookEndsNs = 5'000'000'000;
// How long what came to a PE in virtual time may be seen before its key says when.
constexpr std::int64_t kTouchNs = 5'000'000;
constexpr std::uint32_t kEagerPeeks = 64, kYieldingPeeks = 256, kShortRests = 2000;
constexpr std::int64_t kShortRestNs = 100'000, kLongRestNs = 1'000'000;
constexpr std::uint32_t kBuryEvery = 256;  // rests

}  // namespace

bool Turns::someone_may_peek() const {
  for (std::uint32_t pe = 0; pe < board_.header.pes; ++pe) {
    const PeSlot& slot = board_.pes[pe];
    if (slot.state.load(std::memory_order_acquire) != PeState::gone &&
        slot.peek.load(std::memory_order_seq_cst) != Peek::no)
      return true;
  }
  return false;
}

// Whether a PE has a time to go on at. While time stands still those that found something have one, but go on
// only when the others have had the time to find something, too (end_standstill).
bool Turns::someone_has_key() const {
  const bool still = stands();
  for (std::uint32_t pe = 0; pe < board_.header.pes; ++pe) {
    if (board_.keys[pe].load(std::memory_order_seq_cst) == kNever) continue;
    const Peek peek = board_.pes[pe].peek.load(std::memory_order_seq_cst);
    if (!still || (peek != Peek::looks && peek != Peek::came)) return true;
  }
  return false;
}

// REQUIRES: no PE but this one has the token; this one gives it away.
void Turns::stand_still() {
  BoardHeader& h = board_.header;
  std::int64_t latest = 0;
  for (std::uint32_t pe = 0; pe < h.pes; ++pe)
    latest = std::max(latest, board_.pes[pe].now.load(std::memory_order_relaxed));
  std::uint32_t word = h.stands.load(std::memory_order_seq_cst);
  if ((word & 3) != static_cast<std::uint32_t>(Standstill::none)) return;
  h.stands_at.store(latest, std::memory_order_relaxed);
  h.came_ns.store(0, std::memory_order_relaxed);
  h.stood_ns.store(monotonic_ns(), std::memory_order_relaxed);
  // Sequentially consistent: after the times.
  if (!h.stands.compare_exchange_strong(word, word | 1, std::memory_order_seq_cst)) return;
  for (std::uint32_t pe = 0; pe < h.pes; ++pe) {
    PeSlot& slot = board_.pes[pe];
    if (pe != self_ && slot.sleeping.load(std::memory_order_seq_cst) != 0) futex_wake(slot.grant, 1);
  }
}

// Time goes on, by one that came back from elsewhere.
void Turns::go_on() {
  std::uint32_t word = board_.header.stands.load(std::memory_order_seq_cst);
  if ((word & 3) == static_cast<std::uint32_t>(Standstill::stands))
    (void)board_.header.stands.compare_exchange_strong(word, word + 3, std::memory_order_seq_cst);
}

bool Turns::peek_again(bool alone, const void* source, bool elsewhere) {
  PeSlot& mine = self();
  note_quiet(alone, source);
  note_rest(alone, source, elsewhere);
  if (mine.grant.load(std::memory_order_seq_cst) == 0 && stands()) {
    rest();
    if (mine.grant.load(std::memory_order_seq_cst) == 0 && stands()) return false;
  }
  mine.peek.store(Peek::may, std::memory_order_seq_cst);
  if (!await_grant(true)) return false;
  rest_ = {};
  mine.wakes.store(Wakes::no, std::memory_order_relaxed);
  mine.now.store(time_, std::memory_order_relaxed);
  return true;
}

// Where another PE has found something. All that could bring something to this one slept at a moment, the
// process's other threads and the launcher's, and the program has found nothing since, in two whole rounds of
// its loop, which begin and end at one source: then nothing is on its way to this PE. Within a round it may
// have yet to look at what had come by then.
void Turns::note_quiet(bool alone, const void* source) {
  if (board_.header.came_ns.load(std::memory_order_relaxed) == 0) {
    asleep_ = {};
    return;
  }
  if (asleep_.at != 0) {
    if (source == asleep_.source && ++asleep_.rounds == kQuietRounds) {
      board_.quiet_at[self_].store(asleep_.at, std::memory_order_release);
      asleep_ = {};
    } else if (++asleep_.looks > kLooksAway) {
      asleep_ = {};  // it does not come back to that one
    }
  }
  if (asleep_.at != 0) return;
  const std::int64_t now = monotonic_ns();
  // With threads in the clock that do not sleep while they wait it cannot be told.
  if (!alone || job::other_threads_sleep(getppid())) asleep_ = {.source = source, .at = now};
}

void Turns::note_rest(bool alone, const void* source, bool elsewhere) {
  rest_.is_known = rest_.is_known && alone && !elsewhere;
  if (!rest_.is_known) return;
  if (rest_.mark != 0) {
    if (source == rest_.source) ++rest_.rounds;
  } else if (rest_.looks++ % kLooksAtRest == 0) {
    rest_.mark = job::other_threads_at_rest();
    rest_.source = source;
  }
}

// It had looked in vain, and goes on though no other thread of the process has run since. So nothing came to
// it that a thread could have brought: its program does something between the looks, or another process has
// written to memory that both share. When it does so in virtual time is the host's business.
bool Turns::goes_on_by_itself(const Rest& rest) {
  return rest.is_known && rest.mark != 0 && rest.rounds >= kQuietRounds &&
         rest.mark == job::other_threads_at_rest();
}

bool Turns::all_are_quiet() const {
  const std::int64_t since = board_.header.came_ns.load(std::memory_order_seq_cst) + kQuietNs;
  for (std::uint32_t pe = 0; pe < board_.header.pes; ++pe) {
    const Peek peek = board_.pes[pe].peek.load(std::memory_order_seq_cst);
    if (pe == self_ || (peek != Peek::looks && peek != Peek::may)) continue;
    if (board_.quiet_at[pe].load(std::memory_order_acquire) < since) return false;
  }
  return true;
}

// Between two looks.
void Turns::rest() {
  if (++peeks_ <= kEagerPeeks) return;
  if (peeks_ <= kYieldingPeeks) return yield_cpu();
  PeSlot& mine = self();
  mine.sleeping.store(1, std::memory_order_seq_cst);
  (void)futex_wait_for(mine.grant, 0, peeks_ <= kShortRests ? kShortRestNs : kLongRestNs);
  mine.sleeping.store(0, std::memory_order_relaxed);
  if (peeks_ % kBuryEvery != 0) return;
  bury_the_dead();
  BoardHeader& h = board_.header;
  if (h.ended.load(std::memory_order_acquire) != 0) _exit(kExitDeadlock);
  if (stands() && h.came_ns.load(std::memory_order_relaxed) == 0 &&
      monotonic_ns() - h.stood_ns.load(std::memory_order_relaxed) > patience_ns_)
    report_deadlock();
}

// Those that died while they looked, or after they had found something.
void Turns::bury_the_dead() {
  for (std::uint32_t pe = 0; pe < board_.header.pes; ++pe) {
    PeSlot& slot = board_.pes[pe];
    const int pid = slot.pid.load(std::memory_order_relaxed);
    if (pe == self_ || pid == 0 || slot.state.load(std::memory_order_relaxed) == PeState::gone) continue;
    if (job::process_stat(pid).exists) continue;
    board_.keys[pe].store(kNever, std::memory_order_seq_cst);
    if (slot.peek.exchange(Peek::no, std::memory_order_seq_cst) == Peek::came)
      board_.header.came_ns.store(0, std::memory_order_relaxed);
    slot.state.store(PeState::gone, std::memory_order_release);
  }
}

// Whether something has happened to it in virtual time, which it has seen: it goes on then.
bool Turns::is_expected() {
  const auto pulled = [&] {
    return board_.keys[self_].load(std::memory_order_seq_cst) != kNever ||
           self().grant.load(std::memory_order_seq_cst) != 0;
  };
  const std::int64_t limit = monotonic_ns() + kTouchNs;
  while (!pulled() && monotonic_ns() < limit) yield_cpu();
  return pulled();
}

void Turns::come_back() {
  PeSlot& mine = self();
  BoardHeader& h = board_.header;
  const Rest rest = std::exchange(rest_, {});
  if (mine.grant.load(std::memory_order_seq_cst) == 0) {
    if (standstill() != Standstill::none) {
      if (goes_on_by_itself(rest)) h.overtaken.fetch_add(1, std::memory_order_relaxed);
      mine.wakes.store(Wakes::no, std::memory_order_relaxed);
      const std::int64_t at = std::max(time_, h.stands_at.load(std::memory_order_relaxed));
      board_.keys[self_].store(at, std::memory_order_seq_cst);
      h.came_ns.store(monotonic_ns(), std::memory_order_seq_cst);
      mine.peek.store(Peek::came, std::memory_order_seq_cst);
      await_settled();
    } else if (!is_expected()) {
      // The others went on meanwhile: it is behind the PE that has the turn.
      mine.wakes.store(Wakes::no, std::memory_order_relaxed);
      h.overtaken.fetch_add(1, std::memory_order_relaxed);
      const std::uint32_t holder = h.token.load(std::memory_order_acquire) >> 1;
      const std::int64_t at =
          holder < h.pes ? board_.keys[holder].load(std::memory_order_relaxed) : std::int64_t{0};
      // In this order, and sequentially consistent: see give_away.
      board_.keys[self_].store(std::max(time_, at == kNever ? 0 : at), std::memory_order_seq_cst);
      mine.peek.store(Peek::no, std::memory_order_seq_cst);
      std::uint32_t untaken = token_of(kNobody, false);
      if (h.token.compare_exchange_strong(untaken, token_of(self_, true), std::memory_order_seq_cst))
        give_away();
    }
  }
  (void)await_grant();
  mine.wakes.store(Wakes::no, std::memory_order_relaxed);
  mine.now.store(time_, std::memory_order_relaxed);
}

void Turns::ask(std::int64_t at) {
  PeSlot& mine = self();
  BoardHeader& h = board_.header;
  if (mine.state.load(std::memory_order_acquire) != PeState::waiting ||
      mine.peek.load(std::memory_order_seq_cst) == Peek::looks)
    return;
  const std::uint32_t holder = h.token.load(std::memory_order_acquire) >> 1;
  if (holder == self_) return;
  const std::int64_t reached = holder < h.pes ? board_.keys[holder].load(std::memory_order_relaxed) : kNever;
  const bool late = reached != kNever && at < reached;
  at = std::max({at, mine.now.load(std::memory_order_relaxed), reached == kNever ? 0 : reached});
  // In this order, and sequentially consistent: see give_away.
  std::int64_t key = board_.keys[self_].load(std::memory_order_seq_cst);
  do {
    if (key <= at) return;
  } while (!board_.keys[self_].compare_exchange_weak(key, at, std::memory_order_seq_cst));
  if (late) h.overtaken.fetch_add(1, std::memory_order_relaxed);
  std::uint32_t untaken = token_of(kNobody, false);
  if (!h.token.compare_exchange_strong(untaken, token_of(self_, true), std::memory_order_seq_cst)) return;
  go_on();
  give_away();
  if (mine.sleeping.load(std::memory_order_seq_cst) != 0) futex_wake(mine.grant, 1);
}

// Until time goes on. The one that finds that enough real time has passed sees to that.
void Turns::await_settled() {
  BoardHeader& h = board_.header;
  PeSlot& mine = self();
  while (stands() && mine.grant.load(std::memory_order_seq_cst) == 0) {
    const std::int64_t passed = monotonic_ns() - h.came_ns.load(std::memory_order_seq_cst);
    const bool quiet = passed >= kSettleNs && all_are_quiet();
    if (!quiet && passed < kLongestSettleNs) {
      mine.sleeping.store(1, std::memory_order_seq_cst);
      (void)futex_wait_for(mine.grant, 0, passed < kSettleNs ? kSettleNs - passed : kLongRestNs);
      mine.sleeping.store(0, std::memory_order_relaxed);
      continue;
    }
    std::uint32_t word = h.stands.load(std::memory_order_seq_cst);
    if ((word & 3) == static_cast<std::uint32_t>(Standstill::stands) &&
        h.stands.compare_exchange_strong(word, word + 1, std::memory_order_seq_cst)) {
      // What is awake may bring something to a PE later than to the others.
      if (!quiet) h.overtaken.fetch_add(1, std::memory_order_relaxed);
      return end_standstill();
    }
  }
}

void Turns::end_standstill() {
  BoardHeader& h = board_.header;
  const std::int64_t limit = monotonic_ns() + kLookEndsNs;
  const auto looks = [&] {
    for (std::uint32_t pe = 0; pe < h.pes; ++pe) {
      if (board_.pes[pe].peek.load(std::memory_order_seq_cst) == Peek::looks) return true;
    }
    return false;
  };
  while (looks()) {
    if (monotonic_ns() > limit) {
      // It computes, or was stopped, with something that it found or not: the others go on without it.
      h.overtaken.fetch_add(1, std::memory_order_relaxed);
      bury_the_dead();
      break;
    }
    yield_cpu();
  }
  h.stands.fetch_add(2, std::memory_order_seq_cst);
  std::uint32_t untaken = token_of(kNobody, false);
  if (h.token.compare_exchange_strong(untaken, token_of(self_, true), std::memory_order_seq_cst)) give_away();
}

}  // namespace orrery::clock
