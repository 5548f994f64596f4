// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/dmapp/client.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

// Puts, gets and completion, by every way that memory is reached.
namespace {

using client::Pe;

std::uint64_t pattern(int pe, std::size_t i) {
  return 0x1000'0000'0000ull * (static_cast<unsigned>(pe) + 1) + i;
}

std::uint64_t g_static_word;
std::array<std::uint64_t, 1000> g_static_words;

TEST(Dmapp, SaysWhoIsWho) {
  const Pe& pe = Pe::get();
  int rank = -1;
  int size = -1;
  EXPECT_EQ(PMI_Get_rank(&rank), PMI_SUCCESS);
  EXPECT_EQ(PMI_Get_size(&size), PMI_SUCCESS);
  EXPECT_EQ(pe.me, rank);
  EXPECT_EQ(pe.count, size);
  int flag = 0;
  EXPECT_EQ(dmapp_initialized(&flag), DMAPP_RC_SUCCESS);
  EXPECT_EQ(flag, 1);
}

TEST(Dmapp, HeapHasTheSameAddressesEverywhere) {
  const Pe& pe = Pe::get();
  auto* const a = pe.shared<std::uint64_t>(100);
  auto* const b = pe.shared<std::uint64_t>(3);
  for (const auto& other : pe.gather(std::array<void*, 3>{a, b, pe.job.sheap_seg.addr})) {
    EXPECT_EQ(other[0], a);
    EXPECT_EQ(other[1], b);
    EXPECT_EQ(other[2], pe.job.sheap_seg.addr);
  }
  dmapp_sheap_free(b);
  b[0] = 1;  // the heap itself stays
  pe.unshare(a);
}

TEST(Dmapp, PutsAndGetsOfEveryTypeAndMode) {
  const Pe& pe = Pe::get();
  constexpr std::size_t kWords = 1024;
  auto* const block = pe.shared<std::uint64_t>(kWords);
  std::vector<std::uint64_t> mine(kWords);
  std::vector<std::uint64_t> back(kWords);
  const struct {
    dmapp_type_t type;
    std::size_t bytes;
  } types[] = {{DMAPP_BYTE, 1}, {DMAPP_DW, 4}, {DMAPP_QW, 8}, {DMAPP_DQW, 16}};
  int round = 0;
  for (const auto& type : types) {
    for (int mode = 0; mode < 3; ++mode, ++round) {
      for (std::size_t i = 0; i < kWords; ++i) mine[i] = pattern(pe.me + round * 100, i);
      const std::uint64_t n = kWords * 8 / type.bytes;
      dmapp_syncid_handle_t id;
      if (mode == 0) {
        REQUIRE_SUCCESS(dmapp_put(block, pe.heap, pe.next(), mine.data(), n, type.type));
      } else if (mode == 1) {
        REQUIRE_SUCCESS(dmapp_put_nb(block, pe.heap, pe.next(), mine.data(), n, type.type, &id));
        REQUIRE_SUCCESS(dmapp_syncid_wait(&id));
      } else {
        REQUIRE_SUCCESS(dmapp_put_nbi(block, pe.heap, pe.next(), mine.data(), n, type.type));
        REQUIRE_SUCCESS(dmapp_gsync_wait());
      }
      pe.barrier();
      for (std::size_t i = 0; i < kWords; ++i) ASSERT_EQ(block[i], pattern(pe.previous() + round * 100, i));
      std::fill(back.begin(), back.end(), 0);
      if (mode == 0) {
        REQUIRE_SUCCESS(dmapp_get(back.data(), block, pe.heap, pe.next(), n, type.type));
      } else if (mode == 1) {
        REQUIRE_SUCCESS(dmapp_get_nb(back.data(), block, pe.heap, pe.next(), n, type.type, &id));
        int done = 0;
        while (done == 0) REQUIRE_SUCCESS(dmapp_syncid_test(&id, &done));
      } else {
        REQUIRE_SUCCESS(dmapp_get_nbi(back.data(), block, pe.heap, pe.next(), n, type.type));
        int done = 0;
        while (done == 0) REQUIRE_SUCCESS(dmapp_gsync_test(&done));
      }
      EXPECT_EQ(back, mine);
      pe.barrier();
    }
  }
  pe.unshare(block);
}

TEST(Dmapp, TakesAnyAlignmentAndLength) {
  const Pe& pe = Pe::get();
  auto* const block = pe.shared<unsigned char>(4096);
  std::vector<unsigned char> mine(4096);
  std::vector<unsigned char> back(4096);
  for (std::size_t at = 0; at < 17; ++at) {
    for (const std::size_t bytes : {1u, 3u, 8u, 16u, 31u, 64u, 1000u}) {
      for (std::size_t i = 0; i < bytes; ++i) mine[3 + i] = static_cast<unsigned char>(i * 7 + at + 1);
      REQUIRE_SUCCESS(dmapp_put(block + at, pe.heap, pe.next(), mine.data() + 3, bytes, DMAPP_BYTE));
      REQUIRE_SUCCESS(dmapp_get(back.data() + 5, block + at, pe.heap, pe.next(), bytes, DMAPP_BYTE));
      ASSERT_EQ(std::memcmp(back.data() + 5, mine.data() + 3, bytes), 0) << at << " " << bytes;
    }
    // The type says how much, not how it is aligned.
    REQUIRE_SUCCESS(dmapp_put(block + at, pe.heap, pe.next(), mine.data() + 1, 4, DMAPP_DQW));
    REQUIRE_SUCCESS(dmapp_get(back.data(), block + at, pe.heap, pe.next(), 4, DMAPP_DQW));
    ASSERT_EQ(std::memcmp(back.data(), mine.data() + 1, 64), 0);
  }
  pe.unshare(block);
}

TEST(Dmapp, ReachesStaticVariables) {
  const Pe& pe = Pe::get();
  std::uint64_t word = pattern(pe.me, 7);
  REQUIRE_SUCCESS(dmapp_put(&g_static_word, pe.data, pe.next(), &word, 1, DMAPP_QW));
  for (int i = 0; i < 100; ++i) {
    word = pattern(pe.me, static_cast<std::size_t>(i));
    REQUIRE_SUCCESS(
        dmapp_put_nbi(&g_static_words[static_cast<std::size_t>(i)], pe.data, pe.next(), &word, 1, DMAPP_QW));
    REQUIRE_SUCCESS(dmapp_gsync_wait());
  }
  pe.barrier();
  EXPECT_EQ(g_static_word, pattern(pe.previous(), 7));
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(g_static_words[i], pattern(pe.previous(), i));
  REQUIRE_SUCCESS(dmapp_get(&word, &g_static_word, pe.data, pe.next(), 1, DMAPP_QW));
  EXPECT_EQ(word, pattern(pe.me, 7));
  pe.barrier();
}

TEST(Dmapp, DescriptorsTravelAsBytes) {
  const Pe& pe = Pe::get();
  std::vector<std::uint64_t> memory(3000);
  dmapp_seg_desc_t seg;
  dmapp_seg_desc_t again;
  REQUIRE_SUCCESS(dmapp_mem_register(memory.data() + 1, 2000 * 8, &seg));
  REQUIRE_SUCCESS(dmapp_mem_register(memory.data() + 1, 2000 * 8, &again));  // the same once more
  EXPECT_EQ(seg.addr, memory.data() + 1);
  EXPECT_EQ(seg.len, 2000u * 8);
  auto segs = pe.gather(seg);
  dmapp_seg_desc_t& remote = segs[static_cast<std::size_t>(pe.next())];
  auto* const words = static_cast<std::uint64_t*>(remote.addr);
  for (int i = 0; i < 40; ++i) {
    std::uint64_t word = pattern(pe.me, static_cast<std::size_t>(i));
    REQUIRE_SUCCESS(dmapp_put(words + i * 50, &remote, pe.next(), &word, 1, DMAPP_QW));
    std::uint64_t back = 0;
    REQUIRE_SUCCESS(dmapp_get(&back, words + i * 50, &remote, pe.next(), 1, DMAPP_QW));
    ASSERT_EQ(back, word);
  }
  pe.barrier();
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(memory[1 + i * 50], pattern(pe.previous(), i));
  REQUIRE_SUCCESS(dmapp_mem_unregister(&again));
  EXPECT_EQ(dmapp_mem_unregister(&again), DMAPP_RC_NOT_FOUND);
  REQUIRE_SUCCESS(dmapp_mem_unregister(&seg));
  pe.barrier();
  // A descriptor whose memory is not registered any more writes nothing.
  std::uint64_t word = 1;
  EXPECT_EQ(dmapp_put(words, &remote, pe.next(), &word, 1, DMAPP_QW), DMAPP_RC_TRANSACTION_ERROR);
  EXPECT_EQ(dmapp_put_nbi(words, &remote, pe.next(), &word, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
  EXPECT_EQ(dmapp_gsync_wait(), DMAPP_RC_TRANSACTION_ERROR);
  EXPECT_EQ(dmapp_gsync_wait(), DMAPP_RC_SUCCESS);
  dmapp_syncid_handle_t id;
  REQUIRE_SUCCESS(dmapp_put_nb(words, &remote, pe.next(), &word, 1, DMAPP_QW, &id));
  EXPECT_EQ(dmapp_syncid_wait(&id), DMAPP_RC_TRANSACTION_ERROR);
  pe.barrier();
}

// Whether dmapp_segdesc_compare says that both name the same memory.
bool are_same(dmapp_seg_desc_t a, dmapp_seg_desc_t b) {
  int flag = -1;
  EXPECT_EQ(dmapp_segdesc_compare(&a, &b, &flag), DMAPP_RC_SUCCESS);
  EXPECT_TRUE(flag == 0 || flag == 1) << flag;
  return flag == 1;
}

TEST(Dmapp, DescriptorsOfTheSameMemoryCompareEqual) {
  const Pe& pe = Pe::get();
  std::vector<std::uint64_t> memory(100);
  dmapp_seg_desc_t seg;
  dmapp_seg_desc_t again;
  dmapp_seg_desc_t shorter;
  dmapp_seg_desc_t later;
  REQUIRE_SUCCESS(dmapp_mem_register(memory.data(), 400, &seg));
  REQUIRE_SUCCESS(dmapp_mem_register(memory.data(), 400, &again));
  REQUIRE_SUCCESS(dmapp_mem_register(memory.data(), 392, &shorter));
  REQUIRE_SUCCESS(dmapp_mem_register(memory.data() + 1, 400, &later));
  EXPECT_TRUE(are_same(seg, seg));
  EXPECT_TRUE(are_same(seg, again));
  EXPECT_FALSE(are_same(seg, shorter));
  EXPECT_FALSE(are_same(seg, later));
  EXPECT_FALSE(are_same(pe.job.sheap_seg, pe.job.data_seg));
  // The heap is at the same address in every PE, and not the same memory.
  const auto heaps = pe.gather(pe.job.sheap_seg);
  for (int other = 0; other < pe.count; ++other)
    EXPECT_EQ(are_same(pe.job.sheap_seg, heaps[static_cast<std::size_t>(other)]), other == pe.me) << other;
  for (dmapp_seg_desc_t* one : {&seg, &again, &shorter, &later}) REQUIRE_SUCCESS(dmapp_mem_unregister(one));
  pe.barrier();
}

TEST(Dmapp, ReadOnlyMemoryCanBeReadAlone) {
  const Pe& pe = Pe::get();
  void* const page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  dmapp_seg_desc_t seg;
  REQUIRE_SUCCESS(dmapp_mem_register(page, 4096, &seg));
  auto segs = pe.gather(seg);
  dmapp_seg_desc_t& remote = segs[static_cast<std::size_t>(pe.next())];
  std::uint64_t word = 1;
  REQUIRE_SUCCESS(dmapp_get(&word, remote.addr, &remote, pe.next(), 1, DMAPP_QW));
  EXPECT_EQ(word, 0u);
  EXPECT_EQ(dmapp_put(remote.addr, &remote, pe.next(), &word, 1, DMAPP_QW), DMAPP_RC_PERMISSION_ERROR);
  pe.barrier();
  REQUIRE_SUCCESS(dmapp_mem_unregister(&seg));
  munmap(page, 4096);
}

TEST(Dmapp, FlagsComeBehindTheirData) {
  const Pe& pe = Pe::get();
  auto* const block = pe.shared<std::uint64_t>(512);
  std::vector<std::uint64_t> mine(500);
  for (std::uint64_t round = 1; round <= 50; ++round) {
    std::fill(mine.begin(), mine.end(), round);
    dmapp_syncid_handle_t id;
    switch (round % 3) {
      case 0:
        REQUIRE_SUCCESS(
            dmapp_put_flag(block, pe.heap, pe.next(), mine.data(), 500, DMAPP_QW, block + 511, round));
        break;
      case 1:
        REQUIRE_SUCCESS(dmapp_put_flag_nb(block, pe.heap, pe.next(), mine.data(), 500, DMAPP_QW, block + 511,
                                          round, &id));
        REQUIRE_SUCCESS(dmapp_syncid_wait(&id));
        break;
      default:
        REQUIRE_SUCCESS(
            dmapp_put_flag_nbi(block, pe.heap, pe.next(), mine.data(), 500, DMAPP_QW, block + 511, round));
        REQUIRE_SUCCESS(dmapp_gsync_wait());
    }
    while (reinterpret_cast<std::atomic<std::uint64_t>*>(block + 511)->load(std::memory_order_acquire) !=
           round)
      sched_yield();
    for (std::size_t i = 0; i < 500; ++i) ASSERT_EQ(block[i], round);
    pe.barrier();
  }
  pe.unshare(block);
}

TEST(Dmapp, StridesAndIndices) {
  const Pe& pe = Pe::get();
  auto* const block = pe.shared<std::uint64_t>(1000);
  std::vector<std::uint64_t> mine(1000);
  std::iota(mine.begin(), mine.end(), pattern(pe.me, 0));
  // A column of a 10 x 10 matrix to a row's place, and negative strides.
  REQUIRE_SUCCESS(dmapp_iput(block, pe.heap, pe.next(), mine.data(), 10, 1, 10, DMAPP_QW));
  REQUIRE_SUCCESS(dmapp_iput_nbi(block + 599, pe.heap, pe.next(), mine.data() + 20, -1, 2, 10, DMAPP_QW));
  std::ptrdiff_t index[] = {700, 702, 703, 704, 790};
  dmapp_syncid_handle_t id;
  REQUIRE_SUCCESS(dmapp_ixput_nb(block, pe.heap, pe.next(), mine.data() + 50, index, 5, DMAPP_QW, &id));
  REQUIRE_SUCCESS(dmapp_syncid_wait(&id));
  REQUIRE_SUCCESS(dmapp_gsync_wait());
  pe.barrier();
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(block[i * 10], pattern(pe.previous(), i));
    EXPECT_EQ(block[599 - i], pattern(pe.previous(), 20 + 2 * i));
  }
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(block[static_cast<std::size_t>(index[i])], pattern(pe.previous(), 50 + i));
  std::vector<std::uint64_t> back(1000);
  REQUIRE_SUCCESS(dmapp_iget(back.data(), block, pe.heap, pe.next(), 3, 10, 10, DMAPP_QW));
  REQUIRE_SUCCESS(dmapp_ixget(back.data() + 100, block, pe.heap, pe.next(), index, 5, DMAPP_QW));
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(back[i * 3], pattern(pe.me, i));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(back[100 + i], pattern(pe.me, 50 + i));
  // Past the end nothing moves.
  EXPECT_EQ(dmapp_iput(block, pe.heap, pe.next(), mine.data(), 1 << 24, 1, 10, DMAPP_QW), DMAPP_RC_NOT_FOUND);
  index[4] = 1 << 30;
  EXPECT_EQ(dmapp_ixput(block, pe.heap, pe.next(), mine.data(), index, 5, DMAPP_QW), DMAPP_RC_NOT_FOUND);
  pe.barrier();
  EXPECT_EQ(block[700], pattern(pe.previous(), 50));
  pe.unshare(block);
}

TEST(Dmapp, ListsOfPes) {
  const Pe& pe = Pe::get();
  auto* const block = pe.shared<std::uint64_t>(256);
  std::vector<dmapp_pe_t> all(static_cast<std::size_t>(pe.count));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::uint64_t> mine(4 * all.size());
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = pattern(pe.me, i);
  const auto n = static_cast<std::uint32_t>(pe.count);
  REQUIRE_SUCCESS(dmapp_put_ixpe(block + 4 * pe.me, pe.heap, all.data(), n, mine.data(), 4, DMAPP_QW));
  REQUIRE_SUCCESS(
      dmapp_scatter_ixpe_nbi(block + 128 + 4 * pe.me, pe.heap, all.data(), n, mine.data(), 4, DMAPP_QW));
  REQUIRE_SUCCESS(dmapp_gsync_wait());
  pe.barrier();
  for (int from = 0; from < pe.count; ++from) {
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(block[4 * from + i], pattern(from, static_cast<std::size_t>(i)));
      EXPECT_EQ(block[128 + 4 * from + i], pattern(from, static_cast<std::size_t>(4 * pe.me + i)));
    }
  }
  std::vector<std::uint64_t> back(4 * all.size());
  dmapp_syncid_handle_t id;
  REQUIRE_SUCCESS(
      dmapp_gather_ixpe_nb(back.data(), block + 128 + 4 * pe.me, pe.heap, all.data(), n, 4, DMAPP_QW, &id));
  REQUIRE_SUCCESS(dmapp_syncid_wait(&id));
  EXPECT_EQ(back, mine);
  pe.unshare(block);
}

TEST(Dmapp, ManyOutstandingAreNeverRefused) {
  const Pe& pe = Pe::get();
  constexpr std::size_t kCount = 20'000;
  auto* const block = pe.shared<std::uint64_t>(kCount);
  std::vector<std::uint64_t> mine(kCount);
  std::vector<std::uint64_t> back(kCount);
  std::vector<dmapp_syncid_handle_t> ids(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    mine[i] = pattern(pe.me, i);
    REQUIRE_SUCCESS(dmapp_put_nbi(block + i, pe.heap, pe.next(), &mine[i], 1, DMAPP_QW));
  }
  REQUIRE_SUCCESS(dmapp_gsync_wait());
  for (std::size_t i = 0; i < kCount; ++i)
    REQUIRE_SUCCESS(dmapp_get_nb(&back[i], block + i, pe.heap, pe.next(), 1, DMAPP_QW, &ids[i]));
  for (std::size_t i = kCount; i-- > 0;) REQUIRE_SUCCESS(dmapp_syncid_wait(&ids[i]));
  EXPECT_EQ(back, mine);
  pe.unshare(block);
}

TEST(Dmapp, LargeTransfersOfEveryMode) {
  const Pe& pe = Pe::get();
  constexpr std::size_t kWords = 3 << 18;  // 6 MiB
  auto* const block = pe.shared<std::uint64_t>(kWords);
  std::vector<std::uint64_t> mine(kWords);
  for (std::size_t i = 0; i < kWords; ++i) mine[i] = pattern(pe.me, i);
  std::vector<std::uint64_t> back(kWords);
  REQUIRE_SUCCESS(dmapp_put_nbi(block, pe.heap, pe.next(), mine.data(), kWords, DMAPP_QW));
  REQUIRE_SUCCESS(dmapp_gsync_wait());
  REQUIRE_SUCCESS(dmapp_get(back.data(), block, pe.heap, pe.next(), kWords, DMAPP_QW));
  EXPECT_EQ(back, mine);
  dmapp_syncid_handle_t id;
  std::fill(back.begin(), back.end(), 0);
  REQUIRE_SUCCESS(dmapp_get_nb(back.data(), block, pe.heap, pe.next(), kWords, DMAPP_QW, &id));
  REQUIRE_SUCCESS(dmapp_syncid_wait(&id));
  EXPECT_EQ(back, mine);
  pe.unshare(block);
}

TEST(Dmapp, AttributesAreEchoedAndClamped) {
  Pe::get();
  dmapp_rma_attrs_t before;
  REQUIRE_SUCCESS(dmapp_get_rma_attrs(&before));
  dmapp_rma_attrs_t a = before;
  a.offload_threshold = 2048;
  a.put_relaxed_ordering = DMAPP_ROUTING_IN_ORDER;
  a.get_relaxed_ordering = 77;
  REQUIRE_SUCCESS(dmapp_set_rma_attrs(&a, &a));
  EXPECT_EQ(a.offload_threshold, 2048u);
  EXPECT_EQ(a.put_relaxed_ordering, static_cast<unsigned>(DMAPP_ROUTING_IN_ORDER));
  EXPECT_EQ(a.get_relaxed_ordering, static_cast<unsigned>(DMAPP_ROUTING_ADAPTIVE));
  EXPECT_EQ(a.max_outstanding_nb, before.max_outstanding_nb);
  REQUIRE_SUCCESS(dmapp_set_rma_attrs(&before, &a));
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  dmapp_finalize();
  return failed;
}
