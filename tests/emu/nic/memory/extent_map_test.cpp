// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/memory/extent_map.hpp"

#include <gtest/gtest.h>

#include <set>

#include <sys/mman.h>

namespace orrery::nic {
namespace {

constexpr std::uint64_t kBase = 0x7f00'0000'0000;
constexpr std::uint64_t kPage = kPageBytes;

class ExtentMapTest : public ::testing::Test {
 protected:
  ExtentMapTest() {
    base_ = mmap(nullptr, kGeometry.segment_bytes(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    view_ = NicView::create(base_, kGeometry, 0, 1, false);
    map_ = std::make_unique<ExtentMap>(view_);
  }
  ~ExtentMapTest() override { munmap(base_, kGeometry.segment_bytes()); }

  Errc publish(std::uint64_t begin, std::uint64_t end) {
    return map_->publish({begin, end}, [] { return true; });
  }
  bool covers(std::uint64_t address, std::uint64_t bytes) { return extents_cover(view_, address, bytes); }

  static constexpr Geometry kGeometry{.lane_count = 1, .arena_bytes = 1 << 20};
  void* base_ = nullptr;
  NicView view_;
  std::unique_ptr<ExtentMap> map_;
};

TEST_F(ExtentMapTest, WordSaysWhichPagesOfAnExtentAreThere) {
  for (const std::uint64_t begin : {std::uint64_t{0}, kBase, kSpaceBytes - kExtentBytes}) {
    for (const std::uint64_t end : {begin + kPage, begin + kExtentBytes}) {
      const std::uint64_t word = extent_word::make(begin, end, 1);
      EXPECT_EQ(extent_word::begin(word), begin);
      EXPECT_EQ(extent_word::end(word), end);
      EXPECT_EQ(extent_word::extent(word), begin >> kExtentShift);
    }
  }
}

TEST_F(ExtentMapTest, WhatIsPublishedIsCoveredAndNothingElse) {
  EXPECT_FALSE(covers(kBase, 1));
  ASSERT_EQ(publish(kBase + kPage, kBase + 3 * kPage), Errc::ok);
  EXPECT_TRUE(covers(kBase + kPage, 2 * kPage));
  EXPECT_FALSE(covers(kBase + kPage, 2 * kPage + 1));
  EXPECT_FALSE(covers(kBase + kPage - 1, 1));
  EXPECT_FALSE(covers(kBase + kExtentBytes + kPage, 1));
}

TEST_F(ExtentMapTest, NeighboursBecomeOneAndRunsOfOneExtentStandBesideEachOther) {
  ASSERT_EQ(publish(kBase, kBase + kPage), Errc::ok);
  ASSERT_EQ(publish(kBase + 2 * kPage, kBase + 3 * kPage), Errc::ok);
  EXPECT_FALSE(covers(kBase, 3 * kPage));
  EXPECT_EQ(map_->published().size(), 2u);
  ASSERT_EQ(publish(kBase + kPage, kBase + 2 * kPage), Errc::ok);
  EXPECT_TRUE(covers(kBase, 3 * kPage));
  EXPECT_EQ(map_->published().size(), 1u);
}

TEST_F(ExtentMapTest, AccessGoesThroughSeveralExtents) {
  ASSERT_EQ(publish(kBase + kExtentBytes - kPage, kBase + kExtentBytes), Errc::ok);
  ASSERT_EQ(publish(kBase + kExtentBytes, kBase + 2 * kExtentBytes), Errc::ok);
  ASSERT_EQ(publish(kBase + 2 * kExtentBytes, kBase + 2 * kExtentBytes + kPage), Errc::ok);
  EXPECT_TRUE(covers(kBase + kExtentBytes - 8, kExtentBytes + 16));
  map_->left(map_->leave(kBase + kExtentBytes + kPage, kBase + kExtentBytes + 2 * kPage));
  EXPECT_FALSE(covers(kBase + kExtentBytes - 8, kExtentBytes + 16));
  EXPECT_TRUE(covers(kBase + kExtentBytes - 8, 8));
}

TEST_F(ExtentMapTest, NothingThatIsLeavingIsPublished) {
  ASSERT_EQ(publish(kBase, kBase + kExtentBytes), Errc::ok);
  const auto token = map_->leave(kBase + kPage, kBase + 2 * kPage);
  EXPECT_FALSE(covers(kBase, 1)) << "the whole word goes";
  EXPECT_EQ(publish(kBase, kBase + kExtentBytes), Errc::not_done);
  EXPECT_EQ(publish(kBase, kBase + kPage), Errc::ok);
  EXPECT_FALSE(map_->start({kBase, kBase + kExtentBytes}));
  map_->left(token);
  EXPECT_EQ(publish(kBase, kBase + kExtentBytes), Errc::ok);
}

TEST_F(ExtentMapTest, PagesThatLeftWhileTheyWereMovedAreNotPublished) {
  ASSERT_TRUE(map_->start({kBase, kBase + kExtentBytes}));
  EXPECT_FALSE(map_->is_cancelled());
  map_->left(map_->leave(kBase + kExtentBytes, kBase + 2 * kExtentBytes));
  EXPECT_FALSE(map_->is_cancelled()) << "others left";
  map_->left(map_->leave(kBase, kBase + kPage));
  EXPECT_TRUE(map_->is_cancelled());
  EXPECT_EQ(publish(kBase + kPage, kBase + kExtentBytes), Errc::not_done);
  map_->finish();
  ASSERT_TRUE(map_->start({kBase, kBase + kExtentBytes}));
  EXPECT_EQ(publish(kBase + kPage, kBase + kExtentBytes), Errc::ok);
  map_->finish();
}

TEST_F(ExtentMapTest, MoreThreadsThatUnmapThanThereArePlacesStopAllPublishing) {
  std::vector<ExtentMap::Token> tokens;
  for (std::uint64_t i = 0; i < 40; ++i)
    tokens.push_back(map_->leave(kBase + i * kExtentBytes, kBase + i * kExtentBytes + kPage));
  EXPECT_EQ(publish(0, kPage), Errc::not_done);
  for (const auto token : tokens) map_->left(token);
  EXPECT_EQ(publish(0, kPage), Errc::ok);
}

TEST_F(ExtentMapTest, FullSetGivesUpOneWordForTheNext) {
  const std::uint64_t apart = std::uint64_t{2} * kPage;  // runs of one extent that do not touch
  for (std::uint64_t i = 0; i < kExtentWays + 3; ++i)
    ASSERT_EQ(publish(kBase + i * apart, kBase + i * apart + kPage), Errc::ok);
  EXPECT_EQ(map_->published().size(), kExtentWays);
  EXPECT_TRUE(covers(kBase + (kExtentWays + 2) * apart, kPage)) << "the newest is there";
}

TEST_F(ExtentMapTest, RefreshChangesEachWordAndNoneOfThePages) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::uint64_t begin = kBase + i * 977 * kExtentBytes;
    ASSERT_EQ(publish(begin, begin + kPage), Errc::ok);
  }
  std::set<std::uint64_t> before;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const FoundExtent found = find_extent(view_, kBase + i * 977 * kExtentBytes);
    if (found.word != nullptr) before.insert(found.value);
  }
  EXPECT_GT(before.size(), 90u);
  map_->refresh();
  for (std::uint64_t i = 0; i < 100; ++i) {
    const FoundExtent found = find_extent(view_, kBase + i * 977 * kExtentBytes);
    EXPECT_FALSE(before.contains(found.value));
  }
  EXPECT_EQ(map_->published().size(), before.size());
}

TEST_F(ExtentMapTest, LeavingOfAHugeRangeTakesEverythingInItAway) {
  for (std::uint64_t i = 0; i < 3'000; ++i)
    ASSERT_EQ(publish(i * kExtentBytes, i * kExtentBytes + kPage), Errc::ok);
  map_->left(map_->leave(kExtentBytes, 2'999 * kExtentBytes));
  EXPECT_EQ(map_->published().size(), 2u);
  EXPECT_TRUE(covers(0, 1));
  EXPECT_TRUE(covers(2'999 * kExtentBytes, 1));
}

}  // namespace
}  // namespace orrery::nic
