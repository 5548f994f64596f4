// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/symmetric_heap.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace orrery::memory {
namespace {

constexpr std::uint64_t kBase = 0x2000'0000'0000;

TEST(ParseSize, TakesSuffixesAndFractions) {
  EXPECT_EQ(parse_size("65536").value(), 65536u);
  EXPECT_EQ(parse_size("400M").value(), 400u << 20);
  EXPECT_EQ(parse_size("700m").value(), 700u << 20);
  EXPECT_EQ(parse_size("1.5g").value(), 3ull << 29);
  for (const char* bad : {"", "M", "12X", "-1", "1MB", "1e400", "99999999999T"})
    EXPECT_EQ(parse_size(bad).code(), Errc::invalid_param) << bad;
}

TEST(SymmetricHeap, SameCallsGiveTheSameAddresses) {
  SymmetricHeap one(kBase, 1 << 20);
  SymmetricHeap other(kBase, 1 << 20);
  for (const std::uint64_t bytes : {1u, 100u, 4096u, 64u, 777u})
    EXPECT_EQ(one.allocate(bytes).value(), other.allocate(bytes).value());
}

TEST(SymmetricHeap, SaysWhenItIsFullAndJoinsWhatIsFreed) {
  SymmetricHeap heap(kBase, 4096);
  const auto a = heap.allocate(2000).value();
  const auto b = heap.allocate(2000).value();
  EXPECT_EQ(heap.allocate(2000).code(), Errc::no_memory);
  EXPECT_EQ(heap.allocate(0).code(), Errc::invalid_param);
  EXPECT_EQ(heap.free(a + 64).code(), Errc::no_match);
  EXPECT_TRUE(heap.free(a).ok());
  EXPECT_EQ(heap.free(a).code(), Errc::no_match);
  EXPECT_TRUE(heap.free(b).ok());
  EXPECT_EQ(heap.stats().largest_free, 4096u);
  EXPECT_EQ(heap.stats().in_use, 0u);
  EXPECT_EQ(heap.stats().high_water, 4096u);
  EXPECT_TRUE(heap.allocate(4096).ok());
}

TEST(SymmetricHeap, CutsABlockAndTakesWhatIsFreeBehindIt) {
  SymmetricHeap heap(kBase, 4096);
  const auto a = heap.allocate(3000).value();
  // The longest free range has 1,088 bytes: a second block would not fit.
  ASSERT_TRUE(heap.resize(a, 2000).ok());
  EXPECT_EQ(heap.size_of(a).value(), 2000u);
  EXPECT_EQ(heap.stats().in_use, 2048u);
  EXPECT_EQ(heap.stats().largest_free, 2048u);
  ASSERT_TRUE(heap.resize(a, 3001).ok());
  EXPECT_EQ(heap.stats().in_use, 3008u);
  EXPECT_EQ(heap.stats().largest_free, 4096u - 3008u);
  EXPECT_EQ(heap.stats().high_water, 3008u);
  ASSERT_TRUE(heap.resize(a, 4096).ok());
  EXPECT_EQ(heap.stats().largest_free, 0u);
  EXPECT_EQ(heap.resize(a, 4097).code(), Errc::no_memory);
  EXPECT_EQ(heap.resize(a, UINT64_MAX).code(), Errc::no_memory);
  EXPECT_EQ(heap.resize(a, 0).code(), Errc::invalid_param);
  EXPECT_EQ(heap.resize(a + 64, 64).code(), Errc::no_match);
  EXPECT_EQ(heap.size_of(a).value(), 4096u);
  // What is behind it in use is not taken.
  ASSERT_TRUE(heap.resize(a, 100).ok());
  const auto b = heap.allocate(64).value();
  EXPECT_EQ(b, a + 128);
  EXPECT_TRUE(heap.resize(a, 128).ok());
  EXPECT_EQ(heap.resize(a, 129).code(), Errc::no_memory);
  ASSERT_TRUE(heap.free(b).ok());
  ASSERT_TRUE(heap.free(a).ok());
  EXPECT_EQ(heap.stats().largest_free, 4096u);
  EXPECT_EQ(heap.stats().blocks, 0u);
}

TEST(SymmetricHeap, FindsTheBlockThatAnAddressLiesIn) {
  SymmetricHeap heap(kBase, 4096);
  EXPECT_EQ(heap.block_at(kBase).code(), Errc::no_match);
  const auto a = heap.allocate(100).value();
  const auto b = heap.allocate(64).value();
  for (const std::uint64_t at : {a, a + 99}) {
    const auto block = heap.block_at(at);
    ASSERT_TRUE(block.ok());
    EXPECT_EQ(block.value().begin, a);
    EXPECT_EQ(block.value().bytes, 100u);
  }
  EXPECT_EQ(heap.block_at(a + 100).code(), Errc::no_match);
  EXPECT_EQ(heap.block_at(b + 63).value().begin, b);
  EXPECT_EQ(heap.block_at(b + 64).code(), Errc::no_match);
  EXPECT_EQ(heap.block_at(kBase - 1).code(), Errc::no_match);
  ASSERT_TRUE(heap.free(a).ok());
  EXPECT_EQ(heap.block_at(a).code(), Errc::no_match);
}

TEST(SymmetricHeap, BlocksNeverOverlap) {
  SymmetricHeap heap(kBase, 1 << 20);
  std::mt19937_64 random(7);
  std::map<std::uint64_t, std::uint64_t> live;
  for (int i = 0; i < 20'000; ++i) {
    if (!live.empty() && random() % 4 == 0) {
      auto one = live.begin();
      std::advance(one, static_cast<long>(random() % live.size()));
      const auto after = std::next(one);
      const std::uint64_t end = after == live.end() ? kBase + (1 << 20) : after->first;
      const std::uint64_t bytes = random() % 9000 + 1;
      const bool fits = bytes <= end - one->first;
      const Status resized = heap.resize(one->first, bytes);
      EXPECT_EQ(resized.ok(), fits) << bytes;
      if (resized.ok()) one->second = bytes;
    } else if (live.empty() || random() % 3 != 0) {
      const std::uint64_t bytes = random() % 9000 + 1;
      const auto block = heap.allocate(bytes);
      if (!block.ok()) continue;
      const std::uint64_t at = block.value();
      EXPECT_EQ(at % SymmetricHeap::kAlignment, 0u);
      const auto after = live.lower_bound(at);
      EXPECT_TRUE(after == live.end() || at + bytes <= after->first);
      EXPECT_TRUE(after == live.begin() || std::prev(after)->first + std::prev(after)->second <= at);
      EXPECT_LE(at + bytes, kBase + (1 << 20));
      live.emplace(at, bytes);
    } else {
      auto victim = live.begin();
      std::advance(victim, static_cast<long>(random() % live.size()));
      EXPECT_EQ(heap.size_of(victim->first).value(), victim->second);
      EXPECT_TRUE(heap.free(victim->first).ok());
      live.erase(victim);
    }
  }
  while (!live.empty()) {
    EXPECT_TRUE(heap.free(live.begin()->first).ok());
    live.erase(live.begin());
  }
  EXPECT_EQ(heap.stats().largest_free, 1u << 20);
}

}  // namespace
}  // namespace orrery::memory
