// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/shmem/client.hpp"

#include <vector>

// A heap that the NIC maps in several windows of 1 GiB (SHMEM_SYMMETRIC_SIZE=2500M): what shmem_ptr reaches.
namespace {

using client::Pe;

constexpr std::size_t kBlock = std::size_t{300} << 20;

TEST(ShmemLargeHeap, PointersReachEveryBlockThatLiesInOneWindow) {
  const Pe& pe = Pe::get();
  std::vector<char*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(static_cast<char*>(shmem_malloc(kBlock)));
  int reached = 0;
  for (char* const block : blocks) {
    ASSERT_NE(block, nullptr);
    const auto at = reinterpret_cast<std::uintptr_t>(block);
    const bool in_one = at >> 30 == (at + kBlock - 1) >> 30;
    char* const first = static_cast<char*>(shmem_ptr(block, pe.next()));
    char* const last = static_cast<char*>(shmem_ptr(block + kBlock - 1, pe.next()));
    EXPECT_EQ(first != nullptr, in_one) << static_cast<void*>(block);
    EXPECT_EQ(last != nullptr, in_one) << static_cast<void*>(block);
    if (first == nullptr || last == nullptr) continue;
    EXPECT_EQ(last - first, static_cast<std::ptrdiff_t>(kBlock - 1));
    *first = static_cast<char>(1 + pe.me);
    *last = static_cast<char>(2 + pe.me);
    ++reached;
  }
  EXPECT_GT(reached, 0);
  EXPECT_LT(reached, 8);
  shmem_barrier_all();
  for (char* const block : blocks) {
    const auto at = reinterpret_cast<std::uintptr_t>(block);
    if (at >> 30 != (at + kBlock - 1) >> 30) continue;
    EXPECT_EQ(block[0], 1 + pe.previous());
    EXPECT_EQ(block[kBlock - 1], 2 + pe.previous());
  }
  // No block lies there any more.
  shmem_free(blocks.back());
  EXPECT_EQ(shmem_ptr(blocks.back(), pe.next()), nullptr);
  blocks.pop_back();
  for (char* const block : blocks) shmem_free(block);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  shmem_finalize();
  return failed;
}
