// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace orrery {

// What a TimerWheel holds: part of the object whose time limit it is, which derives from it or contains it.
// Its destructor disarms it.
class Timer {
 public:
  Timer() = default;
  ~Timer() { disarm(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  bool armed() const { return next_ != this; }
  void disarm() {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = this;
  }

 private:
  friend class TimerWheel;
  Timer* next_ = this;  // of those in the same slot, in a ring
  Timer* previous_ = this;
  std::int64_t tick_ = 0;  // when it is due
};

// Time limits by the ten thousand: arming and disarming one takes constant time, whatever their number, and
// the time that passes costs nothing but for those that are due (Varghese and Lauck's hierarchical wheel). A
// timer is never early, and at most one tick (1.05 ms) late. Limits beyond 13 days are kept, too.
// Threads: its caller's lock guards the wheel and all its timers.
// Usage: wheel.arm(*timer, now + limit_ns);
//        wheel.advance(now, [](Timer& due) { due.disarm(); });  // by wheel.next_ns() at the latest
class TimerWheel {
 public:
  static constexpr int kTickShift = 20;
  static constexpr std::int64_t kTickNs = std::int64_t{1} << kTickShift;

  explicit TimerWheel(std::int64_t now_ns) : now_(now_ns >> kTickShift) {}
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  // Armed or not, from now on it is due at `deadline_ns`; one that has passed, at the next tick.
  void arm(Timer& timer, std::int64_t deadline_ns);

  // When advance() has to be called next, or earlier than the first timer is due; none: nothing is armed.
  std::optional<std::int64_t> next_ns() {
    const std::int64_t tick = next_tick();
    return tick == kNever ? std::nullopt : std::optional(tick << kTickShift);
  }

  // Calls fire(timer) for each that is due, in the order of their ticks. A timer is disarmed before its call,
  // which may arm and disarm any, that one too.
  template <typename Fire>
  void advance(std::int64_t now_ns, Fire fire) {
    const std::int64_t until = now_ns >> kTickShift;
    Timer due;
    for (std::int64_t tick = next_tick(); tick <= until; tick = next_tick()) {
      take(tick, due);
      while (due.armed()) {
        Timer& first = *due.next_;
        first.disarm();
        fire(first);
      }
    }
    if (until > now_) now_ = until;
  }

 private:
  static constexpr int kLevels = 5;
  static constexpr int kSlotBits = 6;
  static constexpr std::int64_t kSlots = 1 << kSlotBits;
  static constexpr std::int64_t kNever = INT64_MAX;
  static constexpr std::int64_t kMostTicks = std::int64_t{1} << kLevels * kSlotBits;

  static void link(Timer& list, Timer& timer);
  void place(Timer& timer);
  std::int64_t next_tick();
  void take(std::int64_t tick, Timer& due);

  std::int64_t now_;  // ticks up to this one are over
  // A slot of a level spans as many ticks as all slots of the level below. Each is the head of a ring.
  std::array<std::array<Timer, kSlots>, kLevels> slots_;
  std::array<std::uint64_t, kLevels> used_{};  // bit i: slot i may hold some
};

}  // namespace orrery
