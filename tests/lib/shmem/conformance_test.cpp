// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/shmem/client.hpp"

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

// Puts, gets, AMOs, waits, locks, contexts, by every way that memory is reached.
namespace {

using client::Pe;
using client::Shared;

long g_static_long = 7;
long g_static_longs[100];
long g_lock;

template <typename T>
T value_of(int pe, std::size_t i) {
  return static_cast<T>(pe * 16 + static_cast<int>(i % 100));
}

template <typename T>
void move_all(const Pe& pe) {
  constexpr std::size_t kCount = 1500;
  const Shared<T> block(kCount);
  std::vector<T> mine(kCount);
  std::vector<T> back(kCount);
  for (std::size_t i = 0; i < kCount; ++i) mine[i] = value_of<T>(pe.me, i);
  shmem_put(block.get(), mine.data(), kCount, pe.next());
  shmem_barrier_all();
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(block[i], value_of<T>(pe.previous(), i));
  shmem_get(back.data(), block.get(), kCount, pe.next());
  EXPECT_EQ(back, mine);
  shmem_barrier_all();

  std::fill(back.begin(), back.end(), T{});
  for (std::size_t i = 0; i < kCount; ++i) mine[i] = value_of<T>(pe.me + 1, i);
  shmem_put_nbi(block.get(), mine.data(), kCount, pe.next());
  shmem_quiet();
  shmem_get_nbi(back.data(), block.get(), kCount, pe.next());
  shmem_quiet();
  EXPECT_EQ(back, mine);
  shmem_barrier_all();

  // Every third element from every second.
  shmem_iput(block.get(), mine.data(), 3, 2, 400, pe.next());
  shmem_quiet();
  shmem_iget(back.data(), block.get(), 2, 3, 400, pe.next());
  for (std::size_t i = 0; i < 400; ++i) ASSERT_EQ(back[2 * i], mine[2 * i]);
  shmem_p(&block[5], value_of<T>(pe.me, 77), pe.next());
  EXPECT_EQ(shmem_g(&block[5], pe.next()), value_of<T>(pe.me, 77));
  shmem_put(block.get(), mine.data(), 0, pe.next());
}

TEST(Shmem, MovesEveryType) {
  const Pe& pe = Pe::get();
#define MOVE(T, N, A) move_all<T>(pe);
  SHMEM_RMA_BASIC_(MOVE, 0)
#undef MOVE
}

TEST(Shmem, MovesEveryWidthAtAnyAlignment) {
  const Pe& pe = Pe::get();
  const Shared<unsigned char> block(8192);
  std::vector<unsigned char> mine(4096);
  std::vector<unsigned char> back(4096);
  std::iota(mine.begin(), mine.end(), static_cast<unsigned char>(pe.me));
  for (std::size_t at = 0; at < 9; ++at) {
#define MOVE(B, A)                                                                          \
  shmem_put##B(block.get() + at, mine.data(), 100, pe.next());                              \
  shmem_get##B(back.data(), block.get() + at, 100, pe.next());                              \
  ASSERT_EQ(std::memcmp(back.data(), mine.data(), 100 * (B) / 8), 0) << #B << " at " << at; \
  shmem_iput##B(block.get() + at, mine.data(), 2, 1, 100, pe.next());                       \
  shmem_iget##B(back.data(), block.get() + at, 1, 2, 100, pe.next());                       \
  ASSERT_EQ(std::memcmp(back.data(), mine.data(), 100 * (B) / 8), 0) << #B << " at " << at;
    SHMEM_WIDTHS_(MOVE, 0)
#undef MOVE
  }
}

TEST(Shmem, ReachesStaticVariables) {
  const Pe& pe = Pe::get();
  EXPECT_EQ(shmem_addr_accessible(&g_static_long, pe.next()), 1);
  int local = 0;
  EXPECT_EQ(shmem_addr_accessible(&local, pe.next()), 0);
  shmem_barrier_all();
  shmem_p(&g_static_long, 100L + pe.me, pe.next());
  std::vector<long> mine(100, pe.me);
  shmem_put(g_static_longs, mine.data(), 100, pe.next());
  shmem_barrier_all();
  EXPECT_EQ(g_static_long, 100 + pe.previous());
  for (const long one : g_static_longs) EXPECT_EQ(one, pe.previous());
  shmem_barrier_all();
}

template <typename T>
void count_up(const Pe& pe) {
  const Shared<T> word(4);
  for (int i = 0; i < 50; ++i) shmem_atomic_add(&word[0], T{2}, 0);
  for (int i = 0; i < 50; ++i) shmem_atomic_inc(&word[1], 0);
  T last = shmem_atomic_fetch_add(&word[2], T{1}, 0);
  for (int i = 0; i < 20; ++i) {
    const T now = shmem_atomic_fetch_inc(&word[2], 0);
    EXPECT_GT(now, last);
    last = now;
  }
  // By compare and swap, one after the other.
  while (shmem_atomic_compare_swap(&word[3], static_cast<T>(pe.me), static_cast<T>(pe.me + 1), 0) !=
         static_cast<T>(pe.me)) {
  }
  shmem_barrier_all();
  EXPECT_EQ(shmem_atomic_fetch(&word[0], 0), static_cast<T>(100 * pe.count));
  EXPECT_EQ(shmem_atomic_fetch(&word[1], 0), static_cast<T>(50 * pe.count));
  EXPECT_EQ(shmem_atomic_fetch(&word[2], 0), static_cast<T>(21 * pe.count));
  EXPECT_EQ(shmem_atomic_fetch(&word[3], 0), static_cast<T>(pe.count));
  shmem_barrier_all();
  EXPECT_EQ(shmem_atomic_swap(&word[0], static_cast<T>(pe.me + 5), pe.me),
            static_cast<T>(pe.me == 0 ? 100 * pe.count : 0));
  shmem_atomic_set(&word[1], static_cast<T>(pe.me + 9), pe.next());
  T fetched[2] = {};
  shmem_atomic_fetch_nbi(&fetched[0], &word[0], pe.me);
  shmem_quiet();
  shmem_atomic_fetch_add_nbi(&fetched[1], &word[0], T{1}, pe.me);
  shmem_quiet();
  EXPECT_EQ(fetched[0], static_cast<T>(pe.me + 5));
  EXPECT_EQ(fetched[1], static_cast<T>(pe.me + 5));
  shmem_barrier_all();
  EXPECT_EQ(word[1], static_cast<T>(pe.previous() + 9));
}

TEST(Shmem, AtomicsOfEveryType) {
  const Pe& pe = Pe::get();
#define COUNT(T, N, A) count_up<T>(pe);
  SHMEM_AMO_BASIC_(COUNT, 0)
#undef COUNT
  const Shared<double> d(1);
  shmem_atomic_set(&d[0], 1.5 * pe.me, pe.next());
  shmem_barrier_all();
  EXPECT_EQ(shmem_atomic_fetch(&d[0], pe.me), 1.5 * pe.previous());
  EXPECT_EQ(shmem_atomic_swap(&d[0], -1.0, pe.me), 1.5 * pe.previous());
  EXPECT_EQ(d[0], -1.0);
  const Shared<std::uint32_t> bits(2);
  shmem_uint32_atomic_or(&bits[0], 1u << pe.me, 0);
  EXPECT_EQ(shmem_uint32_atomic_fetch_xor(&bits[1], 0xf0u, pe.me), 0u);
  EXPECT_EQ(shmem_uint32_atomic_fetch_and(&bits[1], 0x30u, pe.me), 0xf0u);
  shmem_barrier_all();
  EXPECT_EQ(shmem_uint32_atomic_fetch(&bits[0], 0), (1u << pe.count) - 1);
  EXPECT_EQ(bits[1], 0x30u);
}

TEST(Shmem, WaitsForMemory) {
  const Pe& pe = Pe::get();
  const Shared<long> flags(8);
  std::vector<std::size_t> which(8);
  for (long turn = 1; turn <= 50; ++turn) {
    shmem_p(&flags[0], turn, pe.next());
    shmem_long_wait_until(flags.get(), SHMEM_CMP_GE, turn);
  }
  shmem_barrier_all();
  const int status[8] = {1, 0, 0, 0, 0, 0, 0, 1};
  for (std::size_t i = 1; i < 7; ++i) shmem_p(&flags[i], 5L, pe.next());
  shmem_long_wait_until_all(flags.get(), 8, status, SHMEM_CMP_EQ, 5);
  EXPECT_EQ(shmem_long_test_all(flags.get(), 8, status, SHMEM_CMP_EQ, 5), 1);
  EXPECT_EQ(shmem_long_test_any(flags.get(), 8, status, SHMEM_CMP_GT, 5), SIZE_MAX);
  EXPECT_EQ(shmem_long_wait_until_some(flags.get(), 8, which.data(), status, SHMEM_CMP_EQ, 5), 6u);
  const std::size_t any = shmem_long_wait_until_any(flags.get(), 8, status, SHMEM_CMP_EQ, 5);
  EXPECT_TRUE(any >= 1 && any <= 6);
  const long values[8] = {0, 5, 5, 5, 5, 5, 5, 0};
  shmem_long_wait_until_all_vector(flags.get(), 8, status, SHMEM_CMP_EQ, values);
  const int none[2] = {1, 1};
  EXPECT_EQ(shmem_long_wait_until_any(flags.get(), 2, none, SHMEM_CMP_EQ, 1), SIZE_MAX);
  shmem_barrier_all();
}

TEST(Shmem, SignalsComeBehindTheirData) {
  const Pe& pe = Pe::get();
  constexpr std::size_t kWords = 5000;
  const Shared<std::uint64_t> data(kWords);
  const Shared<std::uint64_t> signals(2);
  std::vector<std::uint64_t> mine(kWords);
  for (std::uint64_t turn = 1; turn <= 20; ++turn) {
    std::fill(mine.begin(), mine.end(), turn * 100 + static_cast<unsigned>(pe.me));
    shmem_uint64_put_signal(data.get(), mine.data(), kWords, &signals[0], turn, SHMEM_SIGNAL_SET, pe.next());
    EXPECT_EQ(shmem_signal_wait_until(&signals[0], SHMEM_CMP_EQ, turn), turn);
    EXPECT_EQ(data[0], turn * 100 + static_cast<unsigned>(pe.previous()));
    EXPECT_EQ(data[kWords - 1], turn * 100 + static_cast<unsigned>(pe.previous()));
    shmem_barrier_all();
    shmem_putmem_signal_nbi(data.get(), mine.data(), 16, &signals[1], 3, SHMEM_SIGNAL_ADD, pe.next());
    shmem_signal_wait_until(&signals[1], SHMEM_CMP_GE, 3 * turn);
    shmem_barrier_all();
  }
  EXPECT_EQ(shmem_signal_fetch(&signals[1]), 60u);
}

TEST(Shmem, LocksKeepOthersOut) {
  const Pe& pe = Pe::get();
  const Shared<long> counter(2);
  for (int i = 0; i < 30; ++i) {
    long* const lock = i % 2 == 0 ? &g_lock : &counter[1];
    shmem_set_lock(lock);
    const long now = shmem_g(&counter[0], 0);
    shmem_p(&counter[0], now + 1, 0);
    shmem_clear_lock(lock);
    shmem_barrier_all();  // the two locks guard the same word, in turns
  }
  EXPECT_EQ(shmem_g(&counter[0], 0), 30L * pe.count);
  shmem_barrier_all();
  const int taken = pe.me == 0 ? shmem_test_lock(&g_lock) : 0;
  EXPECT_EQ(taken, 0);
  shmem_barrier_all();
  const int refused = pe.me != 0 ? shmem_test_lock(&g_lock) : 1;
  EXPECT_EQ(refused, 1);
  shmem_barrier_all();
  if (pe.me == 0) shmem_clear_lock(&g_lock);
  shmem_barrier_all();
}

bool is_set_to(const char* name, const char* value) {
  const char* const now = std::getenv(name);
  return now != nullptr && std::strcmp(now, value) == 0;
}

TEST(Shmem, PointersToOtherHeapsAreTheSameMemory) {
  const Pe& pe = Pe::get();
  const Shared<long> words(4);
  long* const theirs = static_cast<long*>(shmem_ptr(words.get(), pe.next()));
  const bool is_here = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe.next(), SHMEM_TEAM_SHARED) >= 0;
  const bool is_mapped = is_here && !is_set_to("ORRERY_ADOPT", "never") && !is_set_to("ORRERY_WIRE", "ofi");
  EXPECT_EQ(theirs != nullptr, is_mapped);
  EXPECT_EQ(shmem_ptr(words.get(), pe.me), words.get());
  EXPECT_EQ(shmem_ptr(&g_static_long, pe.me), &g_static_long);
  EXPECT_EQ(shmem_ptr(&g_static_long, pe.next()), nullptr);
  EXPECT_EQ(shmem_ptr(&is_here, pe.next()), nullptr);
  EXPECT_EQ(shmem_ptr(words.get(), pe.count), nullptr);
  // Two PEs of one host reach each other's heaps, or neither does.
  const bool is_reached = shmem_ptr(words.get(), pe.previous()) != nullptr;
  if (theirs != nullptr) {
    // A store is seen by its owner's wait, by a get, by an atomic operation.
    __atomic_store_n(&theirs[0], 5L + pe.me, __ATOMIC_RELEASE);
    EXPECT_EQ(shmem_g(&words[0], pe.next()), 5L + pe.me);
    EXPECT_EQ(shmem_atomic_fetch_add(&words[0], 1L, pe.next()), 5L + pe.me);
    if (is_reached) shmem_long_wait_until(&words[0], SHMEM_CMP_EQ, 6L + pe.previous());
    // A put is seen by a load.
    shmem_p(&words[1], 70L + pe.me, pe.next());
    EXPECT_EQ(__atomic_load_n(&theirs[1], __ATOMIC_ACQUIRE), 70L + pe.me);
    // Atomic instructions of the processor and of the NIC go together.
    for (int i = 0; i < 1000; ++i) {
      __atomic_fetch_add(&theirs[2], 1L, __ATOMIC_RELAXED);
      shmem_atomic_inc(&words[2], pe.next());
      shmem_atomic_inc(&words[2], pe.me);
    }
  }
  shmem_barrier_all();
  // A PE whose successor's heap is mapped added 2,000 to the successor's word and 1,000 to its own.
  EXPECT_EQ(words[2], (theirs != nullptr ? 1000L : 0L) + (is_reached ? 2000L : 0L));
  shmem_barrier_all();
}

TEST(Shmem, ContextsOfThreads) {
  const Pe& pe = Pe::get();
  constexpr std::size_t kThreads = 3;
  constexpr std::size_t kEach = 200;
  const Shared<long> block(kThreads * kEach);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      shmem_ctx_t ctx = SHMEM_CTX_INVALID;
      ASSERT_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx), 0);
      std::vector<long> mine(kEach);
      for (std::size_t i = 0; i < kEach; ++i) mine[i] = static_cast<long>(t * 1000 + i) + pe.me * 10000;
      for (std::size_t i = 0; i < kEach; i += 20)
        shmem_put_nbi(ctx, &block[t * kEach + i], &mine[i], 20, pe.next());
      shmem_ctx_quiet(ctx);
      std::vector<long> back(kEach);
      shmem_get(ctx, back.data(), &block[t * kEach], kEach, pe.next());
      EXPECT_EQ(back, mine);
      shmem_ctx_destroy(ctx);
    });
  }
  for (auto& thread : threads) thread.join();
  shmem_barrier_all();
  EXPECT_EQ(block[kEach + 7], 1007 + pe.previous() * 10000);
}

// In a heap of 64M.
TEST(Shmem, BlocksAreCutAndGrownWhereTheyAre) {
  const Pe& pe = Pe::get();
  constexpr std::size_t kMega = std::size_t{1} << 20;
  auto* const a = static_cast<char*>(shmem_malloc(40 * kMega));
  ASSERT_NE(a, nullptr);
  a[0] = static_cast<char>(pe.me + 1);
  a[30 * kMega - 1] = static_cast<char>(pe.me + 2);
  ASSERT_EQ(shmem_realloc(a, 30 * kMega), a);
  auto* const b = static_cast<char*>(shmem_malloc(20 * kMega));  // where the end was, too
  ASSERT_NE(b, nullptr);
  std::memset(b, 77, 20 * kMega);
  EXPECT_EQ(a[30 * kMega - 1], pe.me + 2);
  shmem_free(b);
  ASSERT_EQ(shmem_realloc(a, 50 * kMega), a);
  a[50 * kMega - 1] = static_cast<char>(pe.me + 3);
  shmem_barrier_all();
  EXPECT_EQ(shmem_char_g(a, pe.next()), pe.next() + 1);
  EXPECT_EQ(shmem_char_g(a + 30 * kMega - 1, pe.next()), pe.next() + 2);
  EXPECT_EQ(shmem_char_g(a + 50 * kMega - 1, pe.next()), pe.next() + 3);
  EXPECT_EQ(shmem_realloc(a, 500 * kMega), nullptr);
  EXPECT_EQ(a[50 * kMega - 1], pe.me + 3);
  shmem_free(a);
  // One with an alignment of its own keeps it while it stays.
  auto* const c = static_cast<char*>(shmem_align(4096, 9000));
  auto* const wall = shmem_malloc(64);
  std::memset(c, pe.me + 5, 9000);
  ASSERT_EQ(shmem_realloc(c, 100), c);
  ASSERT_EQ(shmem_realloc(c, 8000), c);
  EXPECT_EQ(c[99], pe.me + 5);
  auto* const d = static_cast<char*>(shmem_realloc(c, 100'000));
  ASSERT_NE(d, nullptr);
  EXPECT_NE(d, c);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(d[i], pe.me + 5);
  std::memset(d, 1, 100'000);
  shmem_free(d);
  shmem_free(wall);
}

TEST(Shmem, MemoryOfTheHeap) {
  const Pe& pe = Pe::get();
  auto* const a = static_cast<char*>(shmem_malloc(1000));
  auto* const b = static_cast<char*>(shmem_align(4096, 100));
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % 4096, 0u);
  std::memset(a, pe.me + 1, 1000);
  std::memset(b, pe.me + 1, 100);
  auto* const c = static_cast<char*>(shmem_realloc(a, 5000));
  auto* const d = static_cast<char*>(shmem_realloc(b, 50));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(c[i], pe.me + 1);
  EXPECT_EQ(shmem_char_g(c + 999, pe.next()), pe.next() + 1);
  EXPECT_EQ(d[49], pe.me + 1);
  EXPECT_EQ(shmem_malloc(0), nullptr);
  EXPECT_EQ(shmem_align(3, 10), nullptr);
  EXPECT_EQ(shmem_malloc(std::size_t{1} << 50), nullptr);
  shmem_free(nullptr);
  shmem_free(c);
  shmem_free(d);
  void* const e = shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
  EXPECT_NE(e, nullptr);
  shmem_free(e);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  Pe::get();
  const int failed = RUN_ALL_TESTS();
  shmem_barrier_all();
  shmem_finalize();
  return failed;
}
