// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/units.hpp"
#include "emu/base/wait.hpp"
#include "emu/clock/owed.hpp"
#include "emu/clock/turn_spins.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

// What the PEs of a job share under virtual time: each PE's time, and whose turn it is. One memfd for the
// job, made by PE 0; the network's link state lies behind it.
namespace orrery::clock {

inline constexpr std::uint32_t kMaxPes = 1024;

// DO NOT CHANGE THE VALUES: they are in shared memory.
enum class PeState : std::uint32_t {
  absent = 0,   // has not joined: counts as being at time 0
  running = 1,  // has the turn
  waiting = 2,  // will go on at its key
  outside = 3,  // blocked in something that the clock knows nothing of: the others go on without it
  gone = 4,
};

// Whether what ends a PE's wait may come from outside the clock: another process, another thread.
enum class Peek : std::uint32_t {
  no = 0,
  may = 1,    // its program looks for it, in its turn, when nothing happens in virtual time any more
  looks = 2,  // it does so now, without the turn of the clock
  came = 3,   // it has found something, and goes on when time does
};

// Whether nothing happens in virtual time until something comes from outside: PEs look for that, one after
// another. It ends when something has come, and a moment of real time has passed for others to find it too.
enum class Standstill : std::uint32_t { none = 0, stands = 1, ends = 2 };

// What has happened to a PE; data: a message came whose event follows (data_touch.hpp).
enum class Touch : std::uint32_t { nothing = 0, stirred = 1, data = 2, news = 3 };

// Whether something that happens to a PE ends its wait. before: if it happens before the time that the PE
// waits for. At that time it goes on by its number, as a PE does that nothing wakes.
enum class Wakes : std::uint32_t { no = 0, yes = 1, before = 2 };

// What a PE waits for, for the report of a deadlock.
enum class WaitsFor : std::uint32_t { nothing = 0, event, poll, sleep, barrier, memory, end };

// What a PE that waits is woken for.
enum class Grant : std::uint32_t {
  none = 0,
  turn = 1,   // the turn is this PE's
  debts = 2,  // for what it owes alone
  look = 3,   // time stands still, and its program looks
  out = 4,    // another thread of its process is to get in meanwhile
};

struct alignas(64) PeSlot {
  FutexWord grant;                      // what the PE is woken for: Grant
  std::atomic<std::uint32_t> sleeping;  // it sleeps on `grant`
  std::atomic<PeState> state;
  std::atomic<WaitsFor> waits_for;
  std::atomic<std::int64_t> now;       // ps
  std::atomic<std::uint32_t> touched;  // something happened to it that it has not looked at: Touch
  std::atomic<Wakes> wakes;
  std::atomic<Peek> peek;
  std::atomic<std::uint32_t> pending;  // operations of its own under way
  std::atomic<std::int32_t> pid, tid;
  std::atomic<std::uint32_t> node;
  std::atomic<std::uint32_t> process;  // its process slot + 1
  std::atomic<std::uint32_t> held;     // waits of the runtime's own in real time under way: it is not blocked
};
static_assert(sizeof(PeSlot) == 64 && offsetof(PeSlot, now) == 16 && offsetof(PeSlot, pid) == 40 &&
              offsetof(PeSlot, held) == 56);

struct alignas(64) BoardHeader {
  std::uint64_t magic;
  std::uint32_t version, pes;
  std::uint64_t links_offset, links_bytes;
  std::int64_t epoch_ns;  // CLOCK_MONOTONIC when it was made
  std::int32_t core;      // where PE 0 was: PEs that share cores all go there
  char choice[256];       // in words: what every PE must have chosen
  // holder << 1 | it is inside the clock. A PE that finds the holder dead or blocked outside takes it over.
  alignas(64) std::atomic<std::uint32_t> token;
  std::atomic<std::int64_t> owed_until;  // of a turn for what a PE owes alone
  std::atomic<std::uint32_t> ended;      // 1: a deadlock was reported
  std::atomic<std::uint32_t> arrived;    // at the launcher's barrier
  std::atomic<std::uint32_t> barriers;   // that are over
  std::atomic<std::int64_t> barrier_at;  // when the last one had its last arrival
  // Number of the standstill << 2 | Standstill.
  std::atomic<std::uint32_t> stands;
  std::atomic<std::int64_t> stands_at;   // ps: of all PEs the latest
  std::atomic<std::int64_t> came_ns;     // monotonic_ns() when a PE found something, 0: none has yet
  std::atomic<std::int64_t> settled_ns;  // and when a PE was last found to have found something, or nothing
  std::atomic<std::int64_t> stood_ns;    // and since when it stands
  std::atomic<std::int64_t> stuck_ns;    // and since when no PE can go on, of which none looks
  // While it stands: the PE that looked last << 32 | the one that looks (kNobody: between two of them), how
  // many looks there were, and how often it was the turn of all.
  std::atomic<std::uint64_t> look_turn;
  std::atomic<std::uint32_t> looks, rounds;
  std::atomic<std::int64_t> round_ns;                 // when the last of those rounds began
  std::atomic<std::uint32_t> by_themselves, brought;  // how often PEs went on so (Turns::note_came)
  alignas(64) std::atomic<std::uint64_t> turns, tasks, operations, overtaken;
  std::atomic<std::uint64_t> late;               // optimistic: effects behind what was seen already
  std::atomic<std::uint32_t> asked_nodes;        // 1: what an operation costs depended on its target's state
  alignas(64) std::atomic<std::uint32_t> ready;  // stored last
};

struct Board {
  BoardHeader header;
  alignas(64) std::atomic<std::int64_t> keys[kMaxPes];  // when each may act next; the holder writes them
  std::atomic<std::int64_t> ends[kMaxPes];              // Wakes::before: the time that the PE waits for
  PeSlot pes[kMaxPes];
  std::atomic<std::uint32_t> pe_of_process[kMaxPes];  // process slot -> PE + 1
  // Optimistic: up to where a node (by row) was seen, by its PEs and by effects on it; and up to where it was
  // changed. The holder of the turn writes them.
  struct Mark {
    std::atomic<std::int64_t> at;
    std::atomic<std::uint32_t> by;
  };
  struct Seen {
    Mark looked, changed;
  } seen[kMaxPes];
  // monotonic_ns() of a moment at which all around a PE that looks for what comes from outside slept, and
  // after which its program has looked, for nothing.
  std::atomic<std::int64_t> quiet_at[kMaxPes];
};
inline constexpr std::uint64_t kBoardMagic = 0x6b636f6c43524fULL;  // "ORClock"
inline constexpr std::uint32_t kBoardVersion = 13;
inline constexpr int kExitDeadlock = 75;
constexpr std::uint32_t token_of(std::uint32_t pe, bool inside) { return pe << 1 | (inside ? 1 : 0); }
inline constexpr std::uint32_t kNobody = UINT32_MAX >> 1;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

// Does what its PE owes, all of it that is due by `until` and not behind what others owe to the same node.
class Debtor {
 public:
  virtual void pay(std::int64_t until) = 0;

 protected:
  ~Debtor() = default;
};

// One PE's part in taking turns: exactly one PE of the job runs at a time, the one whose (key, number) is the
// smallest. So whatever it does comes after everything that is earlier and before everything that is later.
//
// Threads: one at a time. Invariants: (1) only the holder of the turn changes keys, but for its own a PE that
// was overtaken; (2) a PE that dies or blocks in something foreign is overtaken by one that waits.
class Turns {
 public:
  Turns(Board& board, Owed owed, std::uint32_t self, const TurnSpins& spins, Debtor& debtor);

  // Enters the job: waits for the first turn.
  void join(std::uint32_t node, std::uint32_t process_slot);
  // The program's thread comes into the clock, with the turn. False: it had been overtaken meanwhile, and its
  // time is later than it was.
  bool enter();
  void leave();
  // Gives the turn away without a wish for another; enter() takes part again.
  void step_out();

  // Waits until this PE is the earliest at `key`. REQUIRES: entered. Returns true when it is; earlier, at the
  // time of a touch, when `wakes`. `peeks` (and Wakes::yes): what it waits for may come from outside the
  // clock. False, then: the program is to look for that, without the turn. It goes on with peek_again() when
  // it found nothing, with come_back() when it did.
  bool turn_at(std::int64_t key, Wakes wakes, WaitsFor why, bool peeks = false);
  // As turn_at() goes on. False: the program is to look again. `alone`: no other thread of the program has
  // come into the clock since the last look: all threads but this one sleep when nothing comes any more.
  // `source`: what the program has looked at. `elsewhere`: not the NIC, so that it may find what came from
  // outside by itself.
  bool peek_again(bool alone, const void* source, bool elsewhere);
  // Returns with the turn.
  void come_back();
  // The program does something else than look.
  void note_done() { does_something_ = true; }
  // This PE waits, in another thread, and wants a turn all the same, at `at` or as early as it can be had.
  // Any thread.
  void ask(std::int64_t at);
  // The time of the last turn.
  std::int64_t time() const { return time_; }
  // Optimistic: goes on to `key` with the turn, though others may be earlier by up to `window`; false: it may
  // not, they are further behind. REQUIRES: entered.
  bool run_ahead(std::int64_t key, std::int64_t window);
  // Optimistic: the node of that row was seen at (time, number), by one that was woken then: the largest
  // number. Late, and counted, when it had been changed later than that.
  void note_seen(std::uint32_t row, std::int64_t at, std::uint32_t number);
  // The same of a change: late when the node had been seen, or changed, later than that.
  void note_changed(std::uint32_t row, std::int64_t at, std::uint32_t number);
  // Optimistic: whether another PE of that row's node has yet to pass `at`. An effect of this PE that is due
  // at `at` must not be done there before: that PE would see it too early.
  bool has_earlier(std::uint32_t row, std::int64_t at) const;
  // Whether no PE on that row's node, which is not this PE's, goes on before an effect that this PE owes it
  // then, whatever happens meanwhile.
  bool sleeps_until(std::uint32_t row, std::int64_t at) const;
  // Optimistic: something that all PEs may see happens then; it is late for PEs that are further.
  void note_seen_by_all(std::int64_t at);

  // ---- effects that are owed; REQUIRES: the turn ----
  using Effect = Owed::Effect;
  std::uint32_t row_of(std::uint32_t pe) const { return owed_.row(pe); }
  // Whether another PE is on this one's node.
  bool shares_node() const { return shares_node_; }
  // The first one on the node of that row.
  Effect first_effect(std::uint32_t row) const { return owed_.first(row); }
  // This PE's first one there is due then.
  void owe(std::uint32_t row, std::int64_t first) { owed_.owe(row, self_, first); }
  // What an operation costs depends on what was done to its target by now: from here on nothing is done there
  // before its time.
  void ask_nodes() { board_.header.asked_nodes.store(1, std::memory_order_relaxed); }
  bool nodes_are_asked() const { return board_.header.asked_nodes.load(std::memory_order_relaxed) != 0; }
  // An effect on that PE was scheduled: if it waits to be woken, it looks then.
  void expect(std::uint32_t pe, std::int64_t at);
  // Lets another one do what it owes up to `until`; returns with the turn.
  void collect_from(std::uint32_t pe, std::int64_t until);

  void touch(std::uint32_t pe, std::int64_t when, Touch what);
  // Takes the mark that something happened.
  Touch take_touch();

  // Arrives at the launcher's barrier; the last one touches the others.
  void barrier_arrive();
  // Whether the one that this PE arrived at last is over.
  bool barrier_over() const { return board_.header.barriers.load(std::memory_order_relaxed) != barrier_; }
  // When the one that was over last had its last arrival. The next one cannot be over before this PE arrives.
  std::int64_t barrier_time() const { return board_.header.barrier_at.load(std::memory_order_relaxed); }
  // Whether all the others are gone.
  bool is_last() const;
  void finish();

  // Reports that no PE can ever go on, and ends the process.
  [[noreturn]] void report_deadlock();

  // What this PE waits for meanwhile needs no turn: it is not taken for blocked. Any thread.
  void hold() { self().held.fetch_add(1, std::memory_order_relaxed); }
  void let_go() { self().held.fetch_sub(1, std::memory_order_relaxed); }

  PeSlot& self() { return board_.pes[self_]; }
  Board& board() { return board_; }

 private:
  std::uint32_t earliest(std::int64_t* key) const;
  bool owed_before(std::uint32_t pe, std::int64_t key, Effect* effect) const;
  static bool move_on(Board::Mark& mark, std::int64_t at, std::uint32_t number);
  void hand_on(std::uint32_t next, Grant grant);
  bool await_grant(bool peeks = false);
  Standstill standstill() const {
    return static_cast<Standstill>(board_.header.stands.load(std::memory_order_seq_cst) & 3);
  }
  bool stands() const { return standstill() == Standstill::stands; }
  bool someone_may_peek() const;
  bool someone_has_key() const;
  void stand_still();
  void go_on();
  bool is_granted() const { return is_for_time(board_.pes[self_].grant.load(std::memory_order_seq_cst)); }
  static bool is_for_time(std::uint32_t grant) {
    return grant == static_cast<std::uint32_t>(Grant::turn) ||
           grant == static_cast<std::uint32_t>(Grant::debts);
  }
  bool begins_to_look(std::uint32_t grant);
  void await_sleep();
  bool keeps_looking(const void* source);
  bool is_settling_down() const;
  void pass_look();
  void hand_look_on();
  void rest();
  bool is_expected();
  void bury_the_dead();
  void note_quiet(bool alone, const void* source);
  void note_rest(bool alone, const void* source, bool elsewhere);
  bool is_quiet(std::uint32_t pe) const;
  bool all_are_quiet() const;
  void note_patience();
  void await_settled();
  void end_standstill();
  struct Watched {
    std::uint32_t token = UINT32_MAX;
    std::uint64_t used = 0;  // processor time of its thread, in ticks
    int looks = 0;           // in a row at which it had not moved
    int all_looks = 0;       // in a row at which it had the turn
    int slices = 0;
    // While time stands still: the PE that looks, its looks, and monotonic_ns() since when it slept.
    std::uint32_t looker = kNobody, looked = 0;
    std::int64_t since = 0;
  };
  bool look_after_holder(Watched& watched);
  void look_after_looker(Watched& watched);
  static constexpr std::uint64_t look_turn(std::uint32_t last, std::uint32_t looker) {
    return std::uint64_t{last} << 32 | looker;
  }
  static constexpr std::uint32_t looker_of(std::uint64_t turn) { return static_cast<std::uint32_t>(turn); }
  static constexpr std::uint32_t last_of(std::uint64_t turn) {
    return static_cast<std::uint32_t>(turn >> 32);
  }
  std::uint32_t looker() const { return looker_of(board_.header.look_turn.load(std::memory_order_seq_cst)); }
  bool is_next_to_looker() const {
    return stands() && last_of(board_.header.look_turn.load(std::memory_order_relaxed)) == self_;
  }
  void give_away();

  const std::int64_t patience_ns_;  // of a standstill
  Board& board_;
  Owed owed_;
  const std::uint32_t self_;
  const bool shares_node_;
  TurnSpins spins_;
  Debtor& debtor_;
  std::int64_t time_ = 0;
  std::uint32_t barrier_ = 0;  // the one that it arrived at last
  // Looks in vain since it was this PE's turn to look, and at which source the first of them was.
  std::uint32_t turn_looks_ = 0;
  bool beside_time_ = false;  // it looks while time goes on
  const void* turn_source_ = nullptr;
  std::uint32_t free_looks_ = 0;  // at free sources, in a row
  // A moment, monotonic_ns(), at which all slept around a program that looks in real time; 0: none is known.
  // At which source it looked then, and how often it has looked since, and there.
  struct Asleep {
    const void* source = nullptr;
    std::int64_t at = 0;
    std::uint32_t rounds = 0, looks = 0;
  };
  Asleep asleep_;
  bool alone_ = true;  // no other thread of the program had come into the clock at the last look
  // Of the wait: a moment at which all around the program slept that may bring something, and how often it
  // has looked in vain since: at all, and at the source at which it looked first then.
  struct Rest {
    std::uint64_t mark = 0;  // 0: none is known
    const void* source = nullptr;
    std::uint32_t rounds = 0, looks = 0;
    bool is_known = true;  // it looks at the NIC alone
  };
  Rest rest_;
  // The program has done something but look since it waited last; and the board's counts when it did.
  bool does_something_ = true;
  std::uint32_t by_themselves_ = 0, brought_ = 0;
  void note_came(const Rest& rest);
};

}  // namespace orrery::clock
