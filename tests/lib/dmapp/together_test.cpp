// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/dmapp/client.hpp"

#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <sched.h>

// What PEs do together: atomic operations, locks, messages, collectives, several threads.
namespace {

using client::Pe;

std::uint64_t word_at(const void* at) {
  return reinterpret_cast<const std::atomic<std::uint64_t>*>(at)->load(std::memory_order_acquire);
}

TEST(DmappTogether, EveryAmoDoesWhatItSays) {
  const Pe& pe = Pe::get();
  auto* const w = pe.shared<std::int64_t>(16);
  const int to = pe.next();
  std::int64_t old = 0;
  dmapp_syncid_handle_t id;
  std::int64_t seven = 7;
  REQUIRE_SUCCESS(dmapp_put(w, pe.heap, to, &seven, 1, DMAPP_QW));
  REQUIRE_SUCCESS(dmapp_aadd_qw(w, pe.heap, to, 5));
  REQUIRE_SUCCESS(dmapp_aand_qw_nb(w, pe.heap, to, 0xe, &id));
  REQUIRE_SUCCESS(dmapp_syncid_wait(&id));
  REQUIRE_SUCCESS(dmapp_aor_qw_nbi(w, pe.heap, to, 0x100));
  REQUIRE_SUCCESS(dmapp_gsync_wait());
  REQUIRE_SUCCESS(dmapp_axor_qw(w, pe.heap, to, 0x1));
  REQUIRE_SUCCESS(dmapp_afadd_qw(&old, w, pe.heap, to, -1));
  EXPECT_EQ(old, 0x10d);
  REQUIRE_SUCCESS(dmapp_afand_qw_nb(&old, w, pe.heap, to, 0xff, &id));
  REQUIRE_SUCCESS(dmapp_syncid_wait(&id));
  EXPECT_EQ(old, 0x10c);
  REQUIRE_SUCCESS(dmapp_afor_qw_nbi(&old, w, pe.heap, to, 0x1));
  REQUIRE_SUCCESS(dmapp_gsync_wait());
  EXPECT_EQ(old, 0xc);
  REQUIRE_SUCCESS(dmapp_afxor_qw(&old, w, pe.heap, to, 0xff));
  EXPECT_EQ(old, 0xd);
  REQUIRE_SUCCESS(dmapp_afax_qw(&old, w, pe.heap, to, 0, 42));  // a swap
  EXPECT_EQ(old, 0xf2);
  REQUIRE_SUCCESS(dmapp_acswap_qw(&old, w, pe.heap, to, 41, 1));
  EXPECT_EQ(old, 42);
  REQUIRE_SUCCESS(dmapp_acswap_qw_nb(&old, w, pe.heap, to, 42, 43, &id));
  REQUIRE_SUCCESS(dmapp_syncid_wait(&id));
  EXPECT_EQ(old, 42);
  REQUIRE_SUCCESS(dmapp_get(&old, w, pe.heap, to, 1, DMAPP_QW));
  EXPECT_EQ(old, 43);
  pe.unshare(w);
}

TEST(DmappTogether, GenericAmosHaveTheNewerDevicesOperations) {
  const Pe& pe = Pe::get();
  auto* const w = pe.shared<std::uint64_t>(8);
  const int to = pe.next();
  std::uint64_t old = 0;
  const auto get = [&](dmapp_amo_op_t op, dmapp_type_t type, std::uint64_t a, std::uint64_t b = 0) {
    dmapp_amo_t amo{op, type, a, b};
    old = 0;
    REQUIRE_SUCCESS(dmapp_amo_get(&old, w, pe.heap, to, &amo));
    return old;
  };
  get(DMAPP_AMO_SWAP, DMAPP_QW, std::bit_cast<std::uint64_t>(1.5));
  EXPECT_EQ(std::bit_cast<double>(get(DMAPP_AMO_FPADD, DMAPP_QW, std::bit_cast<std::uint64_t>(2.25))), 1.5);
  EXPECT_EQ(std::bit_cast<double>(get(DMAPP_AMO_FPMIN, DMAPP_QW, std::bit_cast<std::uint64_t>(-1.0))), 3.75);
  EXPECT_EQ(std::bit_cast<double>(get(DMAPP_AMO_FPMAX, DMAPP_QW, std::bit_cast<std::uint64_t>(9.0))), -1.0);
  get(DMAPP_AMO_SWAP, DMAPP_QW, 0);
  get(DMAPP_AMO_ADD, DMAPP_DW, 0xffff'ffff);  // wraps in its own 32 bits
  EXPECT_EQ(get(DMAPP_AMO_ADD, DMAPP_DW, 2), 0xffff'ffffu);
  EXPECT_EQ(get(DMAPP_AMO_MIN, DMAPP_QW, static_cast<std::uint64_t>(-5)), 1u);
  EXPECT_EQ(get(DMAPP_AMO_MAX, DMAPP_QW, 3), static_cast<std::uint64_t>(-5));
  EXPECT_EQ(get(DMAPP_AMO_CSWAP, DMAPP_QW, 3, 12), 3u);
  EXPECT_EQ(get(DMAPP_AMO_AX, DMAPP_QW, 8, 1), 12u);
  dmapp_amo_t add{DMAPP_AMO_ADD, DMAPP_QW, 1, 0};
  dmapp_syncid_handle_t id;
  REQUIRE_SUCCESS(dmapp_amo_put(w, pe.heap, to, &add));
  REQUIRE_SUCCESS(dmapp_amo_put_nb(w, pe.heap, to, &add, &id));
  REQUIRE_SUCCESS(dmapp_syncid_wait(&id));
  REQUIRE_SUCCESS(dmapp_amo_put_nbi(w, pe.heap, to, &add));
  REQUIRE_SUCCESS(dmapp_amo_flush(to, 0));
  REQUIRE_SUCCESS(dmapp_amo_get_nb(&old, w, pe.heap, to, &add, &id));
  REQUIRE_SUCCESS(dmapp_syncid_wait(&id));
  EXPECT_EQ(old, 12u);
  REQUIRE_SUCCESS(dmapp_amo_get_nbi(&old, w, pe.heap, to, &add));
  REQUIRE_SUCCESS(dmapp_gsync_wait());
  EXPECT_EQ(old, 13u);
  pe.unshare(w);
}

TEST(DmappTogether, CountersLoseNothing) {
  const Pe& pe = Pe::get();
  auto* const w = pe.shared<std::int64_t>(2);
  constexpr int kEach = 3000;
  std::int64_t last = -1;
  for (int i = 0; i < kEach; ++i) {
    REQUIRE_SUCCESS(dmapp_aadd_qw_nbi(w, pe.heap, 0, 1));
    std::int64_t ticket = 0;
    REQUIRE_SUCCESS(dmapp_afadd_qw(&ticket, w + 1, pe.heap, 0, 1));
    ASSERT_GT(ticket, last);
    last = ticket;
  }
  REQUIRE_SUCCESS(dmapp_gsync_wait());
  pe.barrier();
  if (pe.me == 0) {
    EXPECT_EQ(w[0], kEach * pe.count);
    EXPECT_EQ(w[1], kEach * pe.count);
  }
  pe.unshare(w);
}

dmapp_lock_desc_t g_static_lock;

// Under the lock the counter is read and written without atomic operations.
void count_under(const Pe& pe, dmapp_lock_desc_t* lock, dmapp_seg_desc_t* seg, std::uint64_t* counter,
                 int each) {
  for (int i = 0; i < each; ++i) {
    dmapp_lock_handle_t handle;
    REQUIRE_SUCCESS(dmapp_lock_acquire(lock, seg, 0, 0, &handle));
    std::uint64_t value = 0;
    REQUIRE_SUCCESS(dmapp_get(&value, counter, pe.heap, 0, 1, DMAPP_QW));
    ++value;
    REQUIRE_SUCCESS(dmapp_put_nbi(counter, pe.heap, 0, &value, 1, DMAPP_QW));
    REQUIRE_SUCCESS(i % 2 == 0 ? dmapp_lock_release(handle, 0) : dmapp_lock_release_addr(lock, 0, 0));
  }
}

TEST(DmappTogether, LocksExclude) {
  static_assert(sizeof(dmapp_lock_desc_t) == 8);
  const Pe& pe = Pe::get();
  auto* const lock = pe.shared<dmapp_lock_desc_t>(1);
  auto* const counter = pe.shared<std::uint64_t>(1);
  count_under(pe, lock, pe.heap, counter, 300);
  count_under(pe, &g_static_lock, pe.data, counter, 0);
  pe.barrier();
  if (pe.me == 0) {
    EXPECT_EQ(word_at(counter), 300u * static_cast<unsigned>(pe.count));
    *counter = 0;
  }
  pe.barrier();
  count_under(pe, &g_static_lock, pe.data, counter, 100);
  pe.barrier();
  if (pe.me == 0) {
    EXPECT_EQ(word_at(counter), 100u * static_cast<unsigned>(pe.count));
  }
  EXPECT_EQ(word_at(lock), 0u);
  pe.unshare(counter);
  pe.unshare(lock);
}

TEST(DmappTogether, TryTellsWhetherALockIsHeld) {
  const Pe& pe = Pe::get();
  auto* const lock = pe.shared<dmapp_lock_desc_t>(1);
  dmapp_lock_handle_t handle = 0;
  const int mine = pe.next();  // each PE its own lock, on another PE
  REQUIRE_SUCCESS(dmapp_lock_try(lock, pe.heap, mine, 0, &handle));
  dmapp_lock_handle_t other = 0;
  EXPECT_EQ(dmapp_lock_try(lock, pe.heap, mine, 0, &other), DMAPP_RC_BUSY);
  REQUIRE_SUCCESS(dmapp_lock_release(handle, 0));
  EXPECT_EQ(dmapp_lock_release(handle, 0), DMAPP_RC_NOT_FOUND);
  REQUIRE_SUCCESS(dmapp_lock_try(lock, pe.heap, mine, 0, &other));
  REQUIRE_SUCCESS(dmapp_lock_release_addr(lock, mine, 0));
  pe.unshare(lock);
}

struct Heard {
  std::vector<std::uint64_t> next;  // what each PE says next
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> wrong{0};
};

int hear(void* context, void* data, std::uint32_t len, dmapp_pe_t rank) {
  auto& heard = *static_cast<Heard*>(context);
  std::uint64_t words[3] = {};
  if (len != sizeof words) ++heard.wrong;
  std::memcpy(words, data, sizeof words);
  if (words[0] != static_cast<std::uint64_t>(rank) ||
      words[1] != heard.next[static_cast<std::size_t>(rank)]++ || words[2] != ~words[1])
    ++heard.wrong;
  ++heard.count;
  return 0;
}

struct Relay {
  dmapp_queue_handle_t queue = 0;
  int me = 0;
  int count = 0;
  std::atomic<std::uint64_t> heard{0};
  std::atomic<std::uint64_t> failed{0};
};

// Sends on what has hops left, by turns to itself and to the next PE.
int send_on(void* context, void* data, std::uint32_t, dmapp_pe_t) {
  auto& relay = *static_cast<Relay*>(context);
  std::uint64_t hops = 0;
  std::memcpy(&hops, data, sizeof hops);
  if (hops > 0) {
    --hops;
    const int to = (relay.me + static_cast<int>(hops % 2)) % relay.count;
    if (dmapp_queue_put(relay.queue, &hops, 1, DMAPP_QW, to, 0) != DMAPP_RC_SUCCESS) ++relay.failed;
  }
  ++relay.heard;
  return 0;
}

TEST(DmappTogether, CallbacksThatSendToFullQueuesDoNotWaitForEachOther) {
  const Pe& pe = Pe::get();
  Relay relay;
  relay.me = pe.me;
  relay.count = pe.count;
  REQUIRE_SUCCESS(dmapp_queue_attach(send_on, &relay, 0, &relay.queue));
  pe.barrier();
  constexpr std::uint64_t kEach = 300;  // many times the depth
  constexpr std::uint64_t kHops = 5;
  for (std::uint64_t i = 0; i < kEach; ++i) {
    std::uint64_t hops = kHops;
    REQUIRE_SUCCESS(dmapp_queue_put(relay.queue, &hops, 1, DMAPP_QW, (pe.me + 1) % pe.count, 0));
  }
  while (relay.heard < kEach * (kHops + 1)) {
    REQUIRE_SUCCESS(dmapp_progress());
    sched_yield();
  }
  pe.barrier();
  EXPECT_EQ(relay.heard, kEach * (kHops + 1));
  EXPECT_EQ(relay.failed, 0u);
  REQUIRE_SUCCESS(dmapp_queue_detach(relay.queue, 0));
  pe.barrier();
}

TEST(DmappTogether, QueuesDeliverInOrderAndLoseNothing) {
  const Pe& pe = Pe::get();
  Heard heard;
  heard.next.resize(static_cast<std::size_t>(pe.count));
  dmapp_queue_handle_t queue = 0;
  REQUIRE_SUCCESS(dmapp_queue_attach(hear, &heard, 0, &queue));
  dmapp_queue_handle_t second = 0;
  EXPECT_EQ(dmapp_queue_attach(hear, &heard, 0, &second), DMAPP_RC_BUSY);
  constexpr std::uint64_t kEach = 1000;  // many times the depth
  for (std::uint64_t i = 0; i < kEach; ++i) {
    for (int to = 0; to < pe.count; ++to) {
      std::uint64_t words[3] = {static_cast<std::uint64_t>(pe.me), i, ~i};
      REQUIRE_SUCCESS(dmapp_queue_put(queue, words, 3, DMAPP_QW, to, 0));
    }
  }
  while (heard.count < kEach * static_cast<unsigned>(pe.count)) {
    REQUIRE_SUCCESS(dmapp_progress());
    sched_yield();
  }
  EXPECT_EQ(heard.wrong, 0u);
  std::vector<std::uint64_t> longest(pe.attributes.queue_nelems);
  EXPECT_EQ(dmapp_queue_put(queue, longest.data(), longest.size(), DMAPP_QW, pe.me, 0), DMAPP_RC_NO_SPACE);
  pe.barrier();
  REQUIRE_SUCCESS(dmapp_queue_detach(queue, 0));
  EXPECT_EQ(dmapp_queue_detach(queue, 0), DMAPP_RC_INVALID_PARAM);
  pe.barrier();
}

dmapp_c_pset_handle_t make_set(const Pe& pe, std::uint64_t identifier, std::vector<dmapp_pe_t> members) {
  dmapp_c_pset_desc_t d{};
  d.type = DMAPP_C_PSET_DELIMITER_LIST;
  d.u.list_type = {static_cast<int>(members.size()), members.data()};
  dmapp_c_pset_handle_t set = 0;
  REQUIRE_SUCCESS(dmapp_c_pset_create(&d, identifier, 0, nullptr, &set));
  pe.barrier();
  REQUIRE_SUCCESS(dmapp_c_pset_export(set));
  return set;
}

TEST(DmappTogether, SetsReduceAndWait) {
  const Pe& pe = Pe::get();
  auto* const concat = pe.shared<std::uint64_t>(static_cast<std::size_t>(pe.count));
  dmapp_c_pset_desc_t d{};
  d.concat_buf = concat;
  d.concat_buf_size = 8u * static_cast<unsigned>(pe.count);
  d.type = DMAPP_C_PSET_DELIMITER_STRIDED;
  d.u.stride_type = {pe.count, 0, 1};
  dmapp_c_pset_handle_t set = 0;
  REQUIRE_SUCCESS(dmapp_c_pset_create(&d, 1000, DMAPP_C_PSET_MODE_CONCAT, nullptr, &set));
  EXPECT_EQ(dmapp_c_barrier_join(set), DMAPP_RC_NOT_DONE);
  pe.barrier();
  REQUIRE_SUCCESS(dmapp_c_pset_export(set));
  auto* const arrived = pe.shared<std::int64_t>(1);
  const std::int64_t n = pe.count;
  for (std::int64_t turn = 1; turn <= 100; ++turn) {
    REQUIRE_SUCCESS(dmapp_aadd_qw(arrived, pe.heap, 0, 1));
    REQUIRE_SUCCESS(dmapp_c_barrier_join(set));
    REQUIRE_SUCCESS(dmapp_c_pset_wait(set));
    std::int64_t seen = 0;
    REQUIRE_SUCCESS(dmapp_get(&seen, arrived, pe.heap, 0, 1, DMAPP_QW));
    ASSERT_GE(seen, turn * n);
    std::int64_t in[2] = {pe.me + turn, -pe.me};
    std::int64_t out[2] = {};
    REQUIRE_SUCCESS(dmapp_c_greduce_start(set, in, out, 2, DMAPP_C_INT64, DMAPP_C_SUM));
    dmapp_return_t rc = DMAPP_RC_NOT_DONE;
    while ((rc = dmapp_c_pset_test(set)) == DMAPP_RC_NOT_DONE) sched_yield();
    REQUIRE_SUCCESS(rc);
    ASSERT_EQ(out[0], n * turn + n * (n - 1) / 2);
    ASSERT_EQ(out[1], -n * (n - 1) / 2);
  }
  double value = pe.me == 0 ? 3.5 : -1.0 * pe.me;
  REQUIRE_SUCCESS(dmapp_c_greduce_start(set, &value, &value, 1, DMAPP_C_DOUBLE, DMAPP_C_MAX));
  REQUIRE_SUCCESS(dmapp_c_pset_wait(set));
  EXPECT_EQ(value, 3.5);
  std::uint32_t bits[16];
  for (unsigned i = 0; i < 16; ++i) bits[i] = 1u << (static_cast<unsigned>(pe.me) + i);
  REQUIRE_SUCCESS(dmapp_c_greduce_start(set, bits, bits, 16, DMAPP_C_UINT32, DMAPP_C_XOR));
  REQUIRE_SUCCESS(dmapp_c_pset_wait(set));
  for (unsigned i = 0; i < 16; ++i) EXPECT_EQ(bits[i], ((1u << pe.count) - 1) << i);
  pe.barrier();
  REQUIRE_SUCCESS(dmapp_c_pset_destroy(set));
  EXPECT_EQ(dmapp_c_pset_test(set), DMAPP_RC_INVALID_PARAM);
  pe.unshare(arrived);
  pe.unshare(concat);
}

// The thread that waits for an operation does not keep another one from giving it up.
TEST(DmappTogether, AnOperationThatAThreadWaitsForCanBeCancelled) {
  const Pe& pe = Pe::get();
  if (pe.count < 2) GTEST_SKIP() << "a set whose members do not all come needs two PEs";
  dmapp_c_pset_desc_t all{};
  all.type = DMAPP_C_PSET_DELIMITER_STRIDED;
  all.u.stride_type = {.n_pes = pe.count, .base_pe = 0, .stride_pe = 1};
  dmapp_c_pset_handle_t set = 0;
  REQUIRE_SUCCESS(dmapp_c_pset_create(&all, 4711, 0, nullptr, &set));
  pe.barrier();
  REQUIRE_SUCCESS(dmapp_c_pset_export(set));
  EXPECT_EQ(dmapp_c_pset_cancel_op(set), DMAPP_RC_NOT_FOUND);
  if (pe.me != 0) {
    REQUIRE_SUCCESS(dmapp_c_barrier_join(set));  // PE 0 does not join
    dmapp_return_t ended = DMAPP_RC_NOT_USED;
    std::thread waits([&] { ended = dmapp_c_pset_wait(set); });
    EXPECT_EQ(dmapp_c_pset_cancel_op(set), DMAPP_RC_SUCCESS);
    waits.join();
    EXPECT_EQ(ended, DMAPP_RC_TRANSACTION_ERROR);
    EXPECT_EQ(dmapp_c_barrier_join(set), DMAPP_RC_TRANSACTION_ERROR);
  }
  pe.barrier();
  REQUIRE_SUCCESS(dmapp_c_pset_destroy(set));
}

TEST(DmappTogether, SetsOfAListKeepTheirOrder) {
  const Pe& pe = Pe::get();
  std::vector<dmapp_pe_t> backwards(static_cast<std::size_t>(pe.count));
  for (int i = 0; i < pe.count; ++i) backwards[static_cast<std::size_t>(i)] = pe.count - 1 - i;
  const dmapp_c_pset_handle_t set = make_set(pe, 7, backwards);
  float sum = pe.me == 0 ? 1e8f : 1.0f;
  REQUIRE_SUCCESS(dmapp_c_greduce_start(set, &sum, &sum, 1, DMAPP_C_FLOAT, DMAPP_C_SUM));
  REQUIRE_SUCCESS(dmapp_c_pset_wait(set));
  for (const float other : pe.gather(sum)) EXPECT_EQ(other, sum);
  pe.barrier();
  REQUIRE_SUCCESS(dmapp_c_pset_destroy(set));
}

TEST(DmappTogether, ThreadsHaveTheirOwnOperations) {
  const Pe& pe = Pe::get();
  constexpr std::size_t kThreads = 3;
  constexpr std::size_t kEach = 500;
  auto* const block = pe.shared<std::uint64_t>(kThreads * kEach);
  auto* const count = pe.shared<std::int64_t>(1);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      REQUIRE_SUCCESS(dmapp_thread_register());
      std::vector<std::uint64_t> words(kEach);
      for (std::size_t i = 0; i < kEach; ++i) {
        words[i] = t * kEach + i + 1;
        REQUIRE_SUCCESS(dmapp_put_nbi(block + t * kEach + i, pe.heap, pe.next(), &words[i], 1, DMAPP_QW));
        REQUIRE_SUCCESS(dmapp_aadd_qw_nbi(count, pe.heap, 0, 1));
      }
      REQUIRE_SUCCESS(dmapp_thread_gsync_wait());
      int done = 0;
      REQUIRE_SUCCESS(dmapp_thread_gsync_test(&done));
      EXPECT_EQ(done, 1);
      REQUIRE_SUCCESS(dmapp_thread_unregister());
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE_SUCCESS(dmapp_gsync_wait());
  pe.barrier();
  for (std::size_t i = 0; i < kThreads * kEach; ++i) ASSERT_EQ(block[i], i + 1);
  if (pe.me == 0) {
    EXPECT_EQ(word_at(count), kThreads * kEach * static_cast<unsigned>(pe.count));
  }
  pe.unshare(count);
  pe.unshare(block);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // With this argument the queue has a thread of its own.
  if (argc > 1 && std::strcmp(argv[1], "async") == 0) {
    Pe::wanted().queue_flags = DMAPP_QUEUE_ASYNC_PROGRESS;
    Pe::wanted().queue_depth = 16;
  }
  const int failed = RUN_ALL_TESTS();
  dmapp_finalize();
  return failed;
}
