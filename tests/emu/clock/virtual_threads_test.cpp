// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/virtual_clock.hpp"

#include "emu/clock/thread_start.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

// Threads of a PE beside the one that makes time pass, which post whenever they like. The PEs of a job are
// threads of this process, each with a clock of its own over the same shared memory.
namespace orrery::clock {
namespace {

const Choice kOnAries{.kind = Kind::virtual_time, .machine = "aries", .compute = {}};
constexpr WaitBudget kYields{.spins = 0, .yields = 1};
constexpr std::uint32_t kThreadedPes = 3;
constexpr int kHelpers = 2, kPosts = 60;

std::uint32_t process_of(std::uint32_t pe) { return pe + 1; }

std::vector<std::unique_ptr<SharedClock>> clocks_of(std::uint32_t pes) {
  std::vector<std::unique_ptr<SharedClock>> shared;
  std::vector<std::uint32_t> nodes(pes);
  std::iota(nodes.begin(), nodes.end(), 0U);
  for (std::uint32_t pe = 0; pe < pes; ++pe) {
    auto made = SharedClock::for_test(kOnAries, pe, nodes, pe == 0 ? nullptr : shared[0].get());
    EXPECT_TRUE(made.ok());
    shared.push_back(std::move(made).value());
  }
  return shared;
}

// The clock of a PE, when all have joined.
VirtualClock& join(std::vector<std::unique_ptr<SharedClock>>& shared,
                   std::vector<std::unique_ptr<VirtualClock>>& clocks, std::uint32_t pe) {
  clocks[pe] = std::make_unique<VirtualClock>(std::move(shared[pe]), kOnAries, kYields, process_of(pe), "");
  clocks[pe]->barrier_arrive();
  clocks[pe]->barrier_wait(Picos{});
  return *clocks[pe];
}

// Posts to the next PE: how long the processor is busy with it passes before leave() returns.
void post_to_next(VirtualClock& clock, std::uint32_t pe) {
  clock.enter();
  const Times times = clock.start({.op = model::Op::fma_put,
                                   .target = process_of((pe + 1) % kThreadedPes),
                                   .bytes = 8,
                                   .not_before = {}});
  struct Touches final : Task {
    Touches(VirtualClock& of, std::uint32_t process) : clock(of), target(process) {}
    void run() override {
      clock.touch(target);
      delete this;
    }
    VirtualClock& clock;
    const std::uint32_t target;
  };
  const std::uint32_t target = process_of((pe + 1) % kThreadedPes);
  clock.schedule_there(times.data_at, new Touches(clock, target), target);
  clock.leave();
}

// A little real time, none or much more of it.
void dither(std::mt19937& random) {
  const unsigned how = random() % 8;
  if (how < 3) std::this_thread::yield();
  if (how == 3) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
}

TEST(VirtualThreads, PostWhileTheMainOnesAreInTheLaunchersBarrier) {
  auto shared = clocks_of(kThreadedPes);
  std::vector<std::unique_ptr<VirtualClock>> clocks(kThreadedPes);
  std::atomic<int> posted{0};
  std::vector<std::thread> mains;
  for (std::uint32_t pe = 0; pe < kThreadedPes; ++pe) {
    mains.emplace_back([&, pe] {
      VirtualClock& clock = join(shared, clocks, pe);
      std::atomic<int> left{kHelpers};
      std::vector<std::thread> helpers;
      for (int helper = 0; helper < kHelpers; ++helper) {
        helpers.emplace_back([&, helper] {
          std::mt19937 random(pe * kHelpers + static_cast<unsigned>(helper) + 1);
          for (int i = 0; i < kPosts; ++i) {
            post_to_next(clock, pe);
            ++posted;
            dither(random);
            if (random() % 2 == 0) (void)clock.wait(clock.now() + Picos{1'000'000});
          }
          --left;
        });
      }
      std::mt19937 random(100 + pe);
      // As often in all PEs: each barrier waits for all.
      for (int i = 0; i < kPosts / 2; ++i) {
        for (int looks = 0; looks < 80; ++looks) clock.idle(&left);
        post_to_next(clock, pe);
        dither(random);
        clock.barrier_arrive();
        clock.barrier_wait(Picos{1'000'000});
      }
      while (left != 0) clock.idle(&left);
      for (std::thread& helper : helpers) helper.join();
      clock.finish();
    });
  }
  for (std::thread& main : mains) main.join();
  EXPECT_EQ(posted, static_cast<int>(kThreadedPes) * kHelpers * kPosts);
}

// Something happens to PE 0, by a PE with a larger number, at the very moment at which its post ends: it has
// not seen it then, whether another thread of its has come by or not.
TEST(VirtualThreads, WhatHappensAtTheEndOfACallIsSeenTheSameBesideAnotherThread) {
  std::int64_t end = 0;
  std::vector<std::int64_t> took;
  enum { finds_the_end, alone, beside };
  for (const int run : {finds_the_end, alone, beside}) {
    auto shared = clocks_of(kThreadedPes);
    std::vector<std::unique_ptr<VirtualClock>> clocks(kThreadedPes);
    std::vector<std::thread> mains;
    for (std::uint32_t pe = 0; pe < kThreadedPes; ++pe) {
      mains.emplace_back([&, pe] {
        VirtualClock& clock = join(shared, clocks, pe);
        if (pe == 0) {
          if (run == beside) std::thread([&] { clock.idle(&end); }).join();
          clock.sleep_until(Picos{10'000'000});
          post_to_next(clock, pe);
          if (run == finds_the_end) end = clock.now().count();
          for (int looks = 0; looks < 2; ++looks) clock.idle(&took);
          post_to_next(clock, pe);
          if (run != finds_the_end) took.push_back(clock.now().count() - end);
        } else if (pe == 1 && run != finds_the_end) {
          clock.enter();
          struct Touches final : Task {
            explicit Touches(VirtualClock& of) : clock(of) {}
            void run() override { clock.touch(process_of(0)); }
            VirtualClock& clock;
          } touches(clock);
          clock.schedule_there(Picos{end}, &touches, process_of(0));
          clock.leave();
          clock.sleep_until(Picos{100'000'000});
        }
        clock.finish();
      });
    }
    for (std::thread& main : mains) main.join();
  }
  ASSERT_EQ(took.size(), 2u);
  EXPECT_EQ(took[0], took[1]);
}

// A thread that waits for another one in a call, and comes back, is not beside another thread for that: its
// PE is not woken for them at each thing that happens to it.
TEST(VirtualThreads, OneThatHasWaitedForAnotherIsNotBesideItself) {
  constexpr int kEffects = 500;
  auto shared = clocks_of(2);
  std::vector<std::unique_ptr<VirtualClock>> clocks(2);
  Board& board = shared[0]->board();
  int done = 0;
  std::vector<std::thread> mains;
  for (std::uint32_t pe = 0; pe < 2; ++pe) {
    mains.emplace_back([&, pe] {
      VirtualClock& clock = join(shared, clocks, pe);
      clock.begin_thread_wait(&done);
      clock.end_thread_wait(&done);
      clock.idle(&done);
      struct Counts final : Task {
        explicit Counts(int& of) : count(of) {}
        void run() override {
          ++count;
          delete this;
        }
        int& count;
      };
      for (int i = 0; pe == 0 && i < kEffects; ++i) {
        clock.enter();
        clock.schedule_there(Picos{1'000'000 * (1 + i)}, new Counts(done), process_of(1));
        clock.leave();
      }
      clock.sleep_until(Picos{1'000'000'000});
      clock.finish();
    });
  }
  for (std::thread& main : mains) main.join();
  EXPECT_EQ(done, kEffects);
  EXPECT_LT(board.header.turns.load(), 30u);
}

// A thread that makes time pass from its first call on, a post, gives its place back when it ends, and does
// not take it again in what its destructors call.
TEST(VirtualThreads, OneThatEndsLeavesItsPlaceToTheOneThatWaitedForIt) {
  auto shared = clocks_of(kThreadedPes);
  std::vector<std::unique_ptr<VirtualClock>> clocks(kThreadedPes);
  std::vector<std::thread> mains;
  for (std::uint32_t pe = 0; pe < kThreadedPes; ++pe) {
    mains.emplace_back([&, pe] {
      VirtualClock& clock = join(shared, clocks, pe);
      std::thread worker;
      clock.begin_thread_wait(&worker);
      worker = std::thread([&] {
        post_to_next(clock, pe);
        EXPECT_TRUE(clock.is_leader());
        EXPECT_TRUE(VirtualClock::knows_thread());
        clock.thread_ends();
        EXPECT_FALSE(clock.is_leader());
        EXPECT_GT(clock.read().count(), 0);
        clock.idle(&worker);
        post_to_next(clock, pe);
        EXPECT_FALSE(clock.is_leader());
      });
      worker.join();
      clock.end_thread_wait(&worker);
      (void)clock.read();
      EXPECT_TRUE(clock.is_leader());
      clock.finish();
    });
  }
  for (std::thread& main : mains) main.join();
}

// PE 1 looks for what comes from outside, without the turn, in the launcher's barrier when that ends. It has
// the turn again before it goes on: else the turn would be its own for ever, and none of its threads would
// know.
TEST(VirtualThreads, ABarrierThatEndsWhileItsPeLooksOutsideGivesTheTurnBack) {
  auto shared = clocks_of(2);
  std::vector<std::unique_ptr<VirtualClock>> clocks(2);
  struct Seen {
    std::atomic<bool> works{false}, arrived{false};
  } seen;
  std::atomic<int> ended{0};
  std::int64_t at[2] = {};
  const auto program = [&](std::uint32_t pe) {
    clocks[pe] = std::make_unique<VirtualClock>(std::move(shared[pe]), kOnAries, kYields, process_of(pe), "");
    VirtualClock& clock = *clocks[pe];
    if (pe == 1) {
      // That another thread has looked is why PE 1's barrier may be ended by something outside.
      std::thread([&] { clock.idle(&seen); }).join();
      clock.set_work(
          [](void* argument) {
            auto* const mine = static_cast<Seen*>(argument);
            mine->works = true;
            while (!mine->arrived) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          },
          &seen);
    } else {
      while (!seen.works) clock.idle_outside();
    }
    clock.barrier_arrive();
    if (pe == 0) seen.arrived = true;
    clock.barrier_wait(Picos{1'000'000});
    at[pe] = clock.now().count();
    clock.sleep_until(clock.now() + Picos{1'000'000});
    clock.finish();
    ++ended;
  };
  std::thread first(program, 0), second(program, 1);
  for (int tenths = 0; ended != 2; ++tenths) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (tenths < 1200) continue;
    ADD_FAILURE() << "no PE goes on";
    std::_Exit(1);
  }
  first.join();
  second.join();
  EXPECT_EQ(at[0], at[1]);
}

// A thread that posts after a while of real time, at the virtual time at which it was created: the main one,
// which waits until later, goes on behind that.
TEST(VirtualThreads, OneThatIsCreatedPostsAtTheTimeOfItsCreation) {
  auto shared = clocks_of(kThreadedPes);
  std::vector<std::unique_ptr<VirtualClock>> clocks(kThreadedPes);
  std::vector<std::thread> mains;
  for (std::uint32_t pe = 0; pe < kThreadedPes; ++pe) {
    mains.emplace_back([&, pe] {
      VirtualClock& clock = join(shared, clocks, pe);
      clock.sleep_until(Picos{10'000'000});
      std::thread helper([&, awake = clock.thread_is_created()] {
        state_of_thread() = {.awake = awake, .is_new = true};
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
        while (std::chrono::steady_clock::now() < end) {
        }
        EXPECT_EQ(clock.now().count(), 10'000'000);
        post_to_next(clock, pe);
        clock.thread_ends();
      });
      clock.sleep_until(Picos{1'000'000'000});
      helper.join();
      clock.finish();
    });
  }
  for (std::thread& main : mains) main.join();
}

// A thread that is let look, and waits for a service thread in real time then, is not taken for one that
// sleeps.
TEST(VirtualThreads, OneThatWaitsForAServiceThreadWhileItIsLetLookIsWaitedFor) {
  auto shared = clocks_of(2);
  std::vector<std::unique_ptr<VirtualClock>> clocks(2);
  std::vector<std::thread> mains;
  for (std::uint32_t pe = 0; pe < 2; ++pe) {
    mains.emplace_back([&, pe] {
      VirtualClock& clock = join(shared, clocks, pe);
      std::thread helper([&, awake = clock.thread_is_created()] {
        state_of_thread() = {.awake = awake, .is_new = true};
        while (clock.wait(Picos{10'000'000})) {
        }
        clock.hold();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        clock.let_go();
        EXPECT_EQ(clock.now().count(), 10'000'000);
        clock.thread_ends();
      });
      clock.sleep_until(Picos{1'000'000'000});
      helper.join();
      clock.finish();
    });
  }
  for (std::thread& main : mains) main.join();
}

}  // namespace
}  // namespace orrery::clock
