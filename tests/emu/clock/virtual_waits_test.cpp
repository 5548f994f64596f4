// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/data_touch.hpp"
#include "emu/clock/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

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

}  // namespace
}  // namespace orrery::clock
