// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/page_watch.hpp"
#include "emu/clock/virtual_clock.hpp"
#include "emu/memory/address_space.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace orrery::clock {

// The handler of faults, and a job of one PE, whose thread is the one that is watched: the first one that
// asks for it in this process.
class Watched {
 public:
  Watched() {
    static const bool made = [] {
      auto space = memory::AddressSpace::create({});
      EXPECT_TRUE(space.ok());
      if (space.ok()) static const auto kept = std::move(space).value();
      return true;
    }();
    (void)made;
    auto shared = SharedClock::for_test(kAries, 0, {0}, nullptr);
    EXPECT_TRUE(shared.ok());
    clock_ = std::make_unique<VirtualClock>(std::move(shared).value(), kAries,
                                            WaitBudget{.spins = 1, .yields = 1}, 1, "");
    page_watch::start(clock_.get());
  }
  ~Watched() { clock_->finish(); }
  VirtualClock& clock() { return *clock_; }
  // Stores it, in a microsecond of virtual time.
  void store_soon(volatile std::uint64_t* to, std::uint64_t value) {
    clock_->enter();
    clock_->schedule_there(clock_->now() + Picos{1'000'000}, new Store(*clock_, to, value), 1);
    clock_->leave();
  }

 private:
  struct Store final : Task {
    Store(VirtualClock& clock, volatile std::uint64_t* to, std::uint64_t value)
        : clock_(clock), to_(to), value_(value) {}
    void run() override {
      *to_ = value_;
      clock_.touch(1);
      delete this;
    }
    VirtualClock& clock_;
    volatile std::uint64_t* const to_;
    const std::uint64_t value_;
  };
  static inline const Choice kAries{.kind = Kind::virtual_time, .machine = "aries", .compute = {}};
  std::unique_ptr<VirtualClock> clock_;
};

// Uses processor time without a call, which gets the program's pages closed.
inline void compute_for(std::int64_t ns) {
  timespec now{};
  const auto used = [&] {
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
  };
  const std::int64_t until = used() + ns;
  while (used() < until) {
  }
}

}  // namespace orrery::clock
