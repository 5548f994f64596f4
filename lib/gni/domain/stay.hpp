// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/bury.hpp"
#include "emu/base/wait.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

// Calls that wait inside an object, and the end of that object.
namespace orrery::gni {

// A waiting call looks at least this often whether its object has ended.
constexpr std::int64_t kStaySliceNs = 100'000'000;
// How long the end of an object waits for calls inside it. Those of virtual time may stay until an event.
constexpr std::int64_t kStayEndNs = 2'000'000'000;

// The calls that wait inside one object. Threads: any; one ends it.
// A call makes a Stay, looks whether the object has ended, and waits by wait_inside().
class Stays {
 public:
  bool ended() const { return ended_.load(std::memory_order_seq_cst); }
  // Ends the object for its calls and waits until they have left; `wake` is called again and again meanwhile.
  // False: one has not left in time, and the object must stay as it is for good.
  template <typename Wake>
  bool end(Wake wake) {
    ended_.store(true, std::memory_order_seq_cst);
    const std::int64_t deadline = monotonic_ns() + kStayEndNs;
    while (inside_.load(std::memory_order_seq_cst) != 0) {
      if (monotonic_ns() >= deadline) return false;
      wake();
      yield_cpu();
    }
    return true;
  }
  // The object goes on after all.
  void go_on() { ended_.store(false, std::memory_order_seq_cst); }

 private:
  friend class Stay;
  std::atomic<std::uint32_t> inside_{0};
  std::atomic<bool> ended_{false};
};

// One call inside. A value on the caller's stack; the object outlives it, or is buried.
class Stay {
 public:
  explicit Stay(Stays& stays) : stays_(stays) { stays_.inside_.fetch_add(1, std::memory_order_seq_cst); }
  ~Stay() { stays_.inside_.fetch_sub(1, std::memory_order_seq_cst); }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

 private:
  Stays& stays_;
};

// Waits by `wait(deadline)`, which returns false at its deadline, in slices, until it returns true, the
// client's own deadline passes or `stays` end. `in_slices` false (virtual time): in one piece. True: `wait`
// returned true.
template <typename Wait>
bool wait_inside(const Stays& stays, bool in_slices, std::optional<std::int64_t> deadline, Wait wait) {
  for (;;) {
    std::optional<std::int64_t> until = deadline;
    if (in_slices) {
      const std::int64_t slice = monotonic_ns() + kStaySliceNs;
      until = deadline ? std::min(*deadline, slice) : slice;
    }
    if (wait(until)) return true;
    if (stays.ended() || !in_slices || (deadline && monotonic_ns() >= *deadline)) return false;
  }
}

}  // namespace orrery::gni
