// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/timer_wheel.hpp"

#include <algorithm>
#include <bit>

namespace orrery {

void TimerWheel::link(Timer& list, Timer& timer) {
  timer.previous_ = list.previous_;
  timer.next_ = &list;
  list.previous_->next_ = &timer;
  list.previous_ = &timer;
}

void TimerWheel::arm(Timer& timer, std::int64_t deadline_ns) {
  timer.disarm();
  // Rounded up: never early.
  const std::int64_t tick = (deadline_ns >> kTickShift) + ((deadline_ns & (kTickNs - 1)) != 0);
  timer.tick_ = std::max(tick, now_ + 1);
  place(timer);
}

// In the lowest level whose slots reach as far. One that is beyond the last waits in that level's last slot,
// and is placed anew when its time comes.
void TimerWheel::place(Timer& timer) {
  const std::int64_t tick = std::min(timer.tick_, now_ + kMostTicks - 1);
  int level = 0;
  while ((tick - now_) >> (level + 1) * kSlotBits != 0) ++level;
  const auto slot = static_cast<std::size_t>((tick >> level * kSlotBits) & (kSlots - 1));
  link(slots_[static_cast<std::size_t>(level)][slot], timer);
  used_[static_cast<std::size_t>(level)] |= std::uint64_t{1} << slot;
}

// The first tick after now_ at which a slot begins that holds a timer.
std::int64_t TimerWheel::next_tick() {
  std::int64_t first = kNever;
  for (int level = 0; level < kLevels; ++level) {
    std::uint64_t& used = used_[static_cast<std::size_t>(level)];
    const std::int64_t here = now_ >> level * kSlotBits;
    while (used != 0) {
      // The slot that we are in comes last: what is in it is a round away.
      const auto from = static_cast<int>((here + 1) & (kSlots - 1));
      const int ahead = std::countr_zero(std::rotr(used, from));
      const auto slot = static_cast<std::size_t>((from + ahead) & (kSlots - 1));
      if (slots_[static_cast<std::size_t>(level)][slot].armed()) {
        first = std::min(first, (here + 1 + ahead) << level * kSlotBits);
        break;
      }
      used &= ~(std::uint64_t{1} << slot);  // all that were in it were disarmed
    }
  }
  return first;
}

// Makes `tick` the present one: what is due goes to `due`, the rest of the slots that begin now to where it
// belongs. REQUIRES: no slot in use begins before.
void TimerWheel::take(std::int64_t tick, Timer& due) {
  now_ = tick;
  for (int level = kLevels - 1; level >= 0; --level) {
    if ((tick & ((std::int64_t{1} << level * kSlotBits) - 1)) != 0) continue;
    const auto slot = static_cast<std::size_t>((tick >> level * kSlotBits) & (kSlots - 1));
    Timer& list = slots_[static_cast<std::size_t>(level)][slot];
    used_[static_cast<std::size_t>(level)] &= ~(std::uint64_t{1} << slot);
    Timer moved;
    while (list.armed()) {
      Timer& timer = *list.next_;
      timer.disarm();
      link(moved, timer);
    }
    while (moved.armed()) {
      Timer& timer = *moved.next_;
      timer.disarm();
      if (timer.tick_ <= tick)
        link(due, timer);
      else
        place(timer);
    }
  }
}

}  // namespace orrery
