// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/memory/registration_table.hpp"

#include "emu/nic/state/hazard.hpp"

#include <gtest/gtest.h>

#include <climits>

#include <sys/mman.h>

namespace orrery::nic {
namespace {

constexpr std::uint64_t kAddress = 0x10'0000;
using Range = RegistrationTable::Range;

class RegistrationTableTest : public ::testing::Test {
 protected:
  RegistrationTableTest() {
    base_ = mmap(nullptr, kGeometry.segment_bytes(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    view_ = NicView::create(base_, kGeometry, 0, 1, false);
    arena_ = view_.header().arena_offset;
    table_ = table_of_process(1);
  }
  ~RegistrationTableTest() override { munmap(base_, kGeometry.segment_bytes()); }

  std::unique_ptr<RegistrationTable> table_of_process(std::uint32_t generation) {
    return std::make_unique<RegistrationTable>(
        view_, generation,
        [this](std::uint64_t bytes) {
          return arena_full_ ? 0 : (lists_ += 1, arena_ += bytes, arena_ - bytes);
        },
        [this](std::uint64_t, std::uint64_t) { --lists_; }, board_.get());
  }

  MemKey insert(std::uint64_t address = kAddress, std::uint64_t length = 4096,
                RegionState state = RegionState::direct) {
    return table_->insert({.domain = 7, .address = address, .length = length, .state = state}).value();
  }
  // No call waits long here: a limit of 0 is a peer that does not move.
  Status remove(const MemKey& key, std::int64_t limit_ns = 0) {
    return table_->remove(
        key,
        {.alive = [this](std::uint32_t) { return peers_live_; },
         .stopped = [this](std::uint32_t) { return looks_at_stopped_++ >= stopped_from_; }},
        limit_ns, [this](std::span<const Range> moving) { settled_ = moving.size(); },
        [this](std::uint64_t begin, std::uint64_t end) {
          cut_.push_back({begin, end});
        });
  }
  void peer_enters(std::uint32_t process, const MemKey& key, std::uint64_t how = 0) {
    view_.service().sources[process / 64].fetch_or(1ull << process % 64);
    view_.region(key.index).touched = 1;
    view_.hazards(process).slot[2] = hazard_word(key.index) | how;
  }

  // By the board, which names many registrations at once.
  std::atomic<std::uint64_t>& peer_announces(std::uint32_t process, const MemKey& key) {
    view_.service().sources[process / 64].fetch_or(1ull << process % 64);
    view_.region(key.index).touched = 1;
    return board_->lines[process].port[2] = 7 | region_mark(0, key.index), board_->lines[process].port[2];
  }

  static constexpr Geometry kGeometry{.lane_count = 1, .arena_bytes = 1 << 20};
  void* base_ = nullptr;
  NicView view_;
  std::uint64_t arena_ = 0;
  const std::unique_ptr<HazardBoard> board_ = std::make_unique<HazardBoard>();
  int lists_ = 0;
  bool arena_full_ = false;
  bool peers_live_ = true;
  int stopped_from_ = 0;  // from which look on its peers are stopped
  int looks_at_stopped_ = 0;
  std::size_t settled_ = 0;
  std::vector<Range> cut_;
  std::unique_ptr<RegistrationTable> table_;
};

TEST_F(RegistrationTableTest, KeyCoversWholePagesAndIsGoodUntilItIsRemoved) {
  const MemKey key = insert(kAddress + 100, 5'000);
  EXPECT_EQ(key.page, kAddress / kPageBytes);
  EXPECT_EQ(key.page_count, 2u);
  EXPECT_TRUE(key.valid());
  EXPECT_TRUE(table_->find(key).ok());
  EXPECT_TRUE(remove(key).ok());
  EXPECT_EQ(table_->find(key).code(), Errc::invalid_handle);
  EXPECT_EQ(remove(key).code(), Errc::invalid_handle);
}

TEST_F(RegistrationTableTest, QueueIsForgottenOnceNobodyCanBeRaisingAnEventInIt) {
  const MemKey named = table_->insert({.queue_plus_1 = 6, .address = kAddress, .length = 4096}).value();
  const MemKey other = table_->insert({.queue_plus_1 = 7, .address = kAddress, .length = 4096}).value();
  const auto alive = [this](std::uint32_t) { return peers_live_; };
  peer_enters(0, named);
  EXPECT_FALSE(table_->forget_queue(5, alive, 0)) << "the peer does not move";
  EXPECT_EQ(control::queue_plus_1(table_->find(named).value()), 0u);
  EXPECT_EQ(control::queue_plus_1(table_->find(other).value()), 7u);
  peers_live_ = false;
  peer_enters(0, other);
  EXPECT_TRUE(table_->forget_queue(6, alive, 0)) << "the peer is dead";
}

TEST_F(RegistrationTableTest, ThreadBeyondTheFirstLineOfItsProcessIsWaitedFor) {
  const MemKey key = insert();
  view_.service().sources[0].fetch_or(1ull << 5);
  view_.region(key.index).touched = 1;
  view_.more_hazards(5).slot[41] = hazard_word(key.index);
  view_.service().many_threads[0].fetch_or(1ull << 5);
  EXPECT_TRUE(remove(key).ok());
  EXPECT_EQ(cut_.size(), 1u) << "it was in the middle of an access";
  view_.more_hazards(5).slot[41] = 0;
}

TEST_F(RegistrationTableTest, KeysThatWereNeverGivenOutAreRefused) {
  MemKey key = insert();
  for (MemKey wrong : {MemKey{}, MemKey{.index = 60'000, .generation = 1}}) {
    EXPECT_EQ(table_->find(wrong).code(), Errc::invalid_handle);
    EXPECT_EQ(remove(wrong).code(), Errc::invalid_handle);
  }
  ++key.generation;
  EXPECT_EQ(remove(key).code(), Errc::invalid_handle);
}

TEST_F(RegistrationTableTest, AllPlacesAreUsedAndNoMore) {
  std::vector<MemKey> keys;
  for (std::uint32_t i = 0; i < kMaxRegions; ++i) keys.push_back(insert());
  EXPECT_EQ(table_->insert({.address = kAddress, .length = 1}).code(), Errc::no_resource);
  EXPECT_EQ(table_->in_use(), kMaxRegions);
  ASSERT_TRUE(remove(keys[17]).ok());
  EXPECT_EQ(insert().index, keys[17].index);
}

TEST_F(RegistrationTableTest, PlaceThatIsUsedAgainHasAnotherGenerationAndNeverNone) {
  MemKey last = insert();
  for (std::uint32_t i = 1; i < kMaxRegions; ++i) insert();
  for (std::uint32_t i = 0; i < kMaxGeneration + 10; ++i) {
    ASSERT_TRUE(remove(last).ok());
    const MemKey next = insert();
    ASSERT_EQ(next.index, last.index);
    ASSERT_NE(next.generation, last.generation);
    ASSERT_NE(next.generation, 0);
    ASSERT_LE(next.generation, kMaxGeneration);
    last = next;
  }
}

TEST_F(RegistrationTableTest, KeyThatOutlivedItsProcessIsRefusedByTheNextOnesOfItsSlot) {
  constexpr std::uint32_t kEach = 3 * kMaxRegions;
  std::vector<MemKey> old;
  for (std::uint32_t i = 0; i < kEach; ++i) {
    old.push_back(insert());
    ASSERT_TRUE(remove(old.back()).ok());
  }
  for (std::uint32_t process = 2; process < 12; ++process) {
    table_ = table_of_process(process);
    std::vector<MemKey> own;
    for (std::uint32_t i = 0; i < kEach; ++i) {
      own.push_back(insert());
      ASSERT_EQ(own.back().index, old[i].index);
      ASSERT_EQ(table_->find(old[i]).code(), Errc::invalid_handle) << "process " << process;
      ASSERT_TRUE(remove(own.back()).ok());
    }
  }
}

TEST_F(RegistrationTableTest, OldestFreePlaceIsUsedFirst) {
  const MemKey a = insert();
  ASSERT_TRUE(remove(a).ok());
  EXPECT_NE(insert().index, a.index) << "4,095 others were free for longer";
}

TEST_F(RegistrationTableTest, RemovalDoesNotLookForPeersWhenNoneTouchedIt) {
  const MemKey key = insert();
  peer_enters(3, key);
  view_.region(key.index).touched = 0;
  ASSERT_TRUE(remove(key).ok());
  EXPECT_TRUE(cut_.empty());
}

TEST_F(RegistrationTableTest, StalledPeerIsCutOffAndKeepsThePlaceUntilItIsGone) {
  const MemKey key = insert(kAddress, 8192);
  peer_enters(3, key);
  ASSERT_TRUE(remove(key).ok());
  ASSERT_EQ(cut_.size(), 1u);
  EXPECT_EQ(cut_[0].begin, kAddress);
  EXPECT_EQ(cut_[0].end, kAddress + 8192);
  EXPECT_EQ(table_->find(key).code(), Errc::invalid_handle);
  EXPECT_FALSE(table_->drain_range(
      kAddress, kAddress + 1, [](std::uint32_t) { return true; }, 0))
      << "it may still store to these pages";
  EXPECT_EQ(view_.region(key.index).end.load(), kAddress + 8192) << "what it reads stays as it was";
  std::vector<MemKey> rest;
  for (std::uint32_t i = 0; i < kMaxRegions - 1; ++i) rest.push_back(insert(0x90'0000));
  EXPECT_EQ(table_->insert({.address = kAddress, .length = 1}).code(), Errc::no_resource);
  view_.hazards(3).slot[2] = 0;
  EXPECT_EQ(insert().index, key.index) << "now it is free";
}

TEST_F(RegistrationTableTest, CopyByTheKernelIsWaitedForUntilItsProcessIsStopped) {
  const MemKey key = insert(kAddress, 8192, RegionState::by_frame);
  peer_enters(3, key, kByAttach);
  stopped_from_ = 3;
  ASSERT_TRUE(remove(key).ok());
  EXPECT_EQ(looks_at_stopped_, 4) << "three looks found it going on";
  EXPECT_NE(insert().index, key.index);
}

TEST_F(RegistrationTableTest, CopyByTheKernelIsNotWaitedForWhenItsProcessIsDead) {
  const MemKey key = insert(kAddress, 8192, RegionState::by_frame);
  peer_enters(3, key, kByAttach);
  stopped_from_ = INT_MAX;
  peers_live_ = false;
  ASSERT_TRUE(remove(key).ok());
  EXPECT_EQ(looks_at_stopped_, 0);
}

TEST_F(RegistrationTableTest, DeadPeerIsNotWaitedFor) {
  const MemKey key = insert();
  peer_enters(3, key);
  peers_live_ = false;
  // A limit that would end the test's time.
  ASSERT_TRUE(remove(key, 3'600'000'000'000).ok());
  EXPECT_TRUE(cut_.empty());
}

TEST_F(RegistrationTableTest, PeerInAnotherRegionIsNotWaitedFor) {
  const MemKey key = insert();
  const MemKey other = insert();
  peer_enters(3, other);
  view_.region(key.index).touched = 1;
  ASSERT_TRUE(remove(key, 3'600'000'000'000).ok());
  EXPECT_TRUE(cut_.empty());
}

TEST_F(RegistrationTableTest, StalledPeerOnTheBoardIsCutOffAndKeepsThePlaceUntilItIsGone) {
  const MemKey key = insert();
  auto& word = peer_announces(3, key);
  ASSERT_TRUE(remove(key).ok());
  ASSERT_EQ(cut_.size(), 1u);
  EXPECT_FALSE(table_->drain_range(
      kAddress, kAddress + 1, [](std::uint32_t) { return true; }, 0));
  for (std::uint32_t i = 0; i < kMaxRegions - 1; ++i) insert(0x90'0000);
  EXPECT_EQ(table_->insert({.address = kAddress, .length = 1}).code(), Errc::no_resource);
  word = word + 1;
  EXPECT_EQ(insert().index, key.index) << "now it is free";
}

TEST_F(RegistrationTableTest, AccessOnTheBoardIsOverWhenTheNextOneHasBegun) {
  const MemKey key = insert();
  auto& word = peer_announces(3, key);
  const auto goes_on = [&](std::uint32_t) { return word = word + 2, true; };
  ASSERT_TRUE(table_
                  ->remove(
                      key, {.alive = goes_on, .stopped = {}}, 3'600'000'000'000,
                      [](std::span<const Range>) {}, [](std::uint64_t, std::uint64_t) { FAIL(); })
                  .ok());
  EXPECT_EQ(word, 9 | region_mark(0, key.index));
}

TEST_F(RegistrationTableTest, NobodyOnTheBoardIsWaitedForWhoCannotBeTouchingTheRegion) {
  const MemKey key = insert();
  const MemKey other = insert();
  peer_announces(3, other);
  peer_announces(4, key) = 8 | region_mark(0, key.index);
  view_.region(key.index).touched = 1;
  ASSERT_TRUE(remove(key, 3'600'000'000'000).ok());
  peers_live_ = false;
  ASSERT_TRUE(remove(other, 3'600'000'000'000).ok());
  EXPECT_TRUE(cut_.empty());
}

TEST_F(RegistrationTableTest, EveryWithdrawalOfWhatPeersTouchedIsCounted) {
  const MemKey untouched = insert();
  ASSERT_TRUE(remove(untouched).ok());
  EXPECT_EQ(board_->withdrawals, 0u);
  const MemKey key = table_->insert({.queue_plus_1 = 6, .address = kAddress, .length = 4096}).value();
  view_.region(key.index).touched = 1;
  const auto alive = [](std::uint32_t) { return true; };
  EXPECT_TRUE(table_->forget_queue(5, alive, 0));
  EXPECT_EQ(board_->withdrawals, 1u);
  EXPECT_TRUE(table_->mark_suspended(0, true, alive, 0));
  EXPECT_EQ(board_->withdrawals, 2u);
  EXPECT_TRUE(table_->mark_suspended(0, false, alive, 0));
  EXPECT_EQ(board_->withdrawals, 3u);
  EXPECT_TRUE(table_->drain_range(kAddress, kAddress + 1, alive, 0));
  EXPECT_EQ(board_->withdrawals, 4u);
  ASSERT_TRUE(remove(key).ok());
  EXPECT_EQ(board_->withdrawals, 5u);
}

TEST_F(RegistrationTableTest, SegmentsAreKeptInTheArenaAndGivenBack) {
  const Segment segments[] = {{kAddress, 100}, {kAddress + 9'000, 50}};
  const auto key = table_->insert({.domain = 7, .segments = segments});
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key.value().flags & kSegmented, kSegmented);
  EXPECT_EQ(view_.region(key.value().index).begin.load(), 0u);
  EXPECT_EQ(view_.region(key.value().index).end.load(), 150u);
  const auto ranges = table_->ranges_of(key.value().index);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[1].begin, kAddress + 8192);
  EXPECT_EQ(ranges[1].end, kAddress + 12'288);
  EXPECT_EQ(lists_, 1);
  ASSERT_TRUE(remove(key.value()).ok());
  EXPECT_EQ(lists_, 0);
  arena_full_ = true;
  EXPECT_EQ(table_->insert({.segments = segments}).code(), Errc::no_memory);
  EXPECT_EQ(table_->in_use(), 0u);
}

TEST_F(RegistrationTableTest, SegmentListOfAStalledPeerStaysUntilItIsGone) {
  const Segment segments[] = {{kAddress, 100}};
  const MemKey key = table_->insert({.domain = 7, .segments = segments}).value();
  peer_enters(5, key);
  ASSERT_TRUE(remove(key).ok());
  EXPECT_EQ(lists_, 1);
  view_.hazards(5).slot[2] = 0;
  insert();
  EXPECT_EQ(lists_, 0);
}

TEST_F(RegistrationTableTest, LongerThanAKeyCanSayIsRefused) {
  EXPECT_EQ(table_->insert({.address = 0, .length = 1ull << 41}).code(), Errc::size);
}

TEST_F(RegistrationTableTest, StateChangesTouchWhatOverlapsAndNothingElse) {
  const MemKey a = insert(kAddress, 4096, RegionState::by_frame);
  const MemKey b = insert(kAddress + 4096, 4096, RegionState::by_frame);
  const MemKey direct = insert(kAddress, 8192, RegionState::direct);
  const Segment segments[] = {{0x90'0000, 10}, {kAddress + 10, 10}};
  const MemKey spread = table_->insert({.domain = 7, .segments = segments}).value();
  table_->change_state(kAddress, kAddress + 4096, RegionState::by_frame, RegionState::moving);
  EXPECT_EQ(table_->state_of(a.index), RegionState::moving);
  EXPECT_EQ(table_->state_of(b.index), RegionState::by_frame);
  EXPECT_EQ(table_->state_of(direct.index), RegionState::direct);
  EXPECT_EQ(table_->state_of(spread.index), RegionState::moving);
  EXPECT_TRUE(table_->find(a).ok()) << "its key stays good";
  table_->settle_moving([](std::uint64_t begin, std::uint64_t) { return begin < 0x80'0000; });
  EXPECT_EQ(table_->state_of(a.index), RegionState::direct);
  EXPECT_EQ(table_->state_of(spread.index), RegionState::by_frame) << "not all of it is in";
}

TEST_F(RegistrationTableTest, RemovalInTheMiddleOfAnAdoptionWaitsForIt) {
  const MemKey still = insert(kAddress, 4096, RegionState::by_frame);
  ASSERT_TRUE(remove(still).ok());
  EXPECT_EQ(settled_, 0u);
  const MemKey moving = insert(kAddress, 4096, RegionState::moving);
  ASSERT_TRUE(remove(moving).ok());
  EXPECT_EQ(settled_, 1u);
}

}  // namespace
}  // namespace orrery::nic
