// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/unmapping.hpp"

#include "tests/emu/memory/memory_fixture.hpp"

#include <atomic>
#include <cstdlib>
#include <thread>

namespace orrery::memory {
namespace {

std::uint64_t g_words[4096];

struct Listener final : UnmapListener {
  std::atomic<int> told{0};
  std::atomic<int> over{0};
  Range last;
  int before(Range range) override {
    last = range;
    return ++told;
  }
  void after(int token) override { over = token; }
};

class UnmappingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kInterposed) GTEST_SKIP() << "a sanitizer's own munmap() comes before ours";
    space_ = AddressSpace::create({}).value();
    set_unmap_listener(&listener_);
  }
  void TearDown() override {
    set_unmap_listener(nullptr);
    (void)announce_move({});
  }
  static void* map() {
    return mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }

  std::unique_ptr<AddressSpace> space_;
  Listener listener_;
  NoPeers nobody_;
};

TEST_F(UnmappingTest, WhatTheProgramMapsAndItsDataAndHeapAreHeardOf) {
  void* const mapped = map();
  const auto at = address_of(mapped);
  const Range around = told_around(at + 100);
  EXPECT_LE(around.begin, at);
  EXPECT_GE(around.end, at + kBytes);
  EXPECT_TRUE(told_around(address_of(&g_words[100])).contains(address_of(&g_words[100])));
  void* const small = std::malloc(64);
  EXPECT_FALSE(told_around(address_of(small)).empty());
  std::free(small);
  munmap(mapped, kBytes);
  EXPECT_TRUE(told_around(at + 100).empty());
}

TEST_F(UnmappingTest, WhatLibcMapsForItselfIsNot) {
  void* const large = std::calloc(64, std::size_t{1} << 20);
  EXPECT_TRUE(told_around(address_of(large) + 4096).empty());
  std::free(large);
  int on_stack = 0;
  EXPECT_TRUE(told_around(address_of(&on_stack)).empty());
  std::thread([] {
    int on_another = 0;
    EXPECT_TRUE(told_around(address_of(&on_another)).empty());
  }).join();
}

TEST_F(UnmappingTest, PartsOfAMappingGoOneByOneAndMoveWithIt) {
  void* const mapped = map();
  const auto at = address_of(mapped);
  munmap(reinterpret_cast<void*>(at + 8 * kPageBytes), kPageBytes);
  EXPECT_TRUE(told_around(at + 8 * kPageBytes).empty());
  EXPECT_EQ(told_around(at).end, at + 8 * kPageBytes);
  void* const moved = mremap(mapped, 8 * kPageBytes, 100 * kPageBytes, MREMAP_MAYMOVE);
  ASSERT_NE(moved, MAP_FAILED);
  EXPECT_TRUE(told_around(address_of(moved) + 99 * kPageBytes).contains(address_of(moved)));
  munmap(moved, 100 * kPageBytes);
  munmap(reinterpret_cast<void*>(at), kBytes);
}

TEST_F(UnmappingTest, ListenerHearsOfPagesInTheFileAndNotOfOthers) {
  void* const mapped = map();
  void* const other = map();
  ASSERT_TRUE(space_->adopt(address_of(mapped), kPageBytes, nobody_).ok());
  mprotect(mapped, kPageBytes, PROT_READ);
  EXPECT_EQ(listener_.told, 1);
  EXPECT_EQ(listener_.over, 1);
  mprotect(mapped, kPageBytes, PROT_READ | PROT_WRITE);
  EXPECT_EQ(listener_.told, 1) << "nothing is taken away";
  munmap(mapped, kBytes);
  EXPECT_EQ(listener_.told, 2);
  EXPECT_EQ(listener_.last.begin, address_of(mapped));
  munmap(other, kBytes);
  void* const again = map();
  munmap(again, kBytes);
  EXPECT_EQ(listener_.told, 2);
}

TEST_F(UnmappingTest, ListenerHearsOfPagesThatAreAboutToBeMoved) {
  void* const mapped = map();
  const auto at = address_of(mapped);
  ASSERT_TRUE(announce_move({at + kPageBytes, at + 2 * kPageBytes}));
  munmap(mapped, kPageBytes);
  EXPECT_EQ(listener_.told, 0);
  munmap(mapped, kBytes);
  EXPECT_EQ(listener_.told, 1);
}

TEST_F(UnmappingTest, AdoptableIsWhatCanBeMovedAndNotItsNeighbours) {
  void* const mapped = map();
  const auto at = address_of(mapped);
  const Range bounds{at - 100 * kPageBytes, at + 2 * kBytes};
  mprotect(reinterpret_cast<void*>(at + 4 * kPageBytes), kPageBytes, PROT_READ);
  const Range run = space_->adoptable_around(at + kPageBytes, bounds);
  EXPECT_TRUE(run.contains(at + kPageBytes));
  EXPECT_LE(run.end, at + 4 * kPageBytes);
  EXPECT_TRUE(space_->adoptable_around(at + 4 * kPageBytes, bounds).empty()) << "read-only";
  const Range upper = space_->adoptable_around(at + 5 * kPageBytes, bounds);
  EXPECT_EQ(upper.begin, at + 5 * kPageBytes);
  munmap(mapped, kBytes);
  EXPECT_TRUE(space_->adoptable_around(at + kPageBytes, bounds).empty()) << "unmapped";
}

TEST_F(UnmappingTest, ChildOfForkMapsAndUnmapsUntold) {
  void* const mapped = map();
  ASSERT_TRUE(space_->adopt(address_of(mapped), kPageBytes, nobody_).ok());
  const pid_t child = fork();
  if (child == 0) {
    void* const own = map();
    munmap(own, kBytes);
    munmap(mapped, kBytes);
    _exit(listener_.told == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  munmap(mapped, kBytes);
}

}  // namespace
}  // namespace orrery::memory
