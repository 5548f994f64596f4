// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/dmapp/client.hpp"

#include <array>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

// Every call that moves data or adds, with each thing that it has to refuse. Tables: a call is a row, and so
// is a mistake.
namespace {

using client::Pe;

struct Arguments {
  void* remote;
  dmapp_seg_desc_t* segment;
  dmapp_pe_t pe;
  void* local;
  std::uint64_t count;
  dmapp_type_t type;
  dmapp_syncid_handle_t* id;
  std::ptrdiff_t* index;
  dmapp_amo_t* amo;
  void* flag;
};

enum Has : unsigned {
  kLocal = 1,  // a buffer of the caller's
  kTyped = 2,  // elements of a type
  kId = 4,     // a syncid
  kIndex = 8,  // a list of indices
  kWord = 16,  // an AMO: the remote word is aligned
  kAmo = 32,   // a description of the AMO
  kFlag = 64,  // an aligned word beside the data
  kPeList = 128,
};

struct Call {
  const char* name;
  unsigned has;
  std::function<dmapp_return_t(const Arguments&)> go;
};

// One family: blocking, implicit, with a syncid. `...` are the arguments before the syncid.
#define ORRERY_THREE(name, has, ...)                                                          \
  {#name, (has), [](const Arguments& a) { return name(__VA_ARGS__); }},                       \
      {#name "_nbi", (has), [](const Arguments& a) { return name##_nbi(__VA_ARGS__); }}, {    \
#name "_nb", (has) | kId, [](const Arguments& a) { return name##_nb(__VA_ARGS__, a.id); } \
  }

#define ORRERY_PUT a.remote, a.segment, a.pe
#define ORRERY_GET a.local, a.remote, a.segment, a.pe

// The list of PEs of one; a null list where the caller's is.
dmapp_pe_t* list_of(const Arguments& a) {
  static std::array<dmapp_pe_t, 1> list;
  list[0] = a.pe;
  return list.data();
}

const std::vector<Call>& calls() {
  static const std::vector<Call> all{
      ORRERY_THREE(dmapp_put, kLocal | kTyped, ORRERY_PUT, a.local, a.count, a.type),
      ORRERY_THREE(dmapp_get, kLocal | kTyped, ORRERY_GET, a.count, a.type),
      ORRERY_THREE(dmapp_put_flag, kLocal | kTyped | kFlag, ORRERY_PUT, a.local, a.count, a.type, a.flag, 1),
      {"dmapp_get_flag_nbi", kLocal | kTyped,
       [](const Arguments& a) { return dmapp_get_flag_nbi(ORRERY_GET, a.count, a.type); }},
      ORRERY_THREE(dmapp_iput, kLocal | kTyped, ORRERY_PUT, a.local, 1, 1, a.count, a.type),
      ORRERY_THREE(dmapp_iget, kLocal | kTyped, ORRERY_GET, 1, 1, a.count, a.type),
      ORRERY_THREE(dmapp_ixput, kLocal | kTyped | kIndex, ORRERY_PUT, a.local, a.index, a.count, a.type),
      ORRERY_THREE(dmapp_ixget, kLocal | kTyped | kIndex, ORRERY_GET, a.index, a.count, a.type),
      ORRERY_THREE(dmapp_put_ixpe, kLocal | kTyped | kPeList, a.remote, a.segment, list_of(a), 1, a.local,
                   a.count, a.type),
      ORRERY_THREE(dmapp_scatter_ixpe, kLocal | kTyped | kPeList, a.remote, a.segment, list_of(a), 1, a.local,
                   a.count, a.type),
      ORRERY_THREE(dmapp_gather_ixpe, kLocal | kTyped | kPeList, a.local, a.remote, a.segment, list_of(a), 1,
                   a.count, a.type),
      ORRERY_THREE(dmapp_aadd_qw, kWord, ORRERY_PUT, 1),
      ORRERY_THREE(dmapp_aand_qw, kWord, ORRERY_PUT, 1),
      ORRERY_THREE(dmapp_aor_qw, kWord, ORRERY_PUT, 1),
      ORRERY_THREE(dmapp_axor_qw, kWord, ORRERY_PUT, 1),
      ORRERY_THREE(dmapp_afadd_qw, kWord | kLocal, ORRERY_GET, 1),
      ORRERY_THREE(dmapp_afand_qw, kWord | kLocal, ORRERY_GET, 1),
      ORRERY_THREE(dmapp_afor_qw, kWord | kLocal, ORRERY_GET, 1),
      ORRERY_THREE(dmapp_afxor_qw, kWord | kLocal, ORRERY_GET, 1),
      ORRERY_THREE(dmapp_afax_qw, kWord | kLocal, ORRERY_GET, 1, 1),
      ORRERY_THREE(dmapp_acswap_qw, kWord | kLocal, ORRERY_GET, 7, 1),
      ORRERY_THREE(dmapp_amo_put, kWord | kAmo, ORRERY_PUT, a.amo),
      ORRERY_THREE(dmapp_amo_get, kWord | kAmo | kLocal, ORRERY_GET, a.amo),
  };
  return all;
}

// First in this program: Pe::get() has not run.
TEST(DmappBeforeInit, NoCallWorks) {
  std::uint64_t word = 7, local = 5;
  dmapp_seg_desc_t segment{};
  dmapp_syncid_handle_t id{};
  std::ptrdiff_t index = 0;
  dmapp_amo_t amo{DMAPP_AMO_ADD, DMAPP_QW, 1, 0};
  for (const Call& call : calls()) {
    EXPECT_EQ(call.go({&word, &segment, 0, &local, 1, DMAPP_QW, &id, &index, &amo, &word}),
              DMAPP_RC_INVALID_PARAM)
        << call.name;
  }
  EXPECT_EQ(word, 7u);
  EXPECT_EQ(local, 5u);
  int flag = 0;
  dmapp_lock_desc_t lock{};
  dmapp_lock_handle_t held{};
  dmapp_c_pset_handle_t set{};
  dmapp_c_pset_desc_t members{};
  dmapp_queue_handle_t queue{};
  dmapp_sheap_stats_t stats;
  std::uint32_t most = 0;
  const dmapp_return_t answers[] = {
      dmapp_syncid_wait(&id),
      dmapp_syncid_test(&id, &flag),
      dmapp_gsync_wait(),
      dmapp_gsync_test(&flag),
      dmapp_thread_gsync_wait(),
      dmapp_thread_gsync_test(&flag),
      dmapp_thread_register(),
      dmapp_thread_unregister(),
      dmapp_register_progress_cb([](void*) {}, nullptr),
      dmapp_deregister_progress_cb([](void*) {}),
      dmapp_progress(),
      dmapp_checkpoint(),
      dmapp_restart(0),
      dmapp_amo_flush(0, 0),
      dmapp_sheap_stats(&stats),
      dmapp_mem_register(&word, 8, &segment),
      dmapp_mem_unregister(&segment),
      dmapp_mem_reserve(&word, 8, 0, &segment),
      dmapp_mem_update(&word, 8, 0, &segment),
      dmapp_segdesc_compare(&segment, &segment, &flag),
      dmapp_lock_acquire(&lock, &segment, 0, 0, &held),
      dmapp_lock_try(&lock, &segment, 0, 0, &held),
      dmapp_lock_release(held, 0),
      dmapp_lock_release_addr(&lock, 0, 0),
      dmapp_queue_attach([](void*, void*, std::uint32_t, dmapp_pe_t) { return 0; }, nullptr, 0, &queue),
      dmapp_queue_detach(queue, 0),
      dmapp_queue_put(queue, &word, 1, DMAPP_QW, 0, 0),
      dmapp_c_pset_create(&members, 1, 0, nullptr, &set),
      dmapp_c_pset_export(set),
      dmapp_c_pset_destroy(set),
      dmapp_c_pset_test(set),
      dmapp_c_pset_wait(set),
      dmapp_c_pset_cancel_op(set),
      dmapp_c_barrier_join(set),
      dmapp_c_greduce_start(set, &word, &local, 1, DMAPP_C_INT64, DMAPP_C_SUM),
      dmapp_finalize(),
  };
  for (std::size_t i = 0; i < std::size(answers); ++i) EXPECT_EQ(answers[i], DMAPP_RC_INVALID_PARAM) << i;
  EXPECT_EQ(dmapp_c_greduce_nelems_max(DMAPP_C_INT64, &most), DMAPP_RC_SUCCESS);  // the same in every job
  EXPECT_EQ(dmapp_sheap_malloc(8), nullptr);
  EXPECT_EQ(dmapp_sheap_realloc(nullptr, 8), nullptr);
  dmapp_sheap_free(&word);
}

class DmappRefusals : public testing::Test {
 protected:
  static constexpr std::size_t kWords = 8;
  const Pe& pe_ = Pe::get();
  std::uint64_t* const shared_ = pe_.shared<std::uint64_t>(kWords);
  std::array<std::uint64_t, kWords> local_{};
  dmapp_syncid_handle_t id_{};
  std::ptrdiff_t index_ = 0;
  dmapp_amo_t amo_{DMAPP_AMO_ADD, DMAPP_QW, 1, 0};

  DmappRefusals() {
    for (std::size_t i = 0; i < kWords; ++i) shared_[i] = 7;
    local_.fill(5);
  }
  ~DmappRefusals() override { pe_.unshare(shared_); }

  Arguments good() {
    return {shared_, pe_.heap, 0, local_.data(), 1, DMAPP_QW, &id_, &index_, &amo_, shared_ + 4};
  }
  // Every call that has one of `has` (or every one, for 0) answers `expected` to the arguments, and moves
  // nothing.
  void expect(const std::string& mistake, unsigned has, dmapp_return_t expected, const Arguments& arguments) {
    for (const Call& call : calls()) {
      if (has != 0 && (call.has & has) == 0) continue;
      EXPECT_EQ(call.go(arguments), expected) << call.name << ": " << mistake;
      for (std::size_t i = 0; i < kWords; ++i) {
        ASSERT_EQ(shared_[i], 7u) << call.name << ": " << mistake;
        ASSERT_EQ(local_[i], 5u) << call.name << ": " << mistake;
      }
    }
    EXPECT_EQ(dmapp_gsync_wait(), DMAPP_RC_SUCCESS) << mistake;
  }
};

TEST_F(DmappRefusals, EveryCallIsInTheTableAndWorksWithoutAMistake) {
  EXPECT_EQ(calls().size(), 67u);
  for (const Call& call : calls()) {
    Arguments arguments = good();
    arguments.pe = pe_.me;
    EXPECT_EQ(call.go(arguments), DMAPP_RC_SUCCESS) << call.name;
    if ((call.has & kId) != 0) {
      EXPECT_EQ(dmapp_syncid_wait(&id_), DMAPP_RC_SUCCESS) << call.name;
    }
  }
  EXPECT_EQ(dmapp_gsync_wait(), DMAPP_RC_SUCCESS);
}

TEST_F(DmappRefusals, NullsPesAndTypes) {
  const auto with = [this](auto change) {
    Arguments arguments = good();
    change(arguments);
    return arguments;
  };
  expect("no remote address", 0, DMAPP_RC_INVALID_PARAM, with([](auto& a) { a.remote = nullptr; }));
  expect("no segment", 0, DMAPP_RC_INVALID_PARAM, with([](auto& a) { a.segment = nullptr; }));
  expect("no local address", kLocal, DMAPP_RC_INVALID_PARAM, with([](auto& a) { a.local = nullptr; }));
  expect("no syncid", kId, DMAPP_RC_INVALID_PARAM, with([](auto& a) { a.id = nullptr; }));
  expect("no indices", kIndex, DMAPP_RC_INVALID_PARAM, with([](auto& a) { a.index = nullptr; }));
  expect("no AMO", kAmo, DMAPP_RC_INVALID_PARAM, with([](auto& a) { a.amo = nullptr; }));
  expect("no flag", kFlag, DMAPP_RC_INVALID_PARAM, with([](auto& a) { a.flag = nullptr; }));
  for (const dmapp_pe_t pe : {-1, pe_.count, INT32_MAX, INT32_MIN})
    expect("PE " + std::to_string(pe), 0, DMAPP_RC_INVALID_PARAM, with([&](auto& a) { a.pe = pe; }));
  for (const int type : {-1, 0x7f, static_cast<int>(DMAPP_C_DOUBLE)}) {
    expect("type " + std::to_string(type), kTyped, DMAPP_RC_INVALID_PARAM,
           with([&](auto& a) { a.type = static_cast<dmapp_type_t>(type); }));
  }
  expect("2^64 - 1 elements", kTyped, DMAPP_RC_INVALID_PARAM, with([](auto& a) { a.count = UINT64_MAX; }));
}

TEST_F(DmappRefusals, SegmentsAndPlaces) {
  const auto with = [this](auto change) {
    Arguments arguments = good();
    change(arguments);
    return arguments;
  };
  dmapp_seg_desc_t garbage;
  std::memset(&garbage, 0xa5, sizeof garbage);
  garbage.addr = shared_;
  garbage.len = sizeof(std::uint64_t) * kWords;
  expect("garbage", 0, DMAPP_RC_INVALID_PARAM, with([&](auto& a) { a.segment = &garbage; }));
  expect("another segment", 0, DMAPP_RC_NOT_FOUND, with([&](auto& a) { a.segment = pe_.data; }));
  expect("outside", 0, DMAPP_RC_NOT_FOUND,
         with([&](auto& a) { a.remote = static_cast<char*>(pe_.heap->addr) + pe_.heap->len; }));
  expect("unaligned", kWord, DMAPP_RC_ALIGNMENT_ERROR,
         with([&](auto& a) { a.remote = reinterpret_cast<char*>(shared_) + 4; }));
  expect("unaligned flag", kFlag, DMAPP_RC_ALIGNMENT_ERROR,
         with([&](auto& a) { a.flag = reinterpret_cast<char*>(shared_) + 33; }));
  // Memory that this PE registered: of another PE, and when it is registered no more.
  std::vector<std::uint64_t> mine(512, 7);
  dmapp_seg_desc_t own;
  REQUIRE_SUCCESS(dmapp_mem_register(mine.data(), mine.size() * 8, &own));
  if (pe_.count > 1) {
    expect("a foreign PE's", 0, DMAPP_RC_INVALID_PARAM, with([&](auto& a) {
             a.remote = mine.data();
             a.segment = &own;
             a.pe = pe_.next();
           }));
  }
  dmapp_seg_desc_t stale = own;
  REQUIRE_SUCCESS(dmapp_mem_unregister(&own));
  for (const Call& call : calls()) {
    Arguments arguments = good();
    arguments.remote = mine.data();
    arguments.segment = &stale;
    arguments.pe = pe_.me;
    arguments.flag = mine.data() + 4;
    dmapp_return_t rc = call.go(arguments);
    if (rc == DMAPP_RC_SUCCESS && (call.has & kId) != 0) rc = dmapp_syncid_wait(&id_);
    const dmapp_return_t later = dmapp_gsync_wait();
    EXPECT_TRUE(rc != DMAPP_RC_SUCCESS || later != DMAPP_RC_SUCCESS) << call.name << ": stale";
    ASSERT_EQ(mine[0], 7u) << call.name;
    ASSERT_EQ(local_[0], 5u) << call.name;
  }
  EXPECT_EQ(dmapp_mem_unregister(&stale), DMAPP_RC_NOT_FOUND);
}

TEST_F(DmappRefusals, TheRest) {
  dmapp_lock_handle_t handle{};
  auto* const lock = pe_.shared<dmapp_lock_desc_t>(1);
  for (const dmapp_pe_t pe : {-1, pe_.count}) {
    EXPECT_EQ(dmapp_lock_acquire(lock, pe_.heap, pe, 0, &handle), DMAPP_RC_INVALID_PARAM);
    EXPECT_EQ(dmapp_lock_try(lock, pe_.heap, pe, 0, &handle), DMAPP_RC_INVALID_PARAM);
    EXPECT_EQ(dmapp_lock_release_addr(lock, pe, 0), DMAPP_RC_INVALID_PARAM);
    EXPECT_EQ(dmapp_amo_flush(pe, 0), DMAPP_RC_INVALID_PARAM);
  }
  EXPECT_EQ(dmapp_lock_acquire(lock, nullptr, 0, 0, &handle), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_lock_acquire(lock, pe_.heap, 0, 0, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_lock_try(nullptr, pe_.heap, 0, 0, &handle), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_lock_release_addr(nullptr, 0, 0), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_lock_release_addr(lock, 0, 0), DMAPP_RC_NOT_FOUND);  // not held
  EXPECT_EQ(dmapp_lock_release_addr(lock, 0, 1), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_lock_release(handle, 1), DMAPP_RC_INVALID_PARAM);
  // Segments: foreign to the address, garbage, another PE's, and gone.
  const auto locks = [&](dmapp_lock_desc_t* at, dmapp_seg_desc_t* segment, dmapp_pe_t host,
                         std::uint64_t flags) {
    const dmapp_return_t rc = dmapp_lock_acquire(at, segment, host, flags, &handle);
    EXPECT_EQ(dmapp_lock_try(at, segment, host, flags, &handle), rc);
    return rc;
  };
  EXPECT_EQ(locks(lock, pe_.heap, 0, 1), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(locks(lock, pe_.data, 0, 0), DMAPP_RC_NOT_FOUND);
  EXPECT_EQ(locks(reinterpret_cast<dmapp_lock_desc_t*>(reinterpret_cast<char*>(lock) + 4), pe_.heap, 0, 0),
            DMAPP_RC_ALIGNMENT_ERROR);
  dmapp_seg_desc_t bad;
  std::memset(&bad, 0xa5, sizeof bad);
  EXPECT_EQ(locks(lock, &bad, 0, 0), DMAPP_RC_INVALID_PARAM);
  std::vector<dmapp_lock_desc_t> own(512);
  REQUIRE_SUCCESS(dmapp_mem_register(own.data(), own.size() * sizeof own[0], &bad));
  if (pe_.count > 1) {
    EXPECT_EQ(locks(own.data(), &bad, pe_.next(), 0), DMAPP_RC_INVALID_PARAM);
  }
  dmapp_seg_desc_t gone = bad;
  REQUIRE_SUCCESS(dmapp_mem_unregister(&bad));
  EXPECT_EQ(locks(own.data(), &gone, pe_.me, 0), DMAPP_RC_TRANSACTION_ERROR);
  pe_.unshare(lock);
  int flag = 0;
  EXPECT_EQ(dmapp_syncid_wait(nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_syncid_test(nullptr, &flag), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_syncid_test(&id_, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_gsync_test(nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_thread_gsync_test(nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_initialized(nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_get_jobinfo(nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_get_version(nullptr, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_explain_error(DMAPP_RC_SUCCESS, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_get_rma_attrs(nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_get_rma_attrs_ext(nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_set_rma_attrs(nullptr, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_set_rma_attrs_ext(nullptr, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_sheap_stats(nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_mem_register(shared_, 8, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_mem_unregister(nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_mem_reserve(shared_, 8, 0, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_mem_update(shared_, 8, 0, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_segdesc_compare(nullptr, pe_.heap, &flag), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_segdesc_compare(pe_.heap, pe_.heap, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_register_progress_cb(nullptr, nullptr), DMAPP_RC_INVALID_PARAM);
  EXPECT_NE(dmapp_deregister_progress_cb(nullptr), DMAPP_RC_SUCCESS);
  EXPECT_EQ(dmapp_queue_attach(nullptr, nullptr, 0, nullptr), DMAPP_RC_INVALID_PARAM);
  dmapp_c_pset_handle_t set{};
  EXPECT_EQ(dmapp_c_pset_create(nullptr, 1, 0, nullptr, &set), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_greduce_nelems_max(DMAPP_C_DOUBLE, nullptr), DMAPP_RC_INVALID_PARAM);
  std::uint32_t most = 0;
  EXPECT_EQ(dmapp_c_greduce_nelems_max(static_cast<dmapp_c_type_t>(3), &most), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_pset_test(77), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_pset_destroy(77), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_c_pset_cancel_op(77), DMAPP_RC_INVALID_PARAM);
  EXPECT_EQ(dmapp_init_ext(nullptr, nullptr), DMAPP_RC_INVALID_PARAM);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  dmapp_finalize();
  return failed;
}
