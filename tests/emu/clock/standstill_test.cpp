// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

// What PEs tell each other past the NIC, by a flag in memory that they share, as libraries of MPI do within a
// host. PEs are threads of this process.
namespace orrery::clock {
namespace {

constexpr std::uint32_t kPes = 12;
constexpr int kRounds = 8;

TEST(Standstill, AFlagIsFoundByAllAtOneTimeHoweverSoonTheFirstLooks) {
  const Choice choice{.kind = Kind::virtual_time, .machine = "aries", .compute = {}};
  const std::vector<std::uint32_t> nodes = [] {
    std::vector<std::uint32_t> each(kPes);
    for (std::uint32_t pe = 0; pe < kPes; ++pe) each[pe] = pe;
    return each;
  }();
  std::vector<std::unique_ptr<SharedClock>> shared;
  const SharedClock* first = nullptr;
  for (std::uint32_t pe = 0; pe < kPes; ++pe) {
    auto made = SharedClock::for_test(choice, pe, nodes, first);
    ASSERT_TRUE(made.ok());
    shared.push_back(std::move(made).value());
    first = shared[0].get();
  }
  std::atomic<int> flag{0};
  std::array<std::atomic<int>, kPes> answers{};
  std::array<std::array<std::int64_t, kPes>, kRounds> found{};
  // Written by the PE that has the turn.
  std::int64_t reached = 0;
  std::array<int, kPes> behind{};
  std::vector<std::unique_ptr<VirtualClock>> clocks(kPes);
  const auto await = [](VirtualClock& clock, const auto& there) {
    while (!there()) clock.idle(&clock);
  };
  const auto play = [&](std::uint32_t pe) {
    clocks[pe] = std::make_unique<VirtualClock>(std::move(shared[pe]), choice,
                                                WaitBudget{.spins = 1, .yields = 1}, pe + 1, "");
    VirtualClock& clock = *clocks[pe];
    clock.barrier_arrive();
    clock.barrier_wait(Picos{});
    for (int round = 1; round <= kRounds; ++round) {
      const auto all_answered = [&] {
        return std::all_of(answers.begin() + 1, answers.end(), [&](const auto& a) { return a == round; });
      };
      // The last one that looks is the one that has told the others.
      if (pe == 0) {
        clock.sleep_until(clock.now() + Picos{1'000'000'000});
        flag = round;
        await(clock, all_answered);
      } else {
        await(clock, [&] { return flag == round; });
        answers[pe] = round;
      }
      clock.enter();
      found[static_cast<std::size_t>(round - 1)][pe] = clock.now().count();
      behind[pe] += clock.now().count() < reached ? 1 : 0;
      clock.leave();
      for (int step = 0; step < 4; ++step) {
        clock.sleep_until(clock.now() + Picos{10'000});
        reached = std::max(reached, clock.now().count());
      }
    }
    clock.finish();
  };
  std::vector<std::thread> threads;
  for (std::uint32_t pe = 0; pe < kPes; ++pe) threads.emplace_back(play, pe);
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t pe = 0; pe < kPes; ++pe) EXPECT_EQ(behind[pe], 0) << "PE " << pe << " went back in time";
  for (const auto& round : found) {
    for (std::uint32_t pe = 1; pe < kPes; ++pe) EXPECT_EQ(round[pe], round[0]) << "PE " << pe;
  }
}

}  // namespace
}  // namespace orrery::clock
