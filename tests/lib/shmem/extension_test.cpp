// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/shmem/client.hpp"

#include <pshmem.h>
#include <shmemx.h>

namespace {

int g_profiled = 0;

}  // namespace

// As a profiling tool does: the program's calls come here.
extern "C" void shmem_long_p(long* dest, long value, int pe) {
  ++g_profiled;
  pshmem_long_p(dest, value, pe);
}

namespace {

using client::Pe;
using client::Shared;

TEST(Extension, CallsGoThroughAToolThatDefinesThem) {
  const Pe& pe = Pe::get();
  const Shared<long> word(1);
  g_profiled = 0;
  shmem_long_p(word.get(), pe.me + 1, pe.next());
  pshmem_barrier_all();
  EXPECT_EQ(g_profiled, 1);
  EXPECT_EQ(word[0], pe.previous() + 1);
  EXPECT_EQ(pshmem_my_pe(), pe.me);
}

TEST(Extension, ScansSumOverTheMembersUpToThisOne) {
  const Pe& pe = Pe::get();
  constexpr std::size_t kCount = 1000;
  const Shared<long> source(kCount);
  const Shared<long> dest(kCount);
  for (const bool in_place : {false, true}) {
    for (const bool inclusive : {false, true}) {
      for (std::size_t i = 0; i < kCount; ++i) source[i] = static_cast<long>(i) * (pe.me + 1);
      shmem_barrier_all();
      long* const to = in_place ? source.get() : dest.get();
      const int result = inclusive ? shmemx_long_sum_inscan(SHMEM_TEAM_WORLD, to, source.get(), kCount)
                                   : shmemx_long_sum_exscan(SHMEM_TEAM_WORLD, to, source.get(), kCount);
      ASSERT_EQ(result, 0);
      const long below = pe.me * (pe.me + 1L) / 2;  // 1 + 2 + ... + me
      const long factor = inclusive ? below + pe.me + 1 : below;
      for (std::size_t i = 0; i < kCount; ++i)
        ASSERT_EQ(to[i], static_cast<long>(i) * factor) << in_place << inclusive << " at " << i;
      shmem_barrier_all();
    }
  }
  EXPECT_NE(shmemx_long_sum_inscan(SHMEM_TEAM_INVALID, dest.get(), source.get(), 1), 0);
}

TEST(Extension, BlocksAreMovedWithStrides) {
  const Pe& pe = Pe::get();
  constexpr std::size_t kBlocks = 5;
  constexpr std::size_t kBlock = 3;
  const Shared<int> there(64);
  int here[64];
  for (int i = 0; i < 64; ++i) here[i] = 100 * pe.me + i;
  shmemx_int_ibput(there.get(), here, 10, 4, kBlock, kBlocks, pe.next());
  shmem_barrier_all();
  for (std::size_t i = 0; i < 64; ++i) {
    const bool written = i / 10 < kBlocks && i % 10 < kBlock;
    EXPECT_EQ(
        there[i],
        written ? static_cast<int>(100 * static_cast<std::size_t>(pe.previous()) + i / 10 * 4 + i % 10) : 0)
        << i;
  }
  shmem_barrier_all();
  int back[64] = {};
  shmemx_ctx_ibget32(SHMEM_CTX_DEFAULT, back, there.get(), 3, 10, kBlock, kBlocks, pe.next());
  for (std::size_t i = 0; i < kBlocks * kBlock; ++i)
    EXPECT_EQ(back[i], here[i / kBlock * 4 + i % kBlock]) << i;
  shmem_barrier_all();
}

TEST(Extension, CountersGoUpWithEveryTransfer) {
  const Pe& pe = Pe::get();
  const Shared<int> data(1);
  shmemx_ct_t counter = nullptr;
  shmemx_ct_create(&counter);
  EXPECT_EQ(shmemx_ct_get(counter), 0);
  shmem_barrier_all();
  const int mine = pe.me + 1;
  shmemx_putmem_ct(counter, data.get(), &mine, sizeof mine, pe.next());
  shmemx_ct_wait(counter, 1);
  EXPECT_EQ(data[0], pe.previous() + 1);
  shmem_barrier_all();
  int got = 0;
  shmemx_getmem_ct(counter, &got, data.get(), sizeof got, pe.next());
  EXPECT_EQ(got, pe.me + 1);
  shmemx_ct_wait(counter, 2);
  shmem_barrier_all();
  shmemx_ct_set(counter, 7);
  EXPECT_EQ(shmemx_ct_get(counter), 7);
  shmemx_ct_free(&counter);
  EXPECT_EQ(counter, nullptr);
}

TEST(Extension, ASignalAloneAndMemoryWithoutABarrier) {
  const Pe& pe = Pe::get();
  auto* const signal =
      static_cast<std::uint64_t*>(shmem_malloc_with_hints(sizeof(std::uint64_t), SHMEMX_MALLOC_NO_BARRIER));
  ASSERT_NE(signal, nullptr);
  *signal = 0;
  shmem_barrier_all();
  shmemx_signal_set(SHMEM_CTX_DEFAULT, signal, 5, pe.next());
  EXPECT_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_GE, 5), 5U);
  shmem_barrier_all();
  shmemx_signal_add(signal, 2, pe.next());
  EXPECT_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_NE, 5), 7U);
  shmem_free(signal);
}

}  // namespace
