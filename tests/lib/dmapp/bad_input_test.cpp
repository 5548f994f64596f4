// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/dmapp/client.hpp"

#include <cstring>
#include <vector>

// What each family of calls refuses, and that a refused call moves nothing.
namespace {

using client::Pe;

TEST(DmappBadInput, NothingWorksBeforeInit) {
  // First in this program: Pe::get() has not run.
  dmapp_rma_attrs_ext_t defaults;
  EXPECT_EQ(dmapp_get_rma_attrs_ext(&defaults), DMAPP_RC_SUCCESS);
  int flag = 1;
  EXPECT_EQ(dmapp_initialized(&flag), DMAPP_RC_SUCCESS);
  EXPECT_EQ(flag, 0);
  dmapp_jobinfo_t job;
  EXPECT_EQ(dmapp_get_jobinfo(&job), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_sheap_malloc(8), nullptr);
  dmapp_seg_desc_t seg{};
  std::uint64_t word = 0;
  EXPECT_EQ(dmapp_put(&word, &seg, 0, &word, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_gsync_wait(), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_finalize(), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_init(nullptr, nullptr), DMAPP_RC_INVALID_PARAM);
}

TEST(DmappBadInput, PutsAndGets) {
  const Pe& pe = Pe::get();
  auto* const w = pe.shared<std::uint64_t>(8);
  std::uint64_t local = 5;
  const auto bad_type = static_cast<dmapp_type_t>(DMAPP_C_DOUBLE);
  dmapp_seg_desc_t garbage;
  std::memset(&garbage, 0xa5, sizeof garbage);
  garbage.addr = w;
  garbage.len = 64;
  const auto put = [&](void* target, dmapp_seg_desc_t* seg, int to, void* source, std::uint64_t n,
                       dmapp_type_t t) {
    const dmapp_return_t rc = dmapp_put(target, seg, to, source, n, t);
    dmapp_syncid_handle_t id;
    EXPECT_EQ(dmapp_put_nb(target, seg, to, source, n, t, &id), rc);
    EXPECT_EQ(dmapp_put_nbi(target, seg, to, source, n, t), rc);
    EXPECT_EQ(dmapp_get(source, target, seg, to, n, t), rc);
    EXPECT_EQ(dmapp_iput(target, seg, to, source, 1, 1, n, t), rc);
    EXPECT_EQ(dmapp_put_ixpe(target, seg, &to, 1, source, n, t), rc);
    return rc;
  };
  EXPECT_EQ(put(nullptr, pe.heap, 0, &local, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(w, nullptr, 0, &local, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(w, pe.heap, 0, nullptr, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(w, pe.heap, -1, &local, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(w, pe.heap, pe.count, &local, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(w, pe.heap, 0, &local, 1, bad_type), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(w, &garbage, 0, &local, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(w, pe.heap, 0, &local, UINT64_MAX, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(w, pe.data, 0, &local, 1, DMAPP_QW), DMAPP_RC_NOT_FOUND);
  EXPECT_EQ(put(w, pe.heap, 0, &local, pe.heap->len, DMAPP_QW), DMAPP_RC_NOT_FOUND);
  EXPECT_EQ(put(w, pe.heap, 0, &local, 0, DMAPP_QW), DMAPP_RC_SUCCESS);
  EXPECT_EQ(dmapp_put_nb(w, pe.heap, 0, &local, 1, DMAPP_QW, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_ixput(w, pe.heap, 0, &local, nullptr, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_ixget(&local, w, pe.heap, 0, nullptr, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_scatter_ixpe(w, pe.heap, nullptr, 1, &local, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_put_flag(w, pe.heap, 0, &local, 1, DMAPP_QW, reinterpret_cast<char*>(w) + 9, 1),
            DMAPP_RC_ALIGNMENT_ERROR);
  EXPECT_EQ(dmapp_put_flag(w, pe.heap, 0, &local, 1, DMAPP_QW, nullptr, 1), DMAPP_RC_INVALID_PARAM);
  // A descriptor of memory that another PE registered names that PE alone.
  std::uint64_t mine[4] = {};
  dmapp_seg_desc_t own;
  REQUIRE_SUCCESS(dmapp_mem_register(mine, sizeof mine, &own));
  if (pe.count > 1) {
    EXPECT_EQ(dmapp_put(mine, &own, pe.next(), &local, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
  }
  REQUIRE_SUCCESS(dmapp_mem_unregister(&own));
  EXPECT_EQ(w[0], 0u);
  EXPECT_EQ(local, 5u);
  pe.unshare(w);
}

TEST(DmappBadInput, Amos) {
  const Pe& pe = Pe::get();
  auto* const w = pe.shared<std::int64_t>(4);
  std::int64_t old = 5;
  void* const odd = reinterpret_cast<char*>(w) + 4;
  EXPECT_EQ(dmapp_aadd_qw(odd, pe.heap, 0, 1), DMAPP_RC_ALIGNMENT_ERROR);
  EXPECT_EQ(dmapp_afadd_qw(&old, odd, pe.heap, 0, 1), DMAPP_RC_ALIGNMENT_ERROR);
  EXPECT_EQ(dmapp_afadd_qw(nullptr, w, pe.heap, 0, 1), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_acswap_qw_nb(&old, w, pe.heap, 0, 1, 1, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_aadd_qw(w, pe.heap, pe.count, 1), DMAPP_RC_INVALID_PARAM);
  dmapp_amo_t amo{DMAPP_AMO_ADD, DMAPP_BYTE, 1, 0};
  EXPECT_EQ(dmapp_amo_put(w, pe.heap, 0, &amo), DMAPP_RC_INVALID_PARAM);
  amo = {static_cast<dmapp_amo_op_t>(99), DMAPP_QW, 1, 0};
  EXPECT_EQ(dmapp_amo_get(&old, w, pe.heap, 0, &amo), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_amo_put(w, pe.heap, 0, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_amo_flush(-1, 0), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(w[0], 0);
  EXPECT_EQ(old, 5);
  pe.unshare(w);
}

TEST(DmappBadInput, HandlesThatNoCallGave) {
  const Pe& pe = Pe::get();
  for (const std::uint64_t bits :
       {std::uint64_t{0}, UINT64_MAX, std::uint64_t{2} << 62, std::uint64_t{0x123456}}) {
    dmapp_syncid_handle_t id = bits;
    int flag = 7;
    EXPECT_EQ(dmapp_syncid_wait(&id), DMAPP_RC_INVALID_PARAM);
    EXPECT_EQ(dmapp_syncid_test(&id, &flag), DMAPP_RC_INVALID_PARAM);
    EXPECT_EQ(flag, 7);
    EXPECT_EQ(dmapp_lock_release(bits, 0), DMAPP_RC_NOT_FOUND);
    EXPECT_EQ(dmapp_c_pset_wait(bits), DMAPP_RC_INVALID_PARAM);
    EXPECT_EQ(dmapp_c_pset_export(bits), DMAPP_RC_INVALID_PARAM);
    EXPECT_EQ(dmapp_c_barrier_join(bits), DMAPP_RC_INVALID_PARAM);
    EXPECT_EQ(dmapp_queue_detach(bits, 0), DMAPP_RC_INVALID_PARAM);
    EXPECT_EQ(dmapp_queue_put(bits, &id, 1, DMAPP_QW, 0, 0), DMAPP_RC_INVALID_PARAM);
  }
  // A lock on the stack lies in no segment.
  dmapp_lock_desc_t lock{};
  dmapp_lock_handle_t handle;
  EXPECT_EQ(dmapp_lock_acquire(&lock, pe.heap, 0, 0, &handle), DMAPP_RC_NOT_FOUND);
  EXPECT_EQ(dmapp_lock_acquire(nullptr, pe.heap, 0, 0, &handle), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_lock_release_addr(&lock, 0, 0), DMAPP_RC_NOT_FOUND);
}

TEST(DmappBadInput, MemoryAndSets) {
  const Pe& pe = Pe::get();
  dmapp_seg_desc_t seg;
  EXPECT_EQ(dmapp_mem_register(nullptr, 8, &seg), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_mem_register(&seg, 0, &seg), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_mem_register(reinterpret_cast<void*>(4096), 8, &seg), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_mem_unregister(pe.heap), DMAPP_RC_NOT_FOUND);
  std::memset(&seg, 1, sizeof seg);
  EXPECT_EQ(dmapp_mem_unregister(&seg), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_sheap_malloc(pe.heap->len + 1), nullptr);
  int on_stack = 0;
  dmapp_sheap_free(&on_stack);
  dmapp_sheap_free(nullptr);
  EXPECT_EQ(dmapp_sheap_realloc(&on_stack, 8), nullptr);
  dmapp_c_pset_handle_t set;
  dmapp_c_pset_desc_t d{};
  d.type = DMAPP_C_PSET_DELIMITER_STRIDED;
  d.u.stride_type = {pe.count + 1, 0, 1};
  EXPECT_EQ(dmapp_c_pset_create(&d, 1, 0, nullptr, &set), DMAPP_RC_INVALID_PARAM);
  d.u.stride_type = {1, (pe.me + 1), 1};  // without the caller
  EXPECT_EQ(dmapp_c_pset_create(&d, 1, 0, nullptr, &set), DMAPP_RC_INVALID_PARAM);
  d.u.stride_type = {1, pe.me, 1};
  EXPECT_EQ(dmapp_c_pset_create(&d, 1, 8, nullptr, &set), DMAPP_RC_INVALID_PARAM);
  std::uint64_t concat = 0;
  d.concat_buf_size = sizeof concat;
  EXPECT_EQ(dmapp_c_pset_create(&d, 1, DMAPP_C_PSET_MODE_CONCAT, nullptr, &set), DMAPP_RC_INVALID_PARAM);
  d.concat_buf = &concat;
  d.concat_buf_size = sizeof concat - 1;
  EXPECT_EQ(dmapp_c_pset_create(&d, 1, DMAPP_C_PSET_MODE_CONCAT, nullptr, &set), DMAPP_RC_INVALID_PARAM);
  d.concat_buf_size = sizeof concat;
  REQUIRE_SUCCESS(dmapp_c_pset_create(&d, 1, DMAPP_C_PSET_MODE_CONCAT, nullptr, &set));
  REQUIRE_SUCCESS(dmapp_c_pset_destroy(set));
  REQUIRE_SUCCESS(dmapp_c_pset_create(&d, 1, 0, nullptr, &set));
  REQUIRE_SUCCESS(dmapp_c_pset_export(set));
  double x = 1;
  EXPECT_EQ(dmapp_c_greduce_start(set, &x, &x, 1, DMAPP_C_DOUBLE, DMAPP_C_AND), DMAPP_RC_NOT_SUPPORTED);
  EXPECT_EQ(dmapp_c_greduce_start(set, &x, &x, 9, DMAPP_C_DOUBLE, DMAPP_C_SUM), DMAPP_RC_NO_SPACE);
  EXPECT_EQ(dmapp_c_greduce_start(set, &x, &x, 1, static_cast<dmapp_c_type_t>(3), DMAPP_C_SUM),
            DMAPP_RC_INVALID_PARAM);
  REQUIRE_SUCCESS(dmapp_c_pset_destroy(set));
  EXPECT_EQ(dmapp_restart(0), DMAPP_RC_NOT_SUPPORTED);
  const char* text = nullptr;
  EXPECT_EQ(dmapp_explain_error(static_cast<dmapp_return_t>(77), &text), DMAPP_RC_INVALID_PARAM);
  EXPECT_NE(text, nullptr);
}

TEST(DmappBadInput, QueuesAndReductions) {
  const Pe& pe = Pe::get();
  const auto hear = [](void*, void*, std::uint32_t, dmapp_pe_t) { return 0; };
  dmapp_queue_handle_t queue = 0;
  EXPECT_EQ(dmapp_queue_attach(nullptr, nullptr, 0, &queue), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_queue_attach(hear, nullptr, 1, &queue), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_queue_attach(hear, nullptr, 0, nullptr), DMAPP_RC_INVALID_PARAM);
  REQUIRE_SUCCESS(dmapp_queue_attach(hear, nullptr, 0, &queue));
  std::uint64_t word = 5;
  const auto put = [&](void* source, std::uint64_t n, dmapp_type_t type, dmapp_pe_t to, std::uint64_t flags) {
    return dmapp_queue_put(queue, source, n, type, to, flags);
  };
  EXPECT_EQ(put(nullptr, 1, DMAPP_QW, pe.me, 0), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(&word, 1, static_cast<dmapp_type_t>(DMAPP_C_DOUBLE), pe.me, 0), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(&word, 1, DMAPP_QW, -1, 0), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(&word, 1, DMAPP_QW, pe.count, 0), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(&word, 1, DMAPP_QW, pe.me, 1), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(&word, UINT64_MAX, DMAPP_QW, pe.me, 0), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(put(&word, std::uint64_t{1} << 40, DMAPP_QW, pe.me, 0), DMAPP_RC_NO_SPACE);
  EXPECT_EQ(dmapp_queue_detach(queue, 1), DMAPP_RC_INVALID_PARAM);
  REQUIRE_SUCCESS(dmapp_queue_detach(queue, 0));
  EXPECT_EQ(put(&word, 1, DMAPP_QW, pe.me, 0), DMAPP_RC_INVALID_PARAM);  // stale

  dmapp_c_pset_desc_t d{};
  d.type = DMAPP_C_PSET_DELIMITER_STRIDED;
  d.u.stride_type = {1, pe.me, 1};
  dmapp_c_pset_handle_t set = 0;
  EXPECT_EQ(dmapp_c_pset_create(&d, 2, 0, nullptr, nullptr), DMAPP_RC_INVALID_PARAM);
  REQUIRE_SUCCESS(dmapp_c_pset_create(&d, 2, 0, nullptr, &set));
  EXPECT_EQ(dmapp_c_pset_create(&d, 2, 0, nullptr, &set), DMAPP_RC_BUSY);
  double x = 1;
  EXPECT_EQ(dmapp_c_greduce_start(set, &x, &x, 1, DMAPP_C_DOUBLE, DMAPP_C_SUM),
            DMAPP_RC_NOT_DONE);  // not exported
  REQUIRE_SUCCESS(dmapp_c_pset_export(set));
  EXPECT_EQ(dmapp_c_greduce_start(set, nullptr, &x, 1, DMAPP_C_DOUBLE, DMAPP_C_SUM), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_greduce_start(set, &x, nullptr, 1, DMAPP_C_DOUBLE, DMAPP_C_SUM), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_greduce_start(set, &x, &x, 1, DMAPP_C_DOUBLE, static_cast<dmapp_c_op_t>(99)),
            DMAPP_RC_INVALID_PARAM);
  REQUIRE_SUCCESS(dmapp_c_pset_destroy(set));
  // Stale: one that was.
  EXPECT_EQ(dmapp_c_pset_export(set), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_pset_test(set), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_pset_wait(set), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_pset_cancel_op(set), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_pset_destroy(set), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_barrier_join(set), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_greduce_start(set, &x, &x, 1, DMAPP_C_DOUBLE, DMAPP_C_SUM), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(x, 1.0);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  dmapp_finalize();
  return failed;
}
