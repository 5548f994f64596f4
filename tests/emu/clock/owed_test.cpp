// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/owed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace orrery::clock {
namespace {

// Six PEs, two of which share a node.
class Table {
 public:
  Table() : words_((Owed::bytes(kRows.size()) + 7) / 8), owed_(memory(), kRows) { owed_.clear(); }
  Owed& operator*() { return owed_; }
  // The same table, as another PE has it.
  Owed as_seen_by_another() { return {memory(), kRows}; }

  static inline const std::vector<std::uint32_t> kRows{0, 1, 2, 2, 4, 5};

 private:
  std::byte* memory() { return reinterpret_cast<std::byte*>(words_.data()); }
  std::vector<std::uint64_t> words_;
  Owed owed_;
};

// By (time, PE), as it would be found by looking at all.
std::pair<std::int64_t, std::uint32_t> least_of(const std::map<std::uint32_t, std::int64_t>& row) {
  std::pair<std::int64_t, std::uint32_t> least{kNever, 0};
  for (const auto& [pe, at] : row) {
    if (at != kNever) least = std::min(least, {at, pe});
  }
  return least;
}

TEST(Owed, TheFirstEffectOfARowIsTheLeastOfAll) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Table table;
  std::map<std::uint32_t, std::map<std::uint32_t, std::int64_t>> all;
  for (int i = 0; i < 20'000; ++i) {
    const auto row = static_cast<std::uint32_t>(random() % 6), pe = static_cast<std::uint32_t>(random() % 6);
    // Few times, so that many are the same.
    const std::int64_t at = random() % 4 == 0 ? kNever : random() % 8;
    if (random() % 50 == 0) {
      (*table).forgive(pe);
      for (auto& [each, owed] : all) owed[pe] = kNever;
    } else {
      (*table).owe(row, pe, at);
      all[row][pe] = at;
    }
    for (std::uint32_t each = 0; each < 6; ++each) {
      const Owed::Effect first = table.as_seen_by_another().first(each);
      const std::pair<std::int64_t, std::uint32_t> found{first.at, first.pe};
      ASSERT_EQ(found, least_of(all[each])) << "row " << each << ", change " << i;
    }
  }
}

TEST(Owed, OnlyTheNodeOfSeveralPesIsShared) {
  Table table;
  EXPECT_TRUE((*table).is_shared());
  for (std::uint32_t pe = 0; pe < 6; ++pe) EXPECT_EQ((*table).is_shared(pe), pe == 2 || pe == 3);
  EXPECT_EQ((*table).row(3), 2u);
}

}  // namespace
}  // namespace orrery::clock
