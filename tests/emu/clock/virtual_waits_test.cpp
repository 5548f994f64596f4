// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/data_touch.hpp"
#include "emu/clock/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <time.h>

namespace orrery::clock {
namespace {

constexpr std::int64_t kUs = 1'000'000;

// What has come to PE 1. Plain: one PE at a time goes on.
struct Came {
  int data = 0, events = 0;
};

struct Comes final : Task {
  Comes(VirtualClock& of, Came& what, bool data) : clock(of), came(what), is_data(data) {}
  void run() override {
    ++(is_data ? came.data : came.events);
    clock.touch(is_data ? data_of(2) : 2);
    delete this;
  }
  VirtualClock& clock;
  Came& came;
  const bool is_data;
};

// Messages come to PE 1 at 10, 20 ... us, and the event of each 1 us later. Returns how often PE 1 looked in
// vain between the two, for each message. `finds_data`: it takes the message when its data is there.
std::vector<int> vain_looks(int messages, bool finds_data) {
  const Choice aries{.kind = Kind::virtual_time, .machine = "aries", .compute = {}};
  std::vector<std::unique_ptr<SharedClock>> shared;
  for (std::uint32_t pe = 0; pe < 2; ++pe) {
    auto made = SharedClock::for_test(aries, pe, {0, 1}, pe == 0 ? nullptr : shared[0].get());
    EXPECT_TRUE(made.ok());
    shared.push_back(std::move(made).value());
  }
  std::vector<std::unique_ptr<VirtualClock>> clocks(2);
  std::vector<int> vain(static_cast<std::size_t>(messages) + 1);
  Came came;
  const auto program = [&](std::uint32_t pe) {
    constexpr WaitBudget kFew{.spins = 1, .yields = 1};
    clocks[pe] = std::make_unique<VirtualClock>(std::move(shared[pe]), aries, kFew, pe + 1, "");
    VirtualClock& clock = *clocks[pe];
    clock.barrier_arrive();
    clock.barrier_wait(Picos{});
    if (pe == 0) {
      clock.enter();
      for (int i = 1; i <= messages; ++i) {
        clock.schedule_there(Picos{i * 10 * kUs}, new Comes(clock, came, true), 2);
        clock.schedule_there(Picos{(i * 10 + 1) * kUs}, new Comes(clock, came, false), 2);
      }
      clock.leave();
      clock.sleep_until(Picos{(messages * 10 + 2) * kUs});
    } else {
      int found = 0;
      while (came.events < messages) {
        clock.idle(&came);
        if (came.data > came.events) ++vain[static_cast<std::size_t>(came.data)];
        const int there = finds_data ? came.data : came.events;
        if (there == found) continue;
        found = there;
        EXPECT_EQ(clock.now().count(), (found * 10 + (finds_data ? 0 : 1)) * kUs);
        clock.found();
      }
    }
    clock.finish();
  };
  std::thread first(program, 0), second(program, 1);
  first.join();
  second.join();
  return vain;
}

TEST(VirtualWaits, AProgramThatLooksForEventsOnlyGoesOnForTheDataOfTheFirstAlone) {
  const std::vector<int> vain = vain_looks(4, false);
  EXPECT_GT(vain[1], 0);
  for (const int message : {2, 3, 4}) EXPECT_EQ(vain[static_cast<std::size_t>(message)], 0) << message;
}

TEST(VirtualWaits, AProgramThatFindsTheDataGoesOnAtItsTime) {
  const std::vector<int> vain = vain_looks(4, true);
  for (const int message : {1, 2, 3, 4}) EXPECT_GT(vain[static_cast<std::size_t>(message)], 0) << message;
}

// The NIC of PE 1, which works by itself.
struct Nic {
  VirtualClock* clock = nullptr;
  int due = 0;
  std::vector<std::int64_t> reached, worked;  // when
};

// What PE 0 does to it.
struct Reaches final : Task {
  Reaches(VirtualClock& of, Nic& what) : clock(of), nic(what) {}
  void run() override {
    ++nic.due;
    clock.touch(2);
    delete this;
  }
  VirtualClock& clock;
  Nic& nic;
};

// PE 0 reaches the NIC of PE 1 after 1 and 2 ms, while the program of PE 1 does what `away` says. Each piece
// of work takes 3 us of the machine's time.
Nic works_while(const Choice& choice, const std::function<void(VirtualClock&)>& away) {
  std::vector<std::unique_ptr<SharedClock>> shared;
  for (std::uint32_t pe = 0; pe < 2; ++pe) {
    auto made = SharedClock::for_test(choice, pe, {0, 1}, pe == 0 ? nullptr : shared[0].get());
    EXPECT_TRUE(made.ok());
    shared.push_back(std::move(made).value());
  }
  std::vector<std::unique_ptr<VirtualClock>> clocks(2);
  Nic nic;
  const auto program = [&](std::uint32_t pe) {
    constexpr WaitBudget kFew{.spins = 1, .yields = 1};
    clocks[pe] = std::make_unique<VirtualClock>(std::move(shared[pe]), choice, kFew, pe + 1, "");
    VirtualClock& clock = *clocks[pe];
    if (pe == 1) {
      nic.clock = &clock;
      clock.set_work(
          [](void* argument) {
            auto* const mine = static_cast<Nic*>(argument);
            for (; mine->due != 0; --mine->due) {
              mine->worked.push_back(mine->clock->now().count());
              mine->clock->sleep_until(mine->clock->now() + Picos{3 * kUs});
            }
          },
          &nic);
    }
    clock.barrier_arrive();
    clock.barrier_wait(Picos{});
    if (pe == 0) {
      clock.enter();
      for (const std::int64_t after : {1'000, 2'000}) {
        nic.reached.push_back(clock.now().count() + after * kUs);
        clock.schedule_there(Picos{nic.reached.back()}, new Reaches(clock, nic), 2);
      }
      clock.leave();
      clock.sleep_until(clock.now() + Picos{10'000'000 * kUs});
    } else {
      away(clock);
    }
    clock.finish();
  };
  std::thread first(program, 0), second(program, 1);
  first.join();
  second.join();
  return nic;
}

const Choice kOfAries{.kind = Kind::virtual_time, .machine = "aries", .compute = {}};

TEST(VirtualWaits, ANicThatWorksByItselfDoesSoAtItsTimeWhileTheProgramSleeps) {
  std::int64_t slept = 0;
  bool is_told = false;
  const Nic nic = works_while(kOfAries, [&](VirtualClock& clock) {
    const std::int64_t from = clock.now().count();
    clock.sleep_until(Picos{from + 10'000 * kUs});
    slept = clock.now().count() - from;
    // The program has not seen yet that something came.
    is_told = clock.wait(clock.now() + Picos{kUs});
  });
  EXPECT_EQ(nic.worked, nic.reached);
  EXPECT_EQ(slept, 10'000 * kUs);
  EXPECT_TRUE(is_told);
}

TEST(VirtualWaits, ANicThatWorksByItselfDoesSoAtItsTimeWhileTheProgramNaps) {
  const Nic nic = works_while(kOfAries, [&](VirtualClock& clock) {
    for (int i = 0; i < 10; ++i) clock.nap(Picos{700 * kUs});
  });
  EXPECT_EQ(nic.worked, nic.reached);
}

TEST(VirtualWaits, ANicThatWorksByItselfDoesSoAtItsTimeWhileTheProgramComputes) {
  const auto used_ns = [] {
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * 1'000'000'000 + used.tv_nsec;
  };
  // Some 5 ms of processor time are 5 s of the machine's.
  const Choice measured{
      .kind = Kind::virtual_time, .machine = "aries", .compute = {.measured = true, .factor = 1'000}};
  const Nic nic = works_while(measured, [&](VirtualClock& clock) {
    for (const auto from = used_ns(); used_ns() - from < 5'000'000;) {
    }
    clock.compute_passes();
  });
  EXPECT_EQ(nic.worked, nic.reached);
}

// What a program of one PE finds the clock at after so many readings of it, with 20 us of its own before
// every `gap`-th of them.
Picos after_readings(int readings, int gap) {
  const Choice aries{.kind = Kind::virtual_time, .machine = "aries", .compute = {}};
  auto shared = SharedClock::for_test(aries, 0, {0}, nullptr);
  EXPECT_TRUE(shared.ok());
  VirtualClock clock(std::move(shared).value(), aries, WaitBudget{.spins = 1, .yields = 1}, 1, "");
  Picos last{};
  for (int i = 0; i < readings; ++i) {
    if (i % gap == 0) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
      while (std::chrono::steady_clock::now() < until) {
      }
    }
    last = clock.read();
  }
  clock.finish();
  return last;
}

// What the program computes in between, or the host takes away, is real time.
TEST(VirtualWaits, ReadingsOfTheClockAreTheSameWhateverPassesInRealTimeBetweenThem) {
  const Picos alone = after_readings(2'000, 5'000);
  EXPECT_GT(alone, Picos{});
  for (const int gap : {1, 2, 4, 8, 20}) EXPECT_EQ(after_readings(2'000, gap), alone) << gap;
}

// A program that times a thousand kernels.
TEST(VirtualWaits, TwoThousandReadingsTakeLessThanAMillisecondInAll) {
  EXPECT_EQ(after_readings(64, 100), Picos{});
  EXPECT_LT(after_readings(2'000, 5'000), Picos{1'000 * kUs});
}

// One that waits for a second by looking at the clock is not much later, after not too many looks.
TEST(VirtualWaits, AWaitBySomeThousandReadingsIsLateByAThousandth) {
  const Choice aries{.kind = Kind::virtual_time, .machine = "aries", .compute = {}};
  auto shared = SharedClock::for_test(aries, 0, {0}, nullptr);
  ASSERT_TRUE(shared.ok());
  VirtualClock clock(std::move(shared).value(), aries, WaitBudget{.spins = 1, .yields = 1}, 1, "");
  int readings = 0;
  Picos last{};
  for (; last < Picos{1'000'000 * kUs}; ++readings) last = clock.read();
  EXPECT_LE(last, Picos{1'001'000 * kUs});
  EXPECT_LT(readings, 12'000);
  clock.finish();
}

}  // namespace
}  // namespace orrery::clock
