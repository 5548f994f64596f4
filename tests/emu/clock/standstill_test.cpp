// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// What PEs tell each other past the NIC, by a flag in memory that they share, as libraries of MPI do within a
// host. PEs are threads of this process.
namespace orrery::clock {
namespace {

constexpr std::uint32_t kPes = 12;
constexpr int kRounds = 8;

const Choice kOnAries{.kind = Kind::virtual_time, .machine = "aries", .compute = {}};

// Runs `program` as so many PEs, each on a node of its own, in a thread.
void run_as_pes(std::uint32_t pes, const std::function<void(std::uint32_t, VirtualClock&)>& program) {
  std::vector<std::uint32_t> nodes(pes);
  for (std::uint32_t pe = 0; pe < pes; ++pe) nodes[pe] = pe;
  std::vector<std::unique_ptr<SharedClock>> shared;
  const SharedClock* first = nullptr;
  for (std::uint32_t pe = 0; pe < pes; ++pe) {
    auto made = SharedClock::for_test(kOnAries, pe, nodes, first);
    EXPECT_TRUE(made.ok());
    shared.push_back(std::move(made).value());
    first = shared[0].get();
  }
  std::vector<std::unique_ptr<VirtualClock>> clocks(pes);
  std::vector<std::thread> threads;
  for (std::uint32_t pe = 0; pe < pes; ++pe) {
    threads.emplace_back([&, pe] {
      clocks[pe] = std::make_unique<VirtualClock>(std::move(shared[pe]), kOnAries,
                                                  WaitBudget{.spins = 1, .yields = 1}, pe + 1, "");
      clocks[pe]->barrier_arrive();
      clocks[pe]->barrier_wait(Picos{});
      program(pe, *clocks[pe]);
      clocks[pe]->finish();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Without atomics: one PE at a time looks.
TEST(Standstill, ALockInMemoryIsTakenInTheSameOrderInEveryRun) {
  struct Taken {
    std::uint32_t pe;
    std::int64_t at;
    bool operator==(const Taken&) const = default;
  };
  const auto run = [] {
    std::vector<Taken> order;
    bool locked = false;
    run_as_pes(kPes, [&](std::uint32_t pe, VirtualClock& clock) {
      for (int round = 0; round < 4; ++round) {
        while (locked) clock.idle(&clock);
        locked = true;
        order.push_back({pe, clock.now().count()});
        clock.sleep_until(clock.now() + Picos{1'000'000 * (1 + (pe * 7 + 3) % 5)});
        locked = false;
        clock.sleep_until(clock.now() + Picos{10'000 * (pe % 3)});
      }
    });
    return order;
  };
  const auto first = run();
  EXPECT_EQ(first.size(), 4u * kPes);
  for (int again = 0; again < 2; ++again) EXPECT_EQ(run(), first);
}

// The looks of each are counted, and another one's are among them.
TEST(Standstill, EachHasSoManyLooksWhenItIsItsTurn) {
  const auto run = [] {
    std::vector<std::uint32_t> looks;
    int going = kPes;
    run_as_pes(kPes, [&](std::uint32_t pe, VirtualClock& clock) {
      for (std::uint32_t look = 0; look < 1'000 + 50 * pe; ++look) {
        looks.push_back(pe);
        clock.idle(&looks);
      }
      --going;
      while (going != 0) clock.idle(&looks);
    });
    return looks;
  };
  const auto first = run();
  for (int again = 0; again < 2; ++again) EXPECT_EQ(run(), first);
}

// It waits, in the middle of its loop, for what another one does then.
TEST(Standstill, OneThatSleepsInSomethingElseDoesNotKeepTheOthersFromLooking) {
  std::atomic<bool> told{false}, asked{false};
  run_as_pes(3, [&](std::uint32_t pe, VirtualClock& clock) {
    const auto sleep_really = [] {
      const timespec moment{0, 1'000'000};
      syscall(SYS_nanosleep, &moment, nullptr);
    };
    if (pe == 0) {
      for (int look = 0; look < 200; ++look) clock.idle(&told);
      asked = true;
      while (!told) sleep_really();
    } else {
      while (!asked) clock.idle(&told);
      told = true;
    }
  });
  EXPECT_TRUE(told);
}

TEST(Standstill, AFlagIsFoundByAllAtOneTimeHoweverSoonTheFirstLooks) {
  std::atomic<int> flag{0};
  std::array<std::atomic<int>, kPes> answers{};
  std::array<std::array<std::int64_t, kPes>, kRounds> found{};
  // Written by the PE that has the turn.
  std::int64_t reached = 0;
  std::array<int, kPes> behind{};
  const auto await = [](VirtualClock& clock, const auto& there) {
    while (!there()) clock.idle(&clock);
  };
  run_as_pes(kPes, [&](std::uint32_t pe, VirtualClock& clock) {
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
  });
  for (std::uint32_t pe = 0; pe < kPes; ++pe) EXPECT_EQ(behind[pe], 0) << "PE " << pe << " went back in time";
  for (const auto& round : found) {
    for (std::uint32_t pe = 1; pe < kPes; ++pe) EXPECT_EQ(round[pe], round[0]) << "PE " << pe;
  }
}

}  // namespace
}  // namespace orrery::clock
