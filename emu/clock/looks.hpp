// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/look_source.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace orrery::clock {

// Looks in vain of one PE's program, in a row: what they cost, and from when on they are a wait. A look costs
// the machine's time for it, whatever it looks at. The time is owed, and passes at the latest when the
// program does something else. A program that has looked often enough, at each of its sources, waits: until
// something happens to it, at whatever moment that is. Looks right after that are free, so that an event is
// found at its own time by a program that looks at many sources in any order. One thread.
class Looks {
 public:
  // An engine of a message-passing library may look at some source in every eighth round only.
  static constexpr std::uint32_t kFree = 64, kFewFree = 16;

  // `cost` of each, in ps; `free` ones at least behind news.
  explicit Looks(std::int64_t cost, std::uint32_t free = kFree) : cost_(cost), least_free_(free) {}

  enum class Then : std::uint8_t {
    goes_on,     // nothing more
    catches_up,  // owed() passes, or less where something happens before
    waits,       // it waits for something to happen
  };

  // A look at `source` that found nothing.
  Then look(const void* source) {
    ++since_clock_;
    // Which of an engine's rounds has it is an accident: it takes no part in the row, unless it is all of it.
    if (!is_free_source(source))
      free_in_a_row_ = 0;
    else if (++free_in_a_row_ <= kWait)
      return Then::goes_on;
    ++looks_;
    count(source);
    if (free_ != 0) {
      --free_;
      return Then::goes_on;
    }
    if (is_wait()) return Then::waits;
    if (free_in_a_row_ == 0) owed_ += cost_;
    if (looks_ < next_pass_) return Then::goes_on;
    next_pass_ *= 4;
    return Then::catches_up;
  }
  // Something happened that the program may be looking for: it finds it now, or looks at all its sources.
  void news() {
    free_ = std::max(least_free_, 2 * sources_);
    restart();
  }
  // Something happened that it looks for only if it waits.
  void stirred() {
    if (is_wait()) news();
  }
  // The program looks at the clock, too.
  void clock_read() { since_clock_ = 0; }
  // Whether it does so in the same loop.
  bool is_watched() const { return since_clock_ <= std::max(kWait, 4 * sources_); }
  // Something other than a look in vain: the next look is the first.
  void done() {
    free_ = 0;
    since_clock_ = UINT32_MAX / 2;
    restart();
  }
  // What the looks cost so far, and has not passed. Taken when it passes.
  std::int64_t owed() const { return owed_; }
  std::int64_t take_owed() {
    const std::int64_t owed = owed_;
    owed_ = 0;
    return owed;
  }
  std::int64_t cost() const { return cost_; }
  std::uint32_t in_a_row() const { return looks_; }
  bool is_wait() const { return looks_ > std::max(kWait, 4 * sources_); }

 private:
  static constexpr std::uint32_t kFirstPass = 16;  // looks; the next one after four times as many
  static constexpr std::uint32_t kWait = 64;
  static constexpr std::size_t kSeen = 1024, kTries = 16;

  void restart() {
    looks_ = 0;
    free_in_a_row_ = 0;
    sources_ = 0;
    owed_ = 0;
    next_pass_ = kFirstPass;
    ++row_;
  }
  // How many sources there are. Of more than there is room for some are not counted.
  void count(const void* source) {
    std::size_t at = reinterpret_cast<std::uintptr_t>(source) * 0x9e3779b97f4a7c15u >> 54;
    for (std::size_t tries = 0; tries < kTries; ++tries, at = (at + 1) % kSeen) {
      if (seen_[at].row != row_) {
        seen_[at] = {source, row_};
        ++sources_;
        return;
      }
      if (seen_[at].source == source) return;
    }
  }

  struct Seen {
    const void* source = nullptr;
    std::uint64_t row = 0;
  };
  const std::int64_t cost_;
  const std::uint32_t least_free_;
  std::int64_t owed_ = 0;
  std::uint64_t row_ = 1;
  std::uint32_t since_clock_ = UINT32_MAX / 2;  // looks
  std::uint32_t looks_ = 0, sources_ = 0, free_ = 0, next_pass_ = kFirstPass;
  std::uint32_t free_in_a_row_ = 0;  // looks at free sources, with none at another between them
  std::array<Seen, kSeen> seen_{};
};

}  // namespace orrery::clock
