// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/double_word.hpp"
#include "tests/require.hpp"

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

// Skipped without AVX and under ThreadSanitizer: there double_word_store() must not be called, and its
// callers store the words one by one.
TEST(DoubleWord, AStoreIsSeenWholeAndInOrder) {
  if (!g_double_word_stores)
    ORRERY_SKIP("stores16") << "no 16-byte stores of one access on this processor or build";
  struct alignas(16) Pair {
    std::atomic<std::uint64_t> tag{0};
    std::atomic<std::uint64_t> word{0};
  };
  struct alignas(64) Line {
    Pair pair[4];
  } line;
  constexpr std::uint64_t kRounds = 100'000;
  std::thread writer([&] {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      for (std::uint64_t i = 4; i-- > 0;) double_word_store(&line.pair[i], {round, round * 8 + i});
    }
  });
  // Property: a word is at least as new as a tag that was seen before it, and so is every later pair's.
  std::uint64_t wrong = 0;
  for (std::uint64_t seen = 0; seen != kRounds;) {
    seen = line.pair[0].tag.load(std::memory_order_acquire);
    for (std::uint64_t i = 0; i < 4; ++i) {
      const std::uint64_t tag = line.pair[i].tag.load(std::memory_order_acquire);
      const std::uint64_t word = line.pair[i].word.load(std::memory_order_relaxed);
      if (tag < seen || (tag != 0 && (word / 8 < tag || word % 8 != i))) ++wrong;
    }
  }
  writer.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace orrery
