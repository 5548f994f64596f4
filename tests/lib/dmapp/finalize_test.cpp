// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/dmapp/client.hpp"

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include <sched.h>

// dmapp_finalize while other threads wait in calls: they come back, and what they used stays until then.
namespace {

constexpr int kRounds = 6;
constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;
constexpr int kTransfers = 8;

// A PE of one round. PMI alone stays from round to round.
struct Round {
  dmapp_jobinfo_t job{};
  std::byte* there = nullptr;                  // in every PE
  std::vector<std::byte> here{kBytes};         // in this one
  std::vector<dmapp_syncid_handle_t> names{};  // of transfers that a thread began

  Round() {
    dmapp_rma_attrs_t attributes{};
    REQUIRE_SUCCESS(dmapp_init(nullptr, &attributes));
    REQUIRE_SUCCESS(dmapp_get_jobinfo(&job));
    there = static_cast<std::byte*>(dmapp_sheap_malloc(kBytes));
    if (there == nullptr) PMI_Abort(1, "dmapp_sheap_malloc");
    EXPECT_EQ(PMI_Barrier(), PMI_SUCCESS);
  }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;
  int next() const { return (job.pe + 1) % job.npes; }

  // Transfers that the block transfer engine carries out meanwhile.
  void begin_transfers() {
    for (int i = 0; i < kTransfers; ++i)
      REQUIRE_SUCCESS(dmapp_put_nbi(there, &job.sheap_seg, next(), here.data(), kBytes / 8, DMAPP_QW));
  }
  void begin_named_transfers() {
    names.resize(kTransfers);
    for (dmapp_syncid_handle_t& name : names)
      REQUIRE_SUCCESS(dmapp_get_nb(here.data(), there, &job.sheap_seg, next(), kBytes / 8, DMAPP_QW, &name));
  }
};

// One thread says that it is about to wait, and then waits, while this one ends.
void end_while(const std::function<void(Round&)>& begin, const std::function<dmapp_return_t(Round&)>& wait,
               const std::function<void(dmapp_return_t)>& judge) {
  for (int i = 0; i < kRounds; ++i) {
    Round round;
    std::atomic<bool> begun{false};
    dmapp_return_t ended = DMAPP_RC_NOT_USED;
    std::thread waiter([&] {
      begin(round);
      begun.store(true, std::memory_order_release);
      ended = wait(round);
    });
    while (!begun.load(std::memory_order_acquire)) sched_yield();
    for (int turn = 0; turn < i; ++turn) sched_yield();
    EXPECT_EQ(dmapp_finalize(), DMAPP_RC_SUCCESS);
    waiter.join();
    judge(ended);
    EXPECT_EQ(PMI_Barrier(), PMI_SUCCESS);
  }
}

// Done, or too late.
void done_or_too_late(dmapp_return_t rc) {
  EXPECT_TRUE(rc == DMAPP_RC_SUCCESS || rc == DMAPP_RC_INVALID_PARAM) << rc;
}
void told(dmapp_return_t rc) { EXPECT_NE(rc, DMAPP_RC_SUCCESS); }

TEST(DmappFinalize, WaitsForAThreadThatWaitsForAllTransfers) {
  end_while([](Round& round) { round.begin_transfers(); }, [](Round&) { return dmapp_gsync_wait(); },
            done_or_too_late);
}

TEST(DmappFinalize, WaitsForAThreadThatWaitsForItsTransfers) {
  end_while([](Round& round) { round.begin_transfers(); }, [](Round&) { return dmapp_thread_gsync_wait(); },
            done_or_too_late);
}

TEST(DmappFinalize, WaitsForAThreadThatWaitsForNamedTransfers) {
  end_while([](Round& round) { round.begin_named_transfers(); },
            [](Round& round) {
              dmapp_return_t last = DMAPP_RC_SUCCESS;
              for (dmapp_syncid_handle_t& name : round.names) last = dmapp_syncid_wait(&name);
              return last;
            },
            done_or_too_late);
}

// Nothing waits for them any more: they are over before the memory goes.
TEST(DmappFinalize, WaitsForNamedTransfersThatNoThreadWaitsFor) {
  end_while([](Round& round) { round.begin_named_transfers(); }, [](Round&) { return DMAPP_RC_SUCCESS; },
            done_or_too_late);
}

// Its holder never releases it.
TEST(DmappFinalize, EndsAThreadsWaitForALock) {
  end_while(
      [](Round& round) {
        dmapp_lock_handle_t handle = 0;
        auto* const lock = reinterpret_cast<dmapp_lock_desc_t*>(round.there);
        std::memset(round.there, 0, sizeof *lock);
        REQUIRE_SUCCESS(dmapp_lock_acquire(lock, &round.job.sheap_seg, round.job.pe, 0, &handle));
      },
      [](Round& round) {
        dmapp_lock_handle_t handle = 0;
        return dmapp_lock_acquire(reinterpret_cast<dmapp_lock_desc_t*>(round.there), &round.job.sheap_seg,
                                  round.job.pe, 0, &handle);
      },
      told);
}

// The others do not join.
TEST(DmappFinalize, EndsAThreadsWaitForACollective) {
  int size = 0;
  EXPECT_EQ(PMI_Get_size(&size), PMI_SUCCESS);
  if (size < 2) GTEST_SKIP() << "a set whose members do not all come needs two PEs";
  end_while(
      [](Round& round) {
        dmapp_c_pset_desc_t all{};
        all.type = DMAPP_C_PSET_DELIMITER_STRIDED;
        all.u.stride_type = {.n_pes = round.job.npes, .base_pe = 0, .stride_pe = 1};
        dmapp_c_pset_handle_t set = 0;
        REQUIRE_SUCCESS(dmapp_c_pset_create(&all, 1, 0, nullptr, &set));
        EXPECT_EQ(PMI_Barrier(), PMI_SUCCESS);
        REQUIRE_SUCCESS(dmapp_c_pset_export(set));
        round.names = {set};
        if (round.job.pe != 0) REQUIRE_SUCCESS(dmapp_c_barrier_join(set));
      },
      [](Round& round) { return round.job.pe == 0 ? DMAPP_RC_BUSY : dmapp_c_pset_wait(round.names[0]); },
      told);
}

TEST(DmappFinalize, IsRefusedInACallback) {
  Round round;
  static std::atomic<int> refused{0};
  dmapp_queue_handle_t queue = 0;
  const auto callback = [](void*, void*, std::uint32_t, dmapp_pe_t) {
    if (dmapp_finalize() == DMAPP_RC_BUSY && dmapp_thread_unregister() == DMAPP_RC_BUSY) ++refused;
    return 0;
  };
  REQUIRE_SUCCESS(dmapp_queue_attach(callback, nullptr, 0, &queue));
  EXPECT_EQ(PMI_Barrier(), PMI_SUCCESS);
  std::uint64_t word = 1;
  REQUIRE_SUCCESS(dmapp_queue_put(queue, &word, 1, DMAPP_QW, round.job.pe, 0));
  while (refused == 0) REQUIRE_SUCCESS(dmapp_progress());
  EXPECT_EQ(dmapp_finalize(), DMAPP_RC_SUCCESS);
}

}  // namespace
