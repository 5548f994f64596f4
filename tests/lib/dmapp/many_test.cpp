// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/dmapp/client.hpp"

#include <vector>

// Many more PEs than cores: start, heap, a ring of puts, the barrier, a reduction, the end.
namespace {

using client::Pe;

constexpr int kRounds = 3;

dmapp_c_pset_handle_t set_of_all(const Pe& pe) {
  dmapp_c_pset_desc_t all{};
  all.type = DMAPP_C_PSET_DELIMITER_STRIDED;
  all.u.stride_type = {.n_pes = pe.count, .base_pe = 0, .stride_pe = 1};
  dmapp_c_pset_handle_t set = 0;
  REQUIRE_SUCCESS(dmapp_c_pset_create(&all, 64, 0, nullptr, &set));
  pe.barrier();
  REQUIRE_SUCCESS(dmapp_c_pset_export(set));
  return set;
}

void barrier(dmapp_c_pset_handle_t set) {
  REQUIRE_SUCCESS(dmapp_c_barrier_join(set));
  REQUIRE_SUCCESS(dmapp_c_pset_wait(set));
}

TEST(DmappMany, TheHeapIsAtOneAddressInEveryPe) {
  const Pe& pe = Pe::get();
  auto* const block = pe.shared<std::int64_t>(4);
  const std::vector<std::int64_t*> blocks = pe.gather(block);
  for (const std::int64_t* other : blocks) EXPECT_EQ(other, block);
  pe.unshare(block);
}

TEST(DmappMany, APutReachesTheNextPeBeforeTheBarrierEnds) {
  const Pe& pe = Pe::get();
  const dmapp_c_pset_handle_t set = set_of_all(pe);
  auto* const word = pe.shared<std::int64_t>(kRounds);
  for (int round = 0; round < kRounds; ++round) {
    std::int64_t value = pe.me * 10 + round;
    REQUIRE_SUCCESS(dmapp_put_nbi(word + round, pe.heap, pe.next(), &value, 1, DMAPP_QW));
    REQUIRE_SUCCESS(dmapp_gsync_wait());
    barrier(set);
    EXPECT_EQ(word[round], pe.previous() * 10 + round);
  }
  pe.unshare(word);
  REQUIRE_SUCCESS(dmapp_c_pset_destroy(set));
}

TEST(DmappMany, ASumHasEveryPesPart) {
  const Pe& pe = Pe::get();
  const dmapp_c_pset_handle_t set = set_of_all(pe);
  for (std::int64_t round = 0; round < kRounds; ++round) {
    std::int64_t in[2] = {pe.me + round, 1};
    std::int64_t out[2] = {};
    REQUIRE_SUCCESS(dmapp_c_greduce_start(set, in, out, 2, DMAPP_C_INT64, DMAPP_C_SUM));
    REQUIRE_SUCCESS(dmapp_c_pset_wait(set));
    const std::int64_t n = pe.count;
    EXPECT_EQ(out[0], n * (n - 1) / 2 + round * n);
    EXPECT_EQ(out[1], n);
  }
  pe.barrier();
  REQUIRE_SUCCESS(dmapp_c_pset_destroy(set));
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  return dmapp_finalize() == DMAPP_RC_SUCCESS ? failed : 1;
}
