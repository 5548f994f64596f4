// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// Memory that goes away, comes back as something else, or moves, behind the address space's back or through
// the interposed calls.
#include "tests/emu/memory/memory_fixture.hpp"

#include <algorithm>
#include <cstdlib>

#include <malloc.h>
#include <sys/syscall.h>

namespace orrery::memory {
namespace {

constexpr std::size_t kReusedBytes = std::size_t{1} << 20;

// As libc's own calls inside malloc: nothing interposed sees it.
int raw_munmap(void* at, std::size_t bytes) { return static_cast<int>(syscall(SYS_munmap, at, bytes)); }
char* raw_map_at(void* at, std::size_t bytes) {
  return reinterpret_cast<char*>(
      syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

class Reuse : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(rig_.peer, nullptr); }
  std::uint64_t file_bytes() { return rig_.space->stats().file_blocks_bytes; }
  Rig rig_;
};

TEST_F(Reuse, UnmappedMemoryLeavesTheFileAtOnceWhenTheCallIsSeen) {
  char* const at = static_cast<char*>(
      mmap(nullptr, kReusedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(at, 1, kReusedBytes);
  ASSERT_TRUE(rig_.adopt(at, kReusedBytes).ok());
  EXPECT_GE(file_bytes(), kReusedBytes);
  munmap(at, kReusedBytes);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(file_bytes(), 0u);
#endif
  rig_.space->reap();
  EXPECT_EQ(file_bytes(), 0u);
  EXPECT_EQ(rig_.space->stats().extents, 0u);
}

TEST_F(Reuse, MemoryUnmappedUnseenIsFoundByReap) {
  Pages pages(kReusedBytes);
  std::memset(pages.data(), 1, kReusedBytes);
  ASSERT_TRUE(rig_.adopt(pages.data(), kReusedBytes).ok());
  ASSERT_EQ(raw_munmap(pages.data() + kPageBytes, kReusedBytes / 2), 0);
  rig_.space->reap();
  EXPECT_EQ(file_bytes(), kReusedBytes / 2);
  EXPECT_EQ(rig_.cover(pages.data(), kPageBytes), Cover::direct);
  EXPECT_EQ(pages.data()[0], 1);
  EXPECT_EQ(pages.data()[kReusedBytes - 1], 1);
}

TEST_F(Reuse, OtherMemoryAtTheSameAddressIsNotTakenForAdopted) {
  Pages pages(kReusedBytes);
  std::memset(pages.data(), 1, kReusedBytes);
  ASSERT_TRUE(rig_.adopt(pages.data(), kReusedBytes).ok());
  ASSERT_EQ(raw_map_at(pages.data(), kReusedBytes), pages.data());
  EXPECT_EQ(rig_.cover(pages.data(), kReusedBytes), Cover::none);
  EXPECT_EQ(pages.data()[5], 0);
  // A peer that has not heard of it stores into an orphan.
  rig_.peer_sets(pages.data(), 9, 10);
  EXPECT_EQ(pages.data()[5], 0);
  // Adopted again, it holds what the program put there, not what the file held.
  pages.data()[5] = 3;
  ASSERT_TRUE(rig_.adopt(pages.data(), kReusedBytes).ok());
  EXPECT_EQ(pages.data()[5], 3);
  EXPECT_EQ(pages.data()[4], 0);
  EXPECT_EQ(pages.data()[kReusedBytes - 1], 0);
  EXPECT_EQ(rig_.peer_reads(pages.data() + 5, 1), "\3");
}

TEST_F(Reuse, ALargeBlockIsOneExtent) {
  Pages large(std::size_t{40} << 20);
  ASSERT_TRUE(rig_.adopt(large.data(), large.size()).ok());
  EXPECT_EQ(rig_.space->stats().extents, 1u);
}

TEST_F(Reuse, SixTimesTheSameSixtyFourMebibytesStayBounded) {
  constexpr std::size_t kBlock = std::size_t{64} << 20;
  for (int round = 0; round < 6; ++round) {
    char* const at =
        static_cast<char*>(mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(at, round + 1, kBlock);
    ASSERT_TRUE(rig_.adopt(at, kBlock).ok());
    ASSERT_EQ(raw_munmap(at, kBlock), 0);
    EXPECT_LE(file_bytes(), 2 * kBlock);
  }
}

TEST_F(Reuse, DontNeedZeroesAdoptedPages) {
  Pages pages(kReusedBytes);
  for (const int advice : {MADV_DONTNEED, MADV_FREE}) {
    std::memset(pages.data(), 7, kReusedBytes);
    ASSERT_TRUE(rig_.adopt(pages.data(), kReusedBytes / 2).ok());
    ASSERT_EQ(madvise(pages.data(), kReusedBytes / 2, advice), 0);
    EXPECT_EQ(pages.data()[0], 0);
    EXPECT_EQ(pages.data()[kReusedBytes / 2 - 1], 0);
    EXPECT_EQ(pages.data()[kReusedBytes / 2], 7);
    EXPECT_EQ(file_bytes() > kReusedBytes / 2, false);
  }
}

TEST_F(Reuse, ReallocOfAnAdoptedBlockDoesNotShowItsNeighbours) {
  // Blocks that malloc maps; glibc's realloc grows them by mremap, unseen.
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  std::vector<char*> blocks;
  for (int i = 0; i < 16; ++i) {
    blocks.push_back(static_cast<char*>(std::malloc(kReusedBytes)));
    std::memset(blocks.back(), 'a' + i, kReusedBytes);
    ASSERT_TRUE(rig_.adopt(blocks.back(), kReusedBytes).ok());
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    blocks[i] = static_cast<char*>(std::realloc(blocks[i], 3 * kReusedBytes));
    ASSERT_NE(blocks[i], nullptr);
    std::memset(blocks[i] + kReusedBytes, '#', 2 * kReusedBytes);
  }
  rig_.space->reap();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string expected(kReusedBytes, static_cast<char>('a' + i));
    EXPECT_EQ(std::memcmp(blocks[i], expected.data(), kReusedBytes), 0) << "block " << i;
    std::free(blocks[i]);
  }
}

TEST_F(Reuse, AMovedMappingKeepsItsContentsAndIsNotTakenForAdopted) {
  Pages pages(kReusedBytes);
  std::memset(pages.data(), 5, kReusedBytes);
  ASSERT_TRUE(rig_.adopt(pages.data(), 4 * kPageBytes).ok());
  // Unseen, and whole mappings only, as the kernel allows it.
  char* const moved =
      reinterpret_cast<char*>(syscall(SYS_mremap, pages.data(), 4 * kPageBytes, 4 * kPageBytes,
                                      MREMAP_MAYMOVE | MREMAP_FIXED, pages.data() + kReusedBytes / 2));
  ASSERT_EQ(moved, pages.data() + kReusedBytes / 2);
  EXPECT_EQ(rig_.cover(moved, kPageBytes), Cover::none);
  EXPECT_EQ(rig_.obstacle(moved, kPageBytes), Obstacle::shared_mapping);
  rig_.space->reap();
  EXPECT_EQ(moved[0], 5);
  EXPECT_EQ(moved[4 * kPageBytes - 1], 5);
}

TEST_F(Reuse, MremapOfAdoptedMemoryGivesPrivateMemory) {
  Pages keep_away(4 * kReusedBytes);
  char* const at = keep_away.data();
  std::memset(at, 6, kReusedBytes);
  ASSERT_TRUE(rig_.adopt(at, kReusedBytes).ok());
  char* const grown = static_cast<char*>(mremap(at, kReusedBytes, 2 * kReusedBytes, MREMAP_MAYMOVE));
  ASSERT_NE(grown, MAP_FAILED);
  EXPECT_EQ(grown[kReusedBytes - 1], 6);
  EXPECT_EQ(grown[kReusedBytes], 0);
  EXPECT_EQ(rig_.cover(grown, kReusedBytes), Cover::none);
  char* const same = static_cast<char*>(mremap(grown, 2 * kReusedBytes, kReusedBytes / 2, 0));
  EXPECT_EQ(same, grown);
  munmap(grown, kReusedBytes / 2);
}

TEST_F(Reuse, MremapOfAdoptedMemoryToASizeThatWrapsFails) {
  Pages pages(kReusedBytes);
  std::memset(pages.data(), 6, kReusedBytes);
  ASSERT_TRUE(rig_.adopt(pages.data(), kReusedBytes).ok());
  volatile std::size_t wraps = SIZE_MAX;  // rounded up to pages it is nothing
  EXPECT_EQ(mremap(pages.data(), kReusedBytes, wraps, MREMAP_MAYMOVE), MAP_FAILED);
  EXPECT_EQ(pages.data()[kReusedBytes - 1], 6);
}

TEST_F(Reuse, TrimmedHeapsStayUsable) {
  // Main heap: brk shrinks over adopted pages; free chunks inside are given back by an madvise that cannot be
  // seen.
  std::vector<char*> blocks;
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 64; ++i) {
      blocks.push_back(static_cast<char*>(std::malloc(100'000)));
      std::memset(blocks.back(), i, 100'000);
      ASSERT_TRUE(rig_.adopt(blocks.back(), 100'000).ok());
    }
    for (std::size_t i = 0; i < blocks.size(); i += 2) std::free(blocks[i]);
    malloc_trim(0);
    for (std::size_t i = 1; i < blocks.size(); i += 2) {
      EXPECT_EQ(blocks[i][99'999], static_cast<char>(i));
      std::free(blocks[i]);
    }
    malloc_trim(0);
    blocks.clear();
    char* const zeroed = static_cast<char*>(std::calloc(1, 5'000'000));
    EXPECT_EQ(std::count(zeroed, zeroed + 5'000'000, 0), 5'000'000);
    std::free(zeroed);
  }
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
}

TEST_F(Reuse, ScatteredPagesStopAtTheBudgetAndNothingBreaks) {
  // Every second page of 100,000: each adoption splits a mapping.
  constexpr std::size_t kScattered = 100'000;
  Pages pages(2 * kScattered * kPageBytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
  ASSERT_TRUE(pages.ok());
  std::size_t adopted = 0, refused = 0;
  for (std::size_t i = 0; i < kScattered; ++i) {
    char* const page = pages.data() + 2 * i * kPageBytes;
    page[0] = static_cast<char>(i);
    const Status status = rig_.adopt(page, kPageBytes);
    if (status.ok()) {
      ++adopted;
    } else {
      ASSERT_EQ(status, Status(Errc::no_resource));
      ++refused;
    }
  }
  EXPECT_LE(rig_.space->stats().extents, rig_.space->stats().extent_budget);
  EXPECT_GT(refused, 0u);
  EXPECT_GT(adopted, 10'000u);
  for (std::size_t i = 0; i < kScattered; ++i) {
    char* const page = pages.data() + 2 * i * kPageBytes;
    ASSERT_EQ(page[0], static_cast<char>(i));
    page[1] = 1;
  }
  // What was refused still has room elsewhere, and the program its own mappings.
  Pages other(kPageBytes);
  EXPECT_TRUE(other.ok());
}

TEST(MappingLimit, ReachedInTheMiddleLeavesEveryPageWritable) {
  // A budget that lets the kernel's own limit strike first, in a process of its own: nothing else could map
  // meanwhile.
  const int code = in_child([] {
    Rig rig(Options{.extent_budget = 200'000});
    ORRERY_CHILD_REQUIRE(rig.peer != nullptr);
    constexpr std::size_t kScattered = 40'000;
    Pages pages(2 * kScattered * kPageBytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    ORRERY_CHILD_REQUIRE(pages.ok());
    std::size_t refused = 0;
    for (std::size_t i = 0; i < kScattered; ++i) {
      char* const page = pages.data() + 2 * i * kPageBytes;
      page[0] = static_cast<char>(i);
      refused += !rig.adopt(page, kPageBytes).ok();
    }
    ORRERY_CHILD_REQUIRE(refused > 0);
    for (std::size_t i = 0; i < kScattered; ++i) {
      char* const page = pages.data() + 2 * i * kPageBytes;
      ORRERY_CHILD_REQUIRE(page[0] == static_cast<char>(i));
      page[0] = 1;
      page[kPageBytes] = 1;
    }
    _exit(0);
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace orrery::memory
