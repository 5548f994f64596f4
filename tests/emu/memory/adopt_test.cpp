// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/memory/memory_fixture.hpp"
#include "tests/require.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <malloc.h>

namespace orrery::memory {
namespace {

// Static memory: initialised (mapped from the program's file) and not. Pages of their own: neighbours' data
// may be the tests'.
alignas(4096) char g_initialised[kBytes] = {1, 2, 3};
alignas(4096) char g_zeroed[kBytes];

void fill(char* at, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<char>(seed + i * 31 + i / 251);
}

bool holds(const void* at, std::size_t bytes, unsigned seed) {
  const char* p = static_cast<const char*>(at);
  for (std::size_t i = 0; i < bytes; ++i)
    if (p[i] != static_cast<char>(seed + i * 31 + i / 251)) return false;
  return true;
}

class Adopt : public ::testing::TestWithParam<Method> {
 protected:
  void SetUp() override {
    ORRERY_SKIP_WITHOUT(GetParam());
    ASSERT_NE(rig_.peer, nullptr);
  }

  // Contents survive, and each side sees what the other stores.
  void expect_shared(char* at, std::size_t bytes) {
    fill(at, bytes, 7);
    ASSERT_TRUE(rig_.adopt(at, bytes).ok());
    EXPECT_EQ(rig_.cover(at, bytes), Cover::direct);
    EXPECT_TRUE(holds(at, bytes, 7));
    EXPECT_TRUE(holds(rig_.peer_reads(at, bytes).data(), bytes, 7));
    fill(at, bytes, 9);
    EXPECT_TRUE(holds(rig_.peer_reads(at, bytes).data(), bytes, 9));
    rig_.peer_sets(at, 5, bytes);
    EXPECT_EQ(at[0], 5);
    EXPECT_EQ(at[bytes - 1], 5);
  }

  struct Parts {
    std::uint64_t count = 0, longest = 0;
  };
  Parts adopt_by_parts(const Pages& pages) {
    struct Guard final : SwitchGuard {
      Parts parts;
      Status before_switch(Range part) override {
        ++parts.count;
        parts.longest = std::max(parts.longest, part.size());
        return {};
      }
      void after_switch(Range, bool) override {}
    } guard;
    EXPECT_TRUE(rig_.space->adopt(address_of(pages.data()), pages.size(), guard).ok());
    EXPECT_EQ(rig_.cover(pages.data(), pages.size()), Cover::direct);
    return guard.parts;
  }

  Rig rig_{GetParam()};
};

TEST_P(Adopt, SharesMappedMemory) {
  Pages pages(kBytes);
  expect_shared(pages.data(), pages.size());
}

TEST_P(Adopt, SharesALargeMallocBlock) {
  char* const block = static_cast<char*>(std::malloc(1 << 20));
  expect_shared(block, 1 << 20);
  std::free(block);
}

TEST_P(Adopt, SharesASmallMallocBlockAndItsNeighboursLiveOn) {
  std::vector<char*> blocks;
  for (int i = 0; i < 200; ++i) {
    blocks.push_back(static_cast<char*>(std::malloc(300)));
    fill(blocks.back(), 300, static_cast<unsigned>(i));
  }
  expect_shared(blocks[100], 300);
  for (int i = 0; i < 200; ++i) {
    if (i != 100) {
      EXPECT_TRUE(holds(blocks[static_cast<std::size_t>(i)], 300, static_cast<unsigned>(i)));
    }
  }
  for (char* block : blocks) std::free(block);
}

TEST_P(Adopt, SharesABlockOfAThreadsArena) {
  std::thread([&] {
    char* const block = static_cast<char*>(std::malloc(5000));
    expect_shared(block, 5000);
    std::free(block);
  }).join();
}

TEST_P(Adopt, SharesStaticMemory) {
  ORRERY_SKIP_WITHOUT(Method::protect);
  expect_shared(g_initialised, sizeof g_initialised);
  expect_shared(g_zeroed, sizeof g_zeroed);
}

TEST_P(Adopt, SharesPrivatePagesOfAFile) {
  ORRERY_SKIP_WITHOUT(Method::protect);
  char path[] = "/tmp/orrery-memory-test-XXXXXX";
  const int file = mkstemp(path);
  unlink(path);
  ASSERT_EQ(ftruncate(file, kBytes), 0);
  ASSERT_EQ(pwrite(file, "original", 8, 0), 8);
  char* const at = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
  ASSERT_NE(at, MAP_FAILED);
  at[kPageBytes] = 'x';
  ASSERT_TRUE(rig_.adopt(at, kBytes).ok());
  EXPECT_EQ(rig_.peer_reads(at, 8), "original");
  EXPECT_EQ(static_cast<char>(*rig_.seen(at + kPageBytes)), 'x');
  munmap(at, kBytes);
  close(file);
}

// Peers wait while a part moves: the parts of pages that hold something are short.
TEST_P(Adopt, MovesWhatHoldsSomethingByShortParts) {
  Pages pages(std::size_t{16} << 20);
  fill(pages.data(), pages.size(), 3);
  const Parts parts = adopt_by_parts(pages);
  EXPECT_LE(parts.longest, std::uint64_t{256} << 10);
  EXPECT_TRUE(holds(pages.data(), pages.size(), 3));
}

// What is reserved and never touched costs nothing: neither a part for each 256 KiB nor memory.
TEST_P(Adopt, MovesWhatWasNeverTouchedByLongParts) {
  Pages pages(std::size_t{64} << 30, PROT_READ | PROT_WRITE, MAP_NORESERVE);
  if (!pages.ok()) ORRERY_SKIP("memory") << "no 64 GiB of address space";
  const auto before = rig_.space->stats().file_blocks_bytes;
  const Parts parts = adopt_by_parts(pages);
  EXPECT_LE(parts.count, std::uint64_t{64} << 30 >> 24) << "parts of 16 MiB or more";
  EXPECT_LE(rig_.space->stats().file_blocks_bytes, before + (1 << 20));
  pages.data()[pages.size() - 1] = 5;
  EXPECT_EQ(static_cast<char>(*rig_.seen(pages.data() + pages.size() - 1)), 5);
}

// A page here and there does not make the parts around it short.
TEST_P(Adopt, MovesWhatIsBetweenSingleTouchedPagesByLongParts) {
  constexpr std::size_t kBytes = std::size_t{4} << 30, kApart = std::size_t{8} << 20;
  Pages pages(kBytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
  if (!pages.ok()) ORRERY_SKIP("memory") << "no 4 GiB of address space";
  for (std::size_t at = 0; at < kBytes; at += kApart) pages.data()[at] = 5;
  const Parts parts = adopt_by_parts(pages);
  EXPECT_LE(parts.count, 4 * kBytes / kApart);
  EXPECT_LE(parts.longest, std::uint64_t{16} << 20) << "peers wait while a part moves";
  for (std::size_t at = 0; at < kBytes; at += kApart) ASSERT_EQ(pages.data()[at], 5) << at;
}

TEST_P(Adopt, KeepsPagesThatWereNeverTouchedSparse) {
  Pages pages(std::size_t{64} << 20);
  pages.data()[0] = 1;
  const auto before = rig_.space->stats().file_blocks_bytes;
  ASSERT_TRUE(rig_.adopt(pages.data(), pages.size()).ok());
  EXPECT_LE(rig_.space->stats().file_blocks_bytes, before + (1 << 20));
  EXPECT_EQ(pages.data()[pages.size() - 1], 0);
}

TEST_P(Adopt, SkipsWhatIsInTheFileAlready) {
  Pages pages(kBytes);
  ASSERT_TRUE(rig_.adopt(pages.data() + kPageBytes, kPageBytes).ok());
  EXPECT_EQ(rig_.cover(pages.data(), kBytes), Cover::partial);
  pages.data()[kPageBytes] = 42;
  ASSERT_TRUE(rig_.adopt(pages.data(), kBytes).ok());
  EXPECT_EQ(rig_.cover(pages.data(), kBytes), Cover::direct);
  EXPECT_EQ(pages.data()[kPageBytes], 42);
}

TEST_P(Adopt, ReleaseGivesPrivateMemoryWithTheSameContents) {
  Pages pages(kBytes);
  fill(pages.data(), kBytes, 3);
  ASSERT_TRUE(rig_.adopt(pages.data(), kBytes).ok());
  rig_.peer_sets(pages.data(), 77, 100);
  ASSERT_TRUE(rig_.release(pages.data(), kBytes).ok());
  EXPECT_EQ(rig_.cover(pages.data(), kBytes), Cover::none);
  EXPECT_EQ(pages.data()[99], 77);
  EXPECT_TRUE(rig_.adopt(pages.data(), 1).ok());
  // A stalled peer's late store lands in an orphan.
  ASSERT_TRUE(rig_.release(pages.data(), kBytes).ok());
  rig_.peer_sets(pages.data(), 11, kBytes);
  EXPECT_EQ(pages.data()[99], 77);
  rig_.space->reap();
  EXPECT_EQ(rig_.space->stats().file_blocks_bytes, 0u);
}

TEST_P(Adopt, RefusesWhatCannotBeMoved) {
  Obstacle why = Obstacle::none;
  char on_stack[64] = {};
  EXPECT_EQ(rig_.adopt(on_stack, sizeof on_stack, &why), Status(Errc::unsupported));
  EXPECT_EQ(why, Obstacle::stack);
  EXPECT_EQ(rig_.obstacle(on_stack, sizeof on_stack), Obstacle::stack);

  thread_local char in_thread_storage[64];
  EXPECT_EQ(rig_.adopt(in_thread_storage, sizeof in_thread_storage, &why), Status(Errc::unsupported));
  EXPECT_EQ(why, Obstacle::stack);

  Pages read_only(kBytes, PROT_READ);
  EXPECT_EQ(rig_.adopt(read_only.data(), kBytes, &why), Status(Errc::unsupported));
  EXPECT_EQ(why, Obstacle::read_only);
  const RangeInfo info = rig_.space->inspect(address_of(read_only.data()), kBytes).value();
  EXPECT_TRUE(info.mapped);
  EXPECT_FALSE(info.writable);

  void* const shared = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(rig_.adopt(shared, kBytes, &why), Status(Errc::unsupported));
  EXPECT_EQ(why, Obstacle::shared_mapping);
  munmap(shared, kBytes);
  EXPECT_EQ(rig_.adopt(shared, kBytes, &why), Status(Errc::unsupported));
  EXPECT_EQ(why, Obstacle::unmapped);
  EXPECT_FALSE(rig_.space->inspect(address_of(shared), kBytes).value().mapped);
  EXPECT_EQ(rig_.space->stats().refused[static_cast<std::size_t>(Obstacle::stack)], 2u);

  EXPECT_EQ(rig_.space->adopt(UINT64_MAX - 10, 20, rig_.nobody), Status(Errc::bounds));
  EXPECT_EQ(rig_.space->adopt(address_of(on_stack), 0, rig_.nobody), Status(Errc::bounds));
  EXPECT_EQ(rig_.space->inspect(0, 0).code(), Errc::bounds);
}

TEST_P(Adopt, RefusesTheStackOfAnotherThread) {
  std::atomic<char*> their_stack{nullptr};
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    char local[64] = {};
    their_stack = local;
    while (!stop) std::this_thread::yield();
  });
  while (their_stack == nullptr) std::this_thread::yield();
  Obstacle why = Obstacle::none;
  EXPECT_EQ(rig_.adopt(their_stack, 64, &why), Status(Errc::unsupported));
  EXPECT_EQ(why, Obstacle::stack);
  stop = true;
  thread.join();
}

TEST_P(Adopt, RefusesHugePages) {
  Pages huge(2 << 20, PROT_READ | PROT_WRITE, MAP_HUGETLB | MAP_NORESERVE);
  // A container without reserved huge pages cannot have the memory that is to be refused.
  if (!huge.ok()) ORRERY_SKIP("hugetlb") << "no hugetlb mapping here";
  Obstacle why = Obstacle::none;
  EXPECT_EQ(rig_.adopt(huge.data(), huge.size(), &why), Status(Errc::unsupported));
  EXPECT_EQ(why, Obstacle::huge_pages);
}

TEST_P(Adopt, RefusesWhatTheProgramKeptFromChildren) {
  Pages pages(kBytes);
  ASSERT_EQ(madvise(pages.data(), kPageBytes, MADV_DONTFORK), 0);
  EXPECT_EQ(rig_.obstacle(pages.data(), kBytes), Obstacle::pinned);
  EXPECT_EQ(rig_.adopt(pages.data(), kBytes), Status(Errc::unsupported));
  ASSERT_EQ(madvise(pages.data(), kPageBytes, MADV_DOFORK), 0);
  EXPECT_TRUE(rig_.adopt(pages.data(), kBytes).ok());
}

TEST_P(Adopt, StopsWhenTheGuardSaysSo) {
  struct Busy final : SwitchGuard {
    int asked = 0;
    Status before_switch(Range) override { return ++asked > 2 ? Status(Errc::timeout) : Status{}; }
    void after_switch(Range, bool) override {}
  } busy;
  Pages pages(std::size_t{4} << 20);
  fill(pages.data(), pages.size(), 1);
  EXPECT_EQ(rig_.space->adopt(address_of(pages.data()), pages.size(), busy), Status(Errc::timeout));
  EXPECT_EQ(rig_.cover(pages.data(), pages.size()), Cover::partial);
  EXPECT_EQ(rig_.cover(pages.data(), kPageBytes), Cover::direct);
  EXPECT_TRUE(holds(pages.data(), pages.size(), 1));
}

INSTANTIATE_TEST_SUITE_P(Methods, Adopt, ::testing::Values(Method::userfault, Method::protect),
                         [](const auto& info) { return method_name(info.param); });

TEST(Inspect, AnswersTheSameWithoutTheMapQuery) {
  Rig rig(Options{.use_map_query = false});
  ASSERT_NE(rig.space, nullptr);
  EXPECT_FALSE(rig.space->stats().map_query);
  Pages pages(kBytes);
  EXPECT_EQ(rig.cover(pages.data(), kBytes), Cover::none);
  ASSERT_TRUE(rig.adopt(pages.data() + kPageBytes, kPageBytes).ok());
  EXPECT_EQ(rig.cover(pages.data(), kBytes), Cover::partial);
  ASSERT_TRUE(rig.adopt(pages.data(), kBytes).ok());
  EXPECT_EQ(rig.cover(pages.data(), kBytes), Cover::direct);
  Pages read_only(kBytes, PROT_READ);
  EXPECT_EQ(rig.obstacle(read_only.data(), kBytes), Obstacle::read_only);
  rig.space->reap();
  EXPECT_EQ(rig.cover(pages.data(), kBytes), Cover::direct);
}

TEST(Allocate, GivesSharedZeroedMemoryOfAnyAlignment) {
  Rig rig;
  ASSERT_NE(rig.peer, nullptr);
  for (const std::size_t alignment : {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 21}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, std::size_t{3} << 20}) {
      auto block = rig.space->allocate(bytes, alignment);
      ASSERT_TRUE(block.ok());
      char* const at = static_cast<char*>(block.value());
      EXPECT_EQ(address_of(at) % std::max<std::size_t>(alignment, 4096), 0u);
      EXPECT_EQ(rig.cover(at, bytes), Cover::direct);
      EXPECT_EQ(at[bytes - 1], 0);
      at[bytes - 1] = 9;
      EXPECT_EQ(static_cast<char>(*rig.seen(at + bytes - 1)), 9);
      rig.space->deallocate(at, bytes);
    }
  }
  EXPECT_EQ(rig.space->stats().file_blocks_bytes, 0u);
  EXPECT_EQ(rig.space->stats().extents, 0u);
  EXPECT_EQ(rig.space->allocate(0).code(), Errc::invalid_param);
  EXPECT_EQ(rig.space->allocate(1, 3).code(), Errc::invalid_param);
  EXPECT_EQ(rig.space->allocate(~std::size_t{0}).code(), Errc::invalid_param);
}

TEST(AddressSpaceCreate, GivesOnePerProcess) {
  Rig first;
  ASSERT_NE(first.space, nullptr);
  EXPECT_EQ(AddressSpace::create({}).code(), Errc::invalid_state);
}

TEST(AddressSpaceDestroy, LeavesMemoryPrivateWithItsContents) {
  Pages pages(kBytes);
  fill(pages.data(), kBytes, 8);
  {
    Rig rig;
    ASSERT_TRUE(rig.adopt(pages.data(), kBytes).ok());
  }
  EXPECT_TRUE(holds(pages.data(), kBytes, 8));
  Rig again;
  EXPECT_EQ(again.obstacle(pages.data(), kBytes), Obstacle::none);
}

}  // namespace
}  // namespace orrery::memory
