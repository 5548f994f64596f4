// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"

#include <cstdint>

namespace orrery::clock {

// How a PE spins for its turn. Only one PE of a job runs at a time. Where each has a core, the next one is
// awake. Where they share cores, a waiting PE gives its core up at once, and all are on one core: a turn that
// goes to another core costs the time to wake that core, several times that of a switch. They come together,
// too, where others keep the host busy: a thread that waits for a core for a quarter of the time tells.
// Threads: one at a time.
// Usage: if (!spins.spin(granted)) sleep_on(word);
class TurnSpins {
 public:
  static constexpr std::uint32_t kWindow = 256;  // spins, and at least so many ns, between two judgements
  static constexpr std::int64_t kWindowNs = 20'000'000;
  static constexpr std::int64_t kPartOfBusy = 4;

  // `spins`: how long, 0 where PEs share cores. `core`: where those go, -1: nowhere.
  TurnSpins(std::uint32_t spins, int core) : spins_(spins), core_(core) {
    if (spins_ == 0) share_core();
  }

  // Whether done() became true.
  template <typename Done>
  bool spin(Done done) {
    if (spins_ == 0) return done();
    const bool is_done = spin_then_yield({.spins = spins_, .yields = 0}, done);
    if (++made_ % kWindow == 0) look_at_host();
    return is_done;
  }

  // `waited_ns`: how long this thread has waited for a core until `now_ns`, of its life.
  void judge(std::int64_t waited_ns, std::int64_t now_ns) {
    if (now_ns - from_ns_ < kWindowNs) return;
    const bool is_busy = from_ns_ != 0 && (waited_ns - waited_ns_) * kPartOfBusy > now_ns - from_ns_;
    from_ns_ = now_ns;
    waited_ns_ = waited_ns;
    if (!is_busy || core_ < 0) return;
    spins_ = 0;
    share_core();
  }

  // It sleeps at once, and is on the core of the others.
  bool shares_core() const { return spins_ == 0; }

 private:
  void look_at_host();

  // For the calling thread, and those that it will start.
  void share_core() const;

  std::uint32_t spins_;
  const int core_;
  std::uint32_t made_ = 0;
  std::int64_t from_ns_ = 0, waited_ns_ = 0;  // where the time that is judged next begins
};

}  // namespace orrery::clock
