// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// When nothing can happen in virtual time any more, but a PE's program waits by looking: what it looks for
// may come from outside the clock (the launcher, a socket, another thread). Time stands still then, and the
// programs look in real time, one after another in the order of the PEs' numbers, so many looks each: so what
// they do between the looks, and find in memory that they share, is the same in every run. A PE that finds
// something goes on, at the latest time that any PE has, when the others have looked behind it: so it does
// not matter which of them is the first to find what came to all.
#include "emu/base/log.hpp"
#include "emu/clock/board.hpp"
#include "emu/clock/look_source.hpp"
#include "emu/clock/thread_stat.hpp"
#include "emu/clock/wait_words.hpp"
#include "emu/job/process_stat.hpp"

#include <algorithm>
#include <utility>

#include <unistd.h>

namespace orrery::clock {

namespace {

// How long, in real time, the others are left alone when one has found something.
constexpr std::int64_t kSettleNs = 20'000'000;
// Then they look. That is enough when all have looked, in vain, with nothing awake around them, at a moment
// so long after it, that could bring something. Else they are waited for so long after the last that looked.
constexpr std::int64_t kQuietNs = 2'000'000, kLongestSettleNs = 2'000'000'000;
constexpr std::uint32_t kQuietRounds = 2, kLooksAway = 512, kLooksAtRest = 64;
// How long one that looks is waited for.
constexpr std::int64_t kLookEndsNs = 5'000'000'000;
// How long what came to a PE in virtual time may be seen before its key says when.
constexpr std::int64_t kTouchNs = 5'000'000;
// Looks of a PE before it is another one's turn to look: so many, and until it is back at the first source.
constexpr std::uint32_t kTurnLooks = 64, kMostTurnLooks = 512;
// Rounds of all PEs without a rest between them; later one as long as the round, within limits.
constexpr std::uint32_t kEagerRounds = 8;
constexpr std::int64_t kShortRestNs = 100'000, kLongRestNs = 5'000'000;
constexpr std::uint32_t kBuryEvery = 256;  // rounds
// How often one that has found something looks after the others, which wake it when all have looked; and
// after the one that looks behind it.
constexpr std::int64_t kSettleStepNs = 20'000'000, kGlanceStepNs = 2'000'000;
constexpr std::int64_t kSleepStepNs = 50'000;
// The PE that looks sleeps for so long in something else: it is the next one's turn.
constexpr std::int64_t kAsleepNs = 5'000'000;

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
  const std::int64_t now = monotonic_ns();
  h.stands_at.store(latest, std::memory_order_relaxed);
  h.came_ns.store(0, std::memory_order_relaxed);
  h.stood_ns.store(now, std::memory_order_relaxed);
  h.round_ns.store(now, std::memory_order_relaxed);
  h.rounds.store(0, std::memory_order_relaxed);
  h.look_turn.store(look_turn(h.pes - 1, kNobody), std::memory_order_relaxed);
  // Sequentially consistent: after the times.
  if (h.stands.compare_exchange_strong(word, word | 1, std::memory_order_seq_cst)) hand_look_on();
}

// Time goes on, by one that came back from elsewhere.
void Turns::go_on() {
  std::uint32_t word = board_.header.stands.load(std::memory_order_seq_cst);
  if ((word & 3) == static_cast<std::uint32_t>(Standstill::stands))
    (void)board_.header.stands.compare_exchange_strong(word, word + 3, std::memory_order_seq_cst);
}

bool Turns::peek_again(bool alone, const void* source, bool elsewhere) {
  PeSlot& mine = self();
  free_looks_ = is_free_source(source) ? free_looks_ + 1 : 0;
  const auto goes_on = [&] { return !is_granted() && stands() && looker() == self_; };
  // In which of an engine's rounds it looks there is an accident. It takes no part, unless it is all of it.
  if (free_looks_ != 0 && free_looks_ <= kTurnLooks && goes_on()) return false;
  note_quiet(alone, source);
  note_rest(alone, source, elsewhere);
  board_.header.looks.fetch_add(1, std::memory_order_relaxed);
  const bool on = beside_time_ ? !is_granted() && !stands() : goes_on();
  if (on && keeps_looking(source)) return false;
  beside_time_ = false;
  mine.peek.store(Peek::may, std::memory_order_seq_cst);
  if (stands()) pass_look();
  if (!await_grant(true)) return false;
  rest_ = {};
  mine.wakes.store(Wakes::no, std::memory_order_relaxed);
  mine.now.store(time_, std::memory_order_relaxed);
  return true;
}

// ---- whose turn it is to look ----

// What a PE is woken for that waits. False: it goes on waiting.
bool Turns::begins_to_look(std::uint32_t grant) {
  PeSlot& mine = self();
  if (grant == static_cast<std::uint32_t>(Grant::look) && looker() != self_) return false;
  turn_looks_ = 0;
  await_sleep();
  mine.peek.store(Peek::looks, std::memory_order_seq_cst);
  // Announced before it is looked at: see end_standstill.
  if (stands()) return true;
  mine.peek.store(Peek::may, std::memory_order_seq_cst);
  return false;
}

// Where another PE has found something: all that could bring something to this one has to sleep at a moment,
// the process's other threads and the launcher's. It is waited for without looks, so that their number is the
// same in every run. With threads in the clock that do not sleep while they wait it cannot be told.
void Turns::await_sleep() {
  BoardHeader& h = board_.header;
  const std::int64_t came = h.came_ns.load(std::memory_order_seq_cst);
  if (came == 0 || asleep_.at >= came + kQuietNs) return;
  asleep_ = {};
  while (stands() && self().grant.load(std::memory_order_seq_cst) == 0) {
    const std::int64_t now = monotonic_ns();
    if (now > h.settled_ns.load(std::memory_order_relaxed) + kLongestSettleNs) return;
    if (!alone_ || job::other_threads_sleep(getppid())) {
      asleep_.at = now;
      return;
    }
    h.looks.fetch_add(1, std::memory_order_relaxed);  // it does not sleep in something else
    (void)futex_wait_for(self().grant, 0, kSleepStepNs);
  }
}

bool Turns::keeps_looking(const void* source) {
  if (is_quiet(self_)) return false;
  if (turn_looks_++ == 0) turn_source_ = source;
  return turn_looks_ < kTurnLooks || (source != turn_source_ && turn_looks_ < kMostTurnLooks);
}

// Whether a PE has found something so lately that the others are left alone: what comes to them, too, is on
// its way.
bool Turns::is_settling_down() const {
  const std::int64_t came = board_.header.came_ns.load(std::memory_order_seq_cst);
  return came != 0 && monotonic_ns() - came < kSettleNs;
}

void Turns::pass_look() {
  BoardHeader& h = board_.header;
  std::uint64_t turn = h.look_turn.load(std::memory_order_seq_cst);
  if (looker_of(turn) == self_) {
    if (!h.look_turn.compare_exchange_strong(turn, look_turn(self_, kNobody), std::memory_order_seq_cst))
      return;
  } else if (looker_of(turn) != kNobody) {
    return;
  }
  if (!is_settling_down()) hand_look_on();
}

// To the PE behind the one that looked last. Any PE's call; it does nothing while one looks.
void Turns::hand_look_on() {
  BoardHeader& h = board_.header;
  std::uint64_t turn = h.look_turn.load(std::memory_order_seq_cst);
  for (std::uint32_t step = 1; step <= h.pes && looker_of(turn) == kNobody; ++step) {
    const std::uint32_t last = last_of(turn), next = (last + step) % h.pes;
    PeSlot& slot = board_.pes[next];
    const auto may_look = [&] {
      return slot.peek.load(std::memory_order_seq_cst) == Peek::may && !is_quiet(next);
    };
    if (!may_look()) continue;
    if (next <= last) rest();
    if (!h.look_turn.compare_exchange_strong(turn, look_turn(last, next), std::memory_order_seq_cst)) return;
    if (!may_look()) {  // it was another round's by then
      turn = look_turn(last, next);
      if (!h.look_turn.compare_exchange_strong(turn, look_turn(last, kNobody), std::memory_order_seq_cst))
        return;
      turn = look_turn(last, kNobody);
      continue;
    }
    std::uint32_t none = 0;
    (void)slot.grant.compare_exchange_strong(none, static_cast<std::uint32_t>(Grant::look),
                                             std::memory_order_seq_cst);
    if (slot.sleeping.load(std::memory_order_seq_cst) != 0) futex_wake(slot.grant, 1);
    return;
  }
  // None is to look: one of those that found something ends the standstill.
  for (std::uint32_t pe = 0; pe < h.pes && looker_of(turn) == kNobody; ++pe) {
    if (board_.pes[pe].peek.load(std::memory_order_seq_cst) == Peek::came)
      return static_cast<void>(futex_wake(board_.pes[pe].grant, 1));
  }
}

// Between two rounds.
void Turns::rest() {
  BoardHeader& h = board_.header;
  PeSlot& mine = self();
  const std::uint32_t rounds = h.rounds.fetch_add(1, std::memory_order_relaxed);
  if (rounds > kEagerRounds) {
    const std::int64_t took = monotonic_ns() - h.round_ns.load(std::memory_order_relaxed);
    const std::uint32_t slept = mine.sleeping.exchange(1, std::memory_order_seq_cst);
    (void)futex_wait_for(mine.grant, 0, std::clamp(took, kShortRestNs, kLongRestNs));
    mine.sleeping.store(slept, std::memory_order_relaxed);
  }
  h.round_ns.store(monotonic_ns(), std::memory_order_relaxed);
  if (rounds % kBuryEvery == kBuryEvery - 1) bury_the_dead();
  note_patience();
}

void Turns::note_patience() {
  const BoardHeader& h = board_.header;
  if (h.ended.load(std::memory_order_acquire) != 0) _exit(kExitDeadlock);
  if (stands() && h.came_ns.load(std::memory_order_relaxed) == 0 &&
      monotonic_ns() - h.stood_ns.load(std::memory_order_relaxed) > patience_ns_)
    report_deadlock();
}

// It may sleep in something else, have died, or have been stopped: then the next one looks.
void Turns::look_after_looker(Watched& watched) {
  BoardHeader& h = board_.header;
  note_patience();
  std::uint64_t turn = h.look_turn.load(std::memory_order_seq_cst);
  const std::uint32_t looker = looker_of(turn);
  const std::uint32_t looked = h.looks.load(std::memory_order_relaxed);
  const std::int64_t now = monotonic_ns();
  if (looker == self_) return;
  if (looker != watched.looker || looked != watched.looked)
    watched = {.looker = looker, .looked = looked, .since = now};
  const std::int64_t unchanged = now - watched.since;
  if (looker >= h.pes) {
    // Between two of them, unless the one that was to hand it on has died.
    if (unchanged > kLookEndsNs || (unchanged > kAsleepNs && !is_settling_down())) hand_look_on();
    return;
  }
  PeSlot& slot = board_.pes[looker];
  const ThreadStat stat =
      thread_stat(slot.pid.load(std::memory_order_relaxed), slot.tid.load(std::memory_order_relaxed));
  const bool is_gone = stat.state == '?' || stat.state == 'Z';
  if (stat.state == 'S' && stat.ticks != std::exchange(watched.used, stat.ticks)) watched.since = now;
  // Before it looks it may not have been woken yet.
  const bool looks = slot.peek.load(std::memory_order_seq_cst) == Peek::looks;
  const bool is_asleep = stat.state == 'S' && looks && unchanged > kAsleepNs;
  if (!is_gone && !is_asleep && unchanged < kLookEndsNs) return;
  if (!h.look_turn.compare_exchange_strong(turn, look_turn(looker, kNobody), std::memory_order_seq_cst))
    return;
  if (is_gone) bury_the_dead();
  // It computes, or was stopped.
  if (!is_gone && !is_asleep) h.overtaken.fetch_add(1, std::memory_order_relaxed);
  auto look = static_cast<std::uint32_t>(Grant::look);
  (void)slot.grant.compare_exchange_strong(look, 0, std::memory_order_seq_cst);
  hand_look_on();
}

// After that moment (await_sleep) the program has found nothing, in two whole rounds of its loop, which begin
// and end at one source: then nothing is on its way to this PE. Within a round it may have yet to look at
// what had come by then.
void Turns::note_quiet(bool alone, const void* source) {
  alone_ = alone;
  const std::int64_t came = board_.header.came_ns.load(std::memory_order_relaxed);
  if (came == 0 || asleep_.at < came + kQuietNs) return;
  if (asleep_.source == nullptr) {
    asleep_.source = source;
  } else if (source == asleep_.source && ++asleep_.rounds == kQuietRounds) {
    board_.quiet_at[self_].store(asleep_.at, std::memory_order_release);
    board_.header.settled_ns.store(monotonic_ns(), std::memory_order_relaxed);
    asleep_ = {};
  } else if (++asleep_.looks > kLooksAway) {
    asleep_ = {.at = asleep_.at};  // it does not come back to that one
  }
}

void Turns::note_rest(bool alone, const void* source, bool elsewhere) {
  rest_.is_known = rest_.is_known && alone && !elsewhere;
  if (!rest_.is_known) return;
  if (rest_.mark != 0) {
    if (source == rest_.source) ++rest_.rounds;
  } else if (rest_.looks++ % kLooksAtRest == 0) {
    rest_.mark = job::others_at_rest();
    rest_.source = source;
  }
}

// A PE found nothing, twice around its loop, and goes on though nothing around it has run since: its program
// counts its looks, or does something between them, or another PE has written to memory that both share. That
// is the same in every run, but beside another PE that waits, at the same time, for something that is brought
// to it: which of the two is the first is the host's business.
void Turns::note_came(const Rest& rest) {
  BoardHeader& h = board_.header;
  const bool has_looked = rest.looks != 0;
  bool differs = false;
  if (!rest.is_known || (has_looked && (rest.mark == 0 || rest.mark != job::others_at_rest()))) {
    h.brought.fetch_add(1, std::memory_order_relaxed);
    differs = h.by_themselves.load(std::memory_order_relaxed) != by_themselves_;
  } else if (rest.rounds >= kQuietRounds) {
    h.by_themselves.fetch_add(1, std::memory_order_relaxed);
    differs = h.brought.load(std::memory_order_relaxed) != brought_;
  }
  if (differs) h.overtaken.fetch_add(1, std::memory_order_relaxed);
}

bool Turns::is_quiet(std::uint32_t pe) const {
  const std::int64_t came = board_.header.came_ns.load(std::memory_order_seq_cst);
  return came != 0 && board_.quiet_at[pe].load(std::memory_order_acquire) >= came + kQuietNs;
}

bool Turns::all_are_quiet() const {
  for (std::uint32_t pe = 0; pe < board_.header.pes; ++pe) {
    const Peek peek = board_.pes[pe].peek.load(std::memory_order_seq_cst);
    if (pe != self_ && (peek == Peek::looks || peek == Peek::may) && !is_quiet(pe)) return false;
  }
  return true;
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
    return board_.keys[self_].load(std::memory_order_seq_cst) != kNever || is_granted();
  };
  const std::int64_t limit = monotonic_ns() + kTouchNs;
  while (!pulled() && monotonic_ns() < limit) yield_cpu();
  return pulled();
}

void Turns::come_back() {
  PeSlot& mine = self();
  BoardHeader& h = board_.header;
  const Rest rest = std::exchange(rest_, {});
  if (!is_granted()) {
    if (standstill() != Standstill::none) {
      note_came(rest);
      mine.wakes.store(Wakes::no, std::memory_order_relaxed);
      const std::int64_t at = std::max(time_, h.stands_at.load(std::memory_order_relaxed));
      board_.keys[self_].store(at, std::memory_order_seq_cst);
      const std::int64_t now = monotonic_ns();
      std::int64_t none = 0;
      h.settled_ns.store(now, std::memory_order_relaxed);
      (void)h.came_ns.compare_exchange_strong(none, now, std::memory_order_seq_cst);
      mine.peek.store(Peek::came, std::memory_order_seq_cst);
      pass_look();
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
  if (stands() && mine.peek.load(std::memory_order_seq_cst) == Peek::may) {
    // It comes out, as if it were to look, and finds out there for what.
    std::uint32_t none = 0;
    (void)mine.grant.compare_exchange_strong(none, static_cast<std::uint32_t>(Grant::out),
                                             std::memory_order_seq_cst);
    if (mine.sleeping.load(std::memory_order_seq_cst) != 0) futex_wake(mine.grant, 1);
    return;
  }
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
  Watched watched;
  while (stands() && !is_granted()) {
    const std::int64_t now = monotonic_ns();
    const std::int64_t passed = now - h.came_ns.load(std::memory_order_seq_cst);
    const bool quiet = passed >= kSettleNs && all_are_quiet();
    if (!quiet && now - h.settled_ns.load(std::memory_order_relaxed) < kLongestSettleNs) {
      mine.sleeping.store(1, std::memory_order_seq_cst);
      (void)futex_wait_for(mine.grant, 0,
                           passed < kSettleNs    ? kSettleNs - passed
                           : is_next_to_looker() ? kGlanceStepNs
                                                 : kSettleStepNs);
      mine.sleeping.store(0, std::memory_order_relaxed);
      // The first look after the moment in which they were left alone.
      if (!is_settling_down() && looker() == kNobody) hand_look_on();
      if (is_next_to_looker()) look_after_looker(watched);
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

// ---- deadlock ----

void Turns::report_deadlock() {
  log::error("deadlock in virtual time: no PE can go on");
  for (std::uint32_t pe = 0; pe < board_.header.pes; ++pe) {
    const PeSlot& slot = board_.pes[pe];
    const PeState state = slot.state.load(std::memory_order_relaxed);
    const double at = static_cast<double>(slot.now.load(std::memory_order_relaxed)) / 1e6;
    if (state == PeState::gone)
      log::error("  PE {}: has ended, at {:.6f} us", pe, at);
    else
      log::error("  PE {}: {}, since {:.6f} us, {} operations of its own under way", pe,
                 words_of(slot.waits_for.load(std::memory_order_relaxed)), at,
                 slot.pending.load(std::memory_order_relaxed));
  }
  board_.header.ended.store(1, std::memory_order_release);
  _exit(kExitDeadlock);
}

}  // namespace orrery::clock
