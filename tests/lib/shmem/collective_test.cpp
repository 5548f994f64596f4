// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/shmem/client.hpp"

#include <complex>
#include <cstring>
#include <vector>

// Teams, collectives over teams and active sets, reductions.
namespace {

using client::Pe;
using client::Shared;

long g_sync[2][SHMEM_SYNC_SIZE];

template <typename T>
T mark(int pe, std::size_t i) {
  return static_cast<T>(pe * 7 + static_cast<int>(i % 50) + 1);
}

// Every collective of a team, with each member as root, twice in a row without a barrier between.
void collectives_of(shmem_team_t team, std::size_t count) {
  const int me = shmem_team_my_pe(team);
  const int size = shmem_team_n_pes(team);
  // Those that are no members allocate as much.
  const auto members = static_cast<std::size_t>(size < 0 ? 0 : size);
  const auto room = static_cast<std::size_t>(Pe::get().count);
  auto* const source = static_cast<int*>(shmem_malloc(room * count * 2 * sizeof(int)));
  auto* const dest = static_cast<int*>(shmem_calloc(room * count * 2, sizeof(int)));
  ASSERT_NE(source, nullptr);
  ASSERT_NE(dest, nullptr);
  if (me >= 0) {
    for (int root = 0; root < size; ++root) {
      for (std::size_t i = 0; i < count; ++i) source[i] = mark<int>(me + root, i);
      EXPECT_EQ(shmem_broadcast(team, dest, source, count, root), 0);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(dest[i], mark<int>(2 * root, i)) << root;
      shmem_team_sync(team);
    }
    for (std::size_t i = 0; i < count; ++i) source[i] = mark<int>(me, i);
    EXPECT_EQ(shmem_fcollect(team, dest, source, count), 0);
    for (std::size_t pe = 0; pe < members; ++pe)
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(dest[pe * count + i], mark<int>(static_cast<int>(pe), i));
    shmem_team_sync(team);
    // Each gives as many as its number, the first none.
    for (int again = 0; again < 2; ++again) {
      const auto mine = static_cast<std::size_t>(me) % (count + 1);
      EXPECT_EQ(shmem_collect(team, dest, source, mine), 0);
      std::size_t at = 0;
      for (std::size_t pe = 0; pe < members; ++pe)
        for (std::size_t i = 0; i < pe % (count + 1); ++i)
          ASSERT_EQ(dest[at++], mark<int>(static_cast<int>(pe), i));
      shmem_team_sync(team);
    }
    for (std::size_t pe = 0; pe < members; ++pe)
      for (std::size_t i = 0; i < count; ++i)
        source[pe * count + i] = me * 1000 + static_cast<int>(pe * 10 + i % 10);
    EXPECT_EQ(shmem_alltoall(team, dest, source, count), 0);
    for (std::size_t pe = 0; pe < members; ++pe)
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(dest[pe * count + i], static_cast<int>(pe) * 1000 + me * 10 + static_cast<int>(i % 10));
    shmem_team_sync(team);
    EXPECT_EQ(shmem_alltoalls(team, dest, source, 2, 1, count), 0);
    for (std::size_t pe = 0; pe < members; ++pe)
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(dest[2 * (pe * count + i)],
                  static_cast<int>(pe) * 1000 + me * 10 + static_cast<int>(i % 10));
    shmem_team_sync(team);
  }
  shmem_barrier_all();
  shmem_free(dest);
  shmem_free(source);
}

TEST(ShmemCollectives, OfTheWorld) {
  collectives_of(SHMEM_TEAM_WORLD, 1);
  collectives_of(SHMEM_TEAM_WORLD, 5);
  collectives_of(SHMEM_TEAM_WORLD, 3000);
}

TEST(ShmemCollectives, OfTeams) {
  const Pe& pe = Pe::get();
  for (int turn = 0; turn < 3; ++turn) {  // places are used again
    shmem_team_t even = SHMEM_TEAM_INVALID;
    const shmem_team_config_t config{3};
    ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (pe.count + 1) / 2, &config,
                                       SHMEM_TEAM_NUM_CONTEXTS, &even),
              0);
    ASSERT_EQ(even != SHMEM_TEAM_INVALID, pe.me % 2 == 0);
    collectives_of(even, 10);
    if (even != SHMEM_TEAM_INVALID) {
      EXPECT_EQ(shmem_team_my_pe(even), pe.me / 2);
      EXPECT_EQ(shmem_team_translate_pe(even, 1, SHMEM_TEAM_WORLD), pe.count > 2 ? 2 : -1);
      shmem_team_config_t now{};
      EXPECT_EQ(shmem_team_get_config(even, SHMEM_TEAM_NUM_CONTEXTS, &now), 0);
      EXPECT_EQ(now.num_contexts, 3);
      shmem_team_destroy(even);
    }
    shmem_barrier_all();
  }
  // Backwards.
  shmem_team_t back = SHMEM_TEAM_INVALID;
  ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, pe.count - 1, -1, pe.count, nullptr, 0, &back), 0);
  EXPECT_EQ(shmem_team_my_pe(back), pe.count - 1 - pe.me);
  collectives_of(back, 4);
  shmem_team_destroy(back);
}

TEST(ShmemCollectives, OfGrids) {
  const Pe& pe = Pe::get();
  shmem_team_t x = SHMEM_TEAM_INVALID;
  shmem_team_t y = SHMEM_TEAM_INVALID;
  ASSERT_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, nullptr, 0, &x, nullptr, 0, &y), 0);
  EXPECT_EQ(shmem_team_my_pe(x), pe.me % 2);
  EXPECT_EQ(shmem_team_my_pe(y), pe.me / 2);
  const Shared<long> word(2);
  word[0] = pe.me;
  shmem_barrier_all();
  ASSERT_EQ(shmem_long_sum_reduce(x, &word[1], &word[0], 1), 0);
  const int first = pe.me / 2 * 2;
  EXPECT_EQ(word[1], first + (first + 1 < pe.count ? first + 1 : 0));
  shmem_ctx_t ctx = SHMEM_CTX_INVALID;
  ASSERT_EQ(shmem_team_create_ctx(y, 0, &ctx), 0);
  shmem_team_t of = SHMEM_TEAM_INVALID;
  EXPECT_EQ(shmem_ctx_get_team(ctx, &of), 0);
  EXPECT_EQ(of, y);
  // PE 0 of a column is one of the first row.
  EXPECT_EQ(shmem_g(ctx, &word[0], 0), pe.me % 2);
  shmem_ctx_destroy(ctx);
  shmem_barrier_all();
  shmem_team_destroy(x);
  shmem_team_destroy(y);
}

template <typename T>
void reduce_all(std::size_t count) {
  const Pe& pe = Pe::get();
  const Shared<T> source(count);
  const Shared<T> dest(count);
  for (std::size_t i = 0; i < count; ++i) source[i] = static_cast<T>((pe.me + 1) * (1 + i % 3));
  shmem_barrier_all();
  shmem_sum_reduce(SHMEM_TEAM_WORLD, dest.get(), source.get(), count);
  int sum = 0;
  int product = 1;
  for (int i = 1; i <= pe.count; ++i) {
    sum += i;
    product *= i;
  }
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(dest[i], static_cast<T>(sum * static_cast<int>(1 + i % 3)));
  shmem_max_reduce(SHMEM_TEAM_WORLD, dest.get(), source.get(), count);
  ASSERT_EQ(dest[0], static_cast<T>(pe.count));
  shmem_min_reduce(SHMEM_TEAM_WORLD, dest.get(), source.get(), count);
  ASSERT_EQ(dest[0], static_cast<T>(1));
  shmem_team_sync(SHMEM_TEAM_WORLD);
  // In place.
  shmem_prod_reduce(SHMEM_TEAM_WORLD, source.get(), source.get(), count);
  ASSERT_EQ(source[0], static_cast<T>(product));
  shmem_barrier_all();
}

TEST(ShmemCollectives, ReduceEveryType) {
#define REDUCE(T, N, A) reduce_all<T>(3);
  SHMEM_RMA_BASIC_(REDUCE, 0)
#undef REDUCE
  reduce_all<double>(20000);
  reduce_all<long>(0 + 1);
}

TEST(ShmemCollectives, ReduceBitsAndComplexNumbers) {
  const Pe& pe = Pe::get();
  const Shared<unsigned> bits(4);
  bits[0] = 1u << pe.me;
  shmem_barrier_all();
  shmem_or_reduce(SHMEM_TEAM_WORLD, &bits[1], &bits[0], 1);
  shmem_xor_reduce(SHMEM_TEAM_WORLD, &bits[2], &bits[0], 1);
  shmem_and_reduce(SHMEM_TEAM_WORLD, &bits[3], &bits[0], 1);
  EXPECT_EQ(bits[1], (1u << pe.count) - 1);
  EXPECT_EQ(bits[2], (1u << pe.count) - 1);
  EXPECT_EQ(bits[3], pe.count == 1 ? 1u : 0u);
  const Shared<std::complex<double>> z(2);
  z[0] = {1.0 + pe.me, 1.0};
  shmem_barrier_all();
  shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, reinterpret_cast<SHMEM_COMPLEXD_*>(&z[1]),
                            reinterpret_cast<SHMEM_COMPLEXD_*>(&z[0]), 1);
  EXPECT_EQ(z[1], std::complex<double>(pe.count * (pe.count + 1) / 2.0, pe.count));
  shmem_barrier_all();
}

TEST(ShmemCollectives, OfActiveSets) {
  const Pe& pe = Pe::get();
  const Shared<long> data(64);
  const Shared<long> mine(4);
  // All PEs, then all but the first; the sync arrays in turns.
  for (int start = 0; start < (pe.count > 1 ? 2 : 1); ++start) {
    const int size = pe.count - start;
    shmem_barrier_all();
    if (pe.me < start) continue;
    for (int turn = 0; turn < 4; ++turn) {
      long* const sync = g_sync[turn & 1];
      const int root = turn % size;
      data[0] = -1;
      mine[0] = 100 * turn + pe.me;
      shmem_barrier(start, 0, size, g_sync[0]);
      shmem_broadcast64(data.get(), mine.get(), 1, root, start, 0, size, sync);
      EXPECT_EQ(data[0], pe.me == start + root ? -1 : 100 * turn + start + root);
      shmem_barrier(start, 0, size, g_sync[0]);
      shmem_fcollect64(data.get(), mine.get(), 1, start, 0, size, sync);
      for (int i = 0; i < size; ++i) EXPECT_EQ(data[static_cast<std::size_t>(i)], 100 * turn + start + i);
      shmem_barrier(start, 0, size, g_sync[0]);
      shmem_long_sum_to_all(data.get(), mine.get(), 1, start, 0, size, nullptr, sync);
      EXPECT_EQ(data[0], 100L * turn * size + (pe.count * (pe.count - 1)) / 2);
      shmem_sync(start, 0, size, g_sync[0]);
    }
    for (const long word : g_sync[0]) EXPECT_EQ(word, SHMEM_SYNC_VALUE);
  }
  shmem_barrier_all();
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
