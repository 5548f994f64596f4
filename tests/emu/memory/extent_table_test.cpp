// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/extent_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>
#include <set>

namespace orrery::memory {
namespace {

constexpr std::uint64_t kPages = 64;

Range pages(std::uint64_t from, std::uint64_t to) { return {from * kPageBytes, to * kPageBytes}; }

class Table : public ::testing::Test {
 protected:
  std::array<Extent, 2 * kPages> storage_{};
  ExtentTable table_{storage_};
};

TEST_F(Table, JoinsNeighboursOfOneKind) {
  table_.insert({pages(1, 2), 3, false, false});
  table_.insert({pages(3, 4), 3, false, false});
  table_.insert({pages(2, 3), 3, false, false});
  ASSERT_EQ(table_.count(), 1u);
  EXPECT_EQ(table_.all()[0].range, pages(1, 4));
  table_.insert({pages(4, 5), 1, false, false});
  table_.insert({pages(5, 6), 1, true, false});
  EXPECT_EQ(table_.count(), 3u);
}

TEST_F(Table, JoinsThePartsOfABulkBlockButNotTwoBlocks) {
  table_.insert({pages(0, 1), 3, true, false});
  table_.insert({pages(1, 2), 3, true, true});
  table_.insert({pages(2, 3), 3, true, false});
  table_.insert({pages(3, 4), 3, true, true});
  ASSERT_EQ(table_.count(), 2u);
  EXPECT_EQ(table_.all()[0].range, pages(0, 2));
  EXPECT_EQ(table_.all()[1].range, pages(2, 4));
}

TEST_F(Table, SplitsWhereTheMiddleIsErased) {
  table_.insert({pages(0, 10), 3, false, false});
  table_.erase(pages(4, 6));
  ASSERT_EQ(table_.count(), 2u);
  EXPECT_EQ(table_.all()[0].range, pages(0, 4));
  EXPECT_EQ(table_.all()[1].range, pages(6, 10));
  EXPECT_FALSE(table_.overlaps(pages(4, 6)));
  EXPECT_TRUE(table_.overlaps(pages(4, 7)));
  EXPECT_TRUE(table_.may_overlap(pages(4, 6)));
  EXPECT_FALSE(table_.may_overlap(pages(10, 20)));
}

TEST_F(Table, ThatIsFullKeepsWhatItCannotSplit) {
  ExtentTable two{std::span<Extent>(storage_).first(2)};
  two.insert({pages(0, 10), 3, false, false});
  ASSERT_TRUE(two.erase(pages(4, 6)));
  EXPECT_FALSE(two.erase(pages(1, 2)));
  EXPECT_TRUE(two.overlaps(pages(1, 2)));
  EXPECT_EQ(two.count(), 2u);
  EXPECT_TRUE(two.erase(pages(0, 1)));
  EXPECT_TRUE(two.erase(pages(3, 7)));
  EXPECT_EQ(two.count(), 2u);
  EXPECT_EQ(two.all()[0].range, pages(1, 3));
  EXPECT_EQ(two.all()[1].range, pages(7, 10));
  EXPECT_TRUE(two.erase(pages(7, 10)));
  EXPECT_TRUE(two.erase(pages(2, 3)));
}

TEST_F(Table, AgreesWithASetOfPages) {
  const char* const given = std::getenv("ORRERY_TEST_SEED");
  const unsigned long seed = given != nullptr ? std::strtoul(given, nullptr, 10) : std::random_device{}();
  SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(static_cast<unsigned>(seed));
  std::set<std::uint64_t> model;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t from = random() % kPages;
    const std::uint64_t to = from + 1 + random() % (kPages - from);
    if (random() % 2 == 0) {
      table_.insert(
          {pages(from, to), static_cast<std::int32_t>(random() % 2), random() % 4 == 0, random() % 2 == 0});
      for (std::uint64_t p = from; p < to; ++p) model.insert(p);
    } else {
      table_.erase(pages(from, to));
      for (std::uint64_t p = from; p < to; ++p) model.erase(p);
    }
    std::uint64_t last = 0;
    std::size_t held = 0;
    for (const Extent& extent : table_.all()) {
      ASSERT_LE(last, extent.range.begin);
      ASSERT_LT(extent.range.begin, extent.range.end);
      last = extent.range.end;
      held += extent.range.size() / kPageBytes;
    }
    ASSERT_EQ(held, model.size());
    const std::uint64_t probe = random() % kPages;
    ASSERT_EQ(table_.overlaps(pages(probe, probe + 1)), model.count(probe) == 1);
  }
}

}  // namespace
}  // namespace orrery::memory
