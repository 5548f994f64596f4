// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/state/thread_word.hpp"

#include "emu/base/asymmetric_fence.hpp"
#include "emu/nic/initiator/fast_path.hpp"
#include "tests/emu/nic/box.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <set>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

using box::Path;
using box::World;

// Runs body(i) in `count` threads that all live until each has come out of it.
template <typename Body>
void in_threads(int count, Body body) {
  std::barrier all(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&all, &body, i] {
      body(i);
      all.arrive_and_wait();
    });
  }
  for (auto& thread : threads) thread.join();
}

// The main thread never posts, and has none.
TEST(ThreadWord, SixtyFourThreadsHaveOneEachAndMoreShareOne) {
  std::vector<std::uint32_t> places(80);
  in_threads(80, [&](int i) { places[static_cast<std::size_t>(i)] = thread_hazard_slot(); });
  EXPECT_EQ(std::count(places.begin(), places.end(), kSharedHazardSlot), 80 - kThreadWords);
  EXPECT_EQ(std::count(places.begin(), places.end(), kEngineHazardSlot), 0);
  EXPECT_EQ(std::set(places.begin(), places.end()).size(), kThreadWords + 1);
  EXPECT_LT(*std::max_element(places.begin(), places.end()), kHazardSlots + kMoreHazardSlots);
}

TEST(ThreadWord, IsKeptWhileTheThreadLivesAndUsedAgainAfterIt) {
  std::set<std::uint32_t> seen;
  for (int turn = 0; turn < 100; ++turn) {
    in_threads(4, [&](int) {
      const std::uint32_t place = thread_hazard_slot();
      EXPECT_EQ(thread_hazard_slot(), place);
      EXPECT_EQ(t_thread_tag >> kThreadTagShift, place + 1);
      EXPECT_NE(place, kSharedHazardSlot);
    });
  }
  in_threads(4, [&](int) { thread_hazard_slot(); });
}

class ThreadsOfOnePort : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, ThreadsOfOnePort, ::testing::Values(8, 64, 70));

// Each through an endpoint of its own, to targets whose registrations come and go. A thread that has a word
// is on the fast path from its second put on; no put is lost or comes after its registration's end.
TEST_P(ThreadsOfOnePort, PutOnTheFastPathAtOnce) {
  const int count = GetParam();
  constexpr int kTargets = 4;
  constexpr int kTurns = 6;
  if (!asymmetric_fence::enrol()) ORRERY_SKIP("membarrier") << "no membarrier(2): grants are not given";
  // A thread that lost its core in the middle of a put is waited for, however many others there are.
  World world(1 + kTargets, Path::direct, {.drain_limit_ns = 60'000'000'000});
  std::vector<std::uint64_t> memory(static_cast<std::size_t>(kTargets) * 128);
  const auto word_of = [&](int target, int thread) {
    return &memory[static_cast<std::size_t>(target * 128 + thread)];
  };
  std::atomic<int> fast{0};
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<MemKey> keys;
    for (int t = 0; t < kTargets; ++t) {
      Nic& nic = world[1 + t].nic();
      keys.push_back(nic.register_region(world[1 + t].port(), reinterpret_cast<std::uint64_t>(word_of(t, 0)),
                                         128 * 8, 0, nullptr)
                         .value());
    }
    std::atomic<bool> stop{false};
    std::barrier all_have_put(count);
    in_threads(count, [&](int i) {
      const int target = i % kTargets;
      const auto endpoint = world.endpoint(0, 1 + target, nullptr);
      std::uint64_t value = 0;
      const Request request =
          box::put_word(&value, word_of(target, i), keys[static_cast<std::size_t>(target)], 0);
      const Transfer transfer{.key = key_word(request.remote),
                              .local_address = request.local_address,
                              .remote_address = request.remote_address,
                              .length = 8};
      for (value = 1; value < 200; ++value) EXPECT_EQ(world[0].nic().post(*endpoint, request), Errc::ok);
      if (try_fast<Op::put>(*endpoint, transfer) == Errc::ok)
        ++fast;
      else
        EXPECT_EQ(world[0].nic().post(*endpoint, request), Errc::ok);
      EXPECT_EQ(*word_of(target, i), 200u);
      all_have_put.arrive_and_wait();
      // The first of them ends the registrations under the others.
      if (i == 0) {
        for (int t = 0; t < kTargets; ++t)
          EXPECT_TRUE(world[1 + t].nic().deregister(keys[static_cast<std::size_t>(t)]).ok());
        for (std::uint64_t& word : memory) std::atomic_ref(word).store(0, std::memory_order_relaxed);
        stop = true;
      }
      for (int n = 0; n < 100 || !stop.load(); ++n) (void)world[0].nic().post(*endpoint, request);
    });
    // What was cleared after the end of the registrations stays so.
    EXPECT_EQ(std::count(memory.begin(), memory.end(), 0), std::ssize(memory)) << "turn " << turn;
    std::fill(memory.begin(), memory.end(), 0);
  }
  EXPECT_EQ(fast.load(), kTurns * std::min(count, static_cast<int>(kThreadWords)));
}

// An endpoint that another thread uses after the one that was granted: the grant is not that thread's.
TEST(ThreadWord, GrantOfAnotherThreadIsNotTaken) {
  World world(2, Path::direct);
  std::uint64_t target = 0;
  const MemKey key =
      world[1]
          .nic()
          .register_region(world[1].port(), reinterpret_cast<std::uint64_t>(&target), 8, 0, nullptr)
          .value();
  const auto endpoint = world.endpoint(0, 1, nullptr);
  const std::uint64_t value = 1;
  const Request request = box::put_word(&value, &target, key, 0);
  const Transfer transfer{.key = key_word(key),
                          .local_address = request.local_address,
                          .remote_address = request.remote_address,
                          .length = 8};
  std::atomic<int> turn{0};
  const auto await = [&turn](int n) {
    while (turn.load() != n) std::this_thread::yield();
  };
  std::thread first([&] {
    EXPECT_EQ(world[0].nic().post(*endpoint, request), Errc::ok);
    EXPECT_EQ(try_fast<Op::put>(*endpoint, transfer), Errc::ok);
    turn = 1;
    await(2);
    EXPECT_EQ(try_fast<Op::put>(*endpoint, transfer), Errc::not_done) << "it is the other's now";
  });
  std::thread second([&] {
    await(1);
    EXPECT_EQ(try_fast<Op::put>(*endpoint, transfer), Errc::not_done);
    EXPECT_EQ(world[0].nic().post(*endpoint, request), Errc::ok);
    EXPECT_EQ(try_fast<Op::put>(*endpoint, transfer), Errc::ok);
    turn = 2;
  });
  first.join();
  second.join();
}

}  // namespace
}  // namespace orrery::nic
