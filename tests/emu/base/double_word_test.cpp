// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/double_word.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace orrery {
namespace {

TEST(DoubleWord, SwapNeedsBothHalvesAndChangesBoth) {
  DoubleWord word{1, 2};
  EXPECT_FALSE(double_word_cas(&word, {1, 3}, {7, 8}));
  EXPECT_FALSE(double_word_cas(&word, {0, 2}, {7, 8}));
  EXPECT_EQ(word.low, 1u);
  EXPECT_EQ(word.high, 2u);
  EXPECT_TRUE(double_word_cas(&word, {1, 2}, {UINT64_MAX, 8}));
  EXPECT_EQ(word.low, UINT64_MAX);
  EXPECT_EQ(word.high, 8u);
}

TEST(DoubleWord, IncrementsOfSeveralThreadsAreAllCounted) {
  // Property: both halves count every success, so they stay equal.
  struct alignas(16) Pair {
    std::atomic<std::uint64_t> low{0};
    std::atomic<std::uint64_t> high{0};
  } pair;
  constexpr std::uint64_t kEach = 10'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t done = 0; done < kEach;) {
        const DoubleWord seen{pair.low.load(), pair.high.load()};
        if (double_word_cas(&pair, seen, {seen.low + 1, seen.high + 1})) ++done;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pair.low.load(), 3 * kEach);
  EXPECT_EQ(pair.high.load(), 3 * kEach);
}

}  // namespace
}  // namespace orrery
