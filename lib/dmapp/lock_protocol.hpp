// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstddef>
#include <cstdint>

// Locks that wait in a queue (Mellor-Crummey and Scott, 1991): the descriptor names the last one in it, or is
// 0; each waits on a place of its own memory, which the one before it writes to.
//
//   descriptor: 63 lost | 31..0 name of the last place    name: PE + 1 << 10 | place
//   lost: with the name of a place of the PE that took the lock with it, where that is known
//
// A holder, or one that waits before others, that dies takes the lock with it: the one behind it sees that,
// marks the descriptor as lost, and all others see that. One that comes later puts its name over that mark
// until it has seen it; lest it die there, each that ends without the lock says so in its place, where the
// one behind it looks, too.
//
// The protocol knows words alone, each of which is read or written whole, and does one thing with them at
// each step: what other PEs do between the steps is up to whatever calls step(). W has
//
//   std::uint64_t swap(value), compare_swap(from, to), get()   of the descriptor; what was there
//   void put(pe, LockWord, place, value)                       of a PE's place
//   std::uint64_t get(pe, LockWord, place)                     of a PE's place
//   void set_own(LockWord, value)                              of this PE's place
//   std::uint64_t own(LockWord)                                of this PE's place
//   bool ok()                                                  whether the last of the above reached the PE
//   void watch(pe)                                             its death will be noticed
//   bool alive(pe)
//   bool ended()                                               the waiting is to be given up: this PE goes
//   bool missed()                                              a PE died that was to say that it waits
//
// Threads: one for each object.
namespace orrery::dmapp::lock {

inline constexpr std::uint64_t kLost = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kGranted = 1;

constexpr std::uint64_t name_of(int pe, std::size_t place) {
  return (static_cast<std::uint64_t>(pe) + 1) << 10 | place;
}
constexpr int pe_of(std::uint64_t name) { return static_cast<int>((name & 0xffff'ffff) >> 10) - 1; }
constexpr std::size_t place_of(std::uint64_t name) { return name & 0x3ff; }

// The descriptor of a lock that was lost with `pe`; -1: it is not known with which.
constexpr std::uint64_t mark_of(int pe) { return pe < 0 ? kLost : kLost | name_of(pe, 0); }
// What a place says of it, and back.
constexpr std::uint64_t lost_word(int pe) { return static_cast<std::uint64_t>(pe + 2); }
constexpr int pe_of_lost(std::uint64_t word) { return static_cast<int>(word & 0xffff'ffff) - 2; }

// The words of a place.
enum class LockWord : std::uint8_t {
  next,     // name of the place behind this one, which writes it
  granted,  // kGranted: the lock is this place's; the one before writes it
  lost,     // lost_word(): this place never gets the lock, or does not hand it on; its owner writes it
};

enum class Step : std::uint8_t {
  again,     // call step()
  wait,      // call step() when awaits() is not 0, or gave_up() says so
  held,      // the lock is this PE's
  busy,      // it is another's
  released,  // it is the next one's, or free
  lost,      // it is lost, to all
  failed,    // the descriptor was not reached; nothing was done
};

// One PE that wants the lock. step() is to be called until it returns neither again nor wait.
template <typename W>
class Acquire {
 public:
  // `waits`: while the lock is another's. REQUIRES: both words of the place are 0.
  Acquire(W& words, std::uint64_t name, int npes, bool waits)
      : words_(words), name_(name), npes_(npes), waits_(waits) {}

  Step step() {
    switch (at_) {
      case At::begin:
        return waits_ ? enter() : attempt();
      case At::link:
        words_.put(pe_of(before_), LockWord::next, place_of(before_), name_);
        at_ = words_.ok() ? At::wait : At::lose;
        if (!words_.ok()) lost_with_ = pe_of(before_);
        return words_.ok() ? Step::wait : Step::again;
      case At::wait: {
        const std::uint64_t granted = words_.own(LockWord::granted);
        if (granted == kGranted) return Step::held;
        if (granted == 0 && !gives_up_) return Step::wait;
        at_ = At::lose;
        return Step::again;
      }
      case At::lose:
        words_.set_own(LockWord::lost, lost_word(lost_with()));
        at_ = At::mark;
        return Step::again;
      case At::mark:
        (void)words_.swap(mark_of(lost_with()));
        break;
    }
    return Step::lost;
  }
  static constexpr LockWord awaits() { return LockWord::granted; }
  // After the end lost: the PE that died; -1: it is not known which.
  int lost_with() const { return lost_with_ >= 0 && lost_with_ < npes_ ? lost_with_ : -1; }
  // After any end but held: whether no other PE was told the name. Else one that waits behind may still say
  // its own name, and one before may still grant the lock.
  bool place_is_free() const { return at_ == At::begin; }
  // Whether the one before is not going to grant it. To be asked now and then.
  bool gave_up() {
    if (!gives_up_) gives_up_ = words_.ended() || is_lost();
    return gives_up_;
  }

 private:
  enum class At : std::uint8_t { begin, link, wait, lose, mark };
  Step attempt() {
    const std::uint64_t old = words_.compare_swap(0, name_);
    if (!words_.ok()) return Step::failed;
    if (old == 0) return Step::held;
    if ((old & kLost) == 0) return Step::busy;
    lost_with_ = pe_of(old);
    return Step::lost;
  }
  // The mark first: the one before may have died since it saw which PE the lock was lost with.
  bool is_lost() {
    const int pe = pe_of(before_);
    const std::uint64_t last = words_.get();
    const bool reached = words_.ok();
    if (reached && (last & kLost) != 0) {
      lost_with_ = pe_of(last);
      return true;
    }
    if (!words_.alive(pe)) {
      lost_with_ = pe;
      return true;
    }
    if (!reached) return true;
    const std::uint64_t said = words_.get(pe, LockWord::lost, place_of(before_));
    if (words_.ok() && said == 0) return false;
    lost_with_ = words_.ok() ? pe_of_lost(said) : pe;
    return true;
  }
  Step enter() {
    before_ = words_.swap(name_);
    if (!words_.ok()) return Step::failed;
    if (before_ == 0) return Step::held;
    const int pe = pe_of(before_);
    // The latter: no lock was here.
    const bool leads_nowhere = (before_ & kLost) != 0 || pe < 0 || pe >= npes_;
    if (!leads_nowhere) words_.watch(pe);
    if ((before_ & kLost) != 0) lost_with_ = pe;
    at_ = leads_nowhere ? At::lose : At::link;
    return Step::again;
  }

  W& words_;
  const std::uint64_t name_;
  const int npes_;
  const bool waits_;
  At at_ = At::begin;
  bool gives_up_ = false;
  int lost_with_ = -1;
  std::uint64_t before_ = 0;  // name of the place before this one
};

// One PE that has the lock. The same.
template <typename W>
class Release {
 public:
  Release(W& words, std::uint64_t name, int npes) : words_(words), name_(name), npes_(npes) {}

  Step step() {
    switch (at_) {
      case At::begin:
        at_ = words_.own(LockWord::next) == 0 ? At::leave : At::wait;
        return Step::again;
      case At::leave: {
        const std::uint64_t old = words_.compare_swap(name_, 0);
        if (!words_.ok()) return Step::failed;
        left_ = old == name_;
        if (left_) return Step::released;
        at_ = (old & kLost) != 0 ? At::lose : At::wait;
        if ((old & kLost) != 0) lost_with_ = pe_of(old);
        return Step::again;
      }
      case At::wait: {
        const std::uint64_t next = words_.own(LockWord::next);
        if (next == 0 && !gives_up_) return Step::wait;
        const int pe = pe_of(next);
        next_ = next;
        at_ = next == 0 || pe < 0 || pe >= npes_ ? At::lose : At::grant;
        return Step::again;
      }
      case At::grant:
        left_ = true;
        words_.put(pe_of(next_), LockWord::granted, place_of(next_), kGranted);
        if (words_.ok()) return Step::released;
        lost_with_ = pe_of(next_);
        at_ = At::lose;
        return Step::again;
      case At::lose:
        words_.set_own(LockWord::lost, lost_word(lost_with()));
        at_ = At::mark;
        return Step::again;
      case At::mark:
        (void)words_.swap(mark_of(lost_with()));
        break;
    }
    return Step::lost;
  }
  static constexpr LockWord awaits() { return LockWord::next; }
  // As Acquire's.
  int lost_with() const { return lost_with_ >= 0 && lost_with_ < npes_ ? lost_with_ : -1; }
  // After the end: whether no PE writes to the place any more.
  bool place_is_free() const { return left_; }
  bool gave_up() {
    gives_up_ = gives_up_ || words_.ended() || words_.missed();
    return gives_up_;
  }

 private:
  enum class At : std::uint8_t { begin, leave, wait, grant, lose, mark };

  W& words_;
  const std::uint64_t name_;
  const int npes_;
  At at_ = At::begin;
  bool gives_up_ = false;
  bool left_ = false;
  int lost_with_ = -1;
  std::uint64_t next_ = 0;  // name of the place behind this one
};

}  // namespace orrery::dmapp::lock
