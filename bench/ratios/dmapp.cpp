// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// DMAPP beside uGNI: both interfaces in one process, on one NIC, to the same words of the symmetric heap.
#include "bench/common/dmapp_calls.hpp"
#include "bench/common/session.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sched.h>

namespace bench {

namespace {

constexpr std::size_t kBytes = 64 << 10;
constexpr std::size_t kWord = 4096;  // what both interfaces use

// A PE with both interfaces.
struct Both {
  Session session;
  Stage stage;
  dmapp_jobinfo_t job{};
  dmapp_seg_desc_t* heap = &job.sheap_seg;
  std::byte* window = nullptr;
  std::byte* local = nullptr;
  gni_mem_handle_t local_handle{};
  gni_cq_handle_t queue = nullptr;
  gni_ep_handle_t ep = nullptr;
  Window peer;
  int partner = 0;

  Both() : stage(session.rank) {
    dmapp_rma_attrs_t actual{};
    BENCH_DMAPP(dmapp_init(nullptr, &actual));
    BENCH_DMAPP(dmapp_get_jobinfo(&job));
    window = static_cast<std::byte*>(dmapp_sheap_malloc(kBytes));
    local = static_cast<std::byte*>(std::aligned_alloc(4096, kBytes));
    if (window == nullptr || local == nullptr) std::abort();
    std::memset(window, 0, kBytes);
    std::memset(local, 0, kBytes);
    queue = session.queue(1024);
    local_handle = session.registered(local, kBytes);
    partner = session.rank ^ 1;
    const Window mine{reinterpret_cast<std::uint64_t>(window), session.registered(window, kBytes)};
    peer = all_gather(mine, session.rank, session.size)[static_cast<std::size_t>(partner)];
    ep = session.endpoint(partner, queue);
    PMI_Barrier();
  }
};

// Nanoseconds of a step of rank 0, in turns with one of the other interface, so that a host that slows down
// slows both; prints the row.
template <typename Ours, typename Other>
void compare(Both& b, const char* name, int batch, Ours ours, Other other) {
  constexpr int kTurns = 5;
  const auto time = [&](auto step) {
    return median(b.stage.run(
        batch, kTestMs / kTurns, 1,
        [&](int n) {
          for (int i = 0; i < n; ++i) step();
        },
        [](int) {}));
  };
  std::vector<double> mine, limits;
  for (int turn = 0; turn < kTurns; ++turn) {
    limits.push_back(time(other));
    mine.push_back(time(ours));
  }
  row(b.session.rank, name, median(mine), median(limits));
}

void single_operations(Both& b) {
  alignas(8) static std::uint64_t word = 5;
  std::byte* const there = b.window + kWord;
  auto silent = put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_SILENT, &word, b.peer, kWord, 8);
  compare(
      b, "dmapp_put8_nbi", 256, [&] { dmapp_put_nbi(there, b.heap, b.partner, &word, 1, DMAPP_QW); },
      [&] { GNI_PostFma(b.ep, &silent); });
  auto with_event = silent;
  with_event.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
  const auto post_and_reap = [&](gni_post_descriptor_t& pd) {
    GNI_PostFma(b.ep, &pd);
    reap(b.queue);
  };
  compare(
      b, "dmapp_put8_nbi_gsync", 256,
      [&] {
        dmapp_put_nbi(there, b.heap, b.partner, &word, 1, DMAPP_QW);
        dmapp_gsync_wait();
      },
      [&] { post_and_reap(with_event); });
  auto get = put_descriptor(GNI_POST_FMA_GET, GNI_CQMODE_LOCAL_EVENT, b.local, b.peer, kWord, 8);
  get.local_mem_hndl = b.local_handle;
  compare(
      b, "dmapp_get8", 256, [&] { dmapp_get(&word, there, b.heap, b.partner, 1, DMAPP_QW); },
      [&] { post_and_reap(get); });
  auto amo = put_descriptor(GNI_POST_AMO, GNI_CQMODE_LOCAL_EVENT, b.local, b.peer, kWord, 8);
  amo.local_mem_hndl = b.local_handle;
  amo.amo_cmd = GNI_FMA_ATOMIC_FADD;
  amo.first_operand = 1;
  std::int64_t found = 0;
  compare(
      b, "dmapp_afadd", 256, [&] { dmapp_afadd_qw(&found, there, b.heap, b.partner, 1); },
      [&] { post_and_reap(amo); });
}

void put_latency(Both& b) {
  static std::uint64_t value = 0;
  const auto* flag = reinterpret_cast<volatile std::uint64_t*>(b.window);
  const auto send = [&] { dmapp_put_nbi(b.window, b.heap, b.partner, &value, 1, DMAPP_QW); };
  const auto await = [&] {
    while (*flag != value) {
    }
  };
  const double raw = b.stage.raw_half_round_trip(kRawMs);
  const double ours = median(b.stage.run(
      64, kTestMs, 2,
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          ++value;
          send();
          await();
        }
      },
      [&](int n) {
        for (int i = 0; i < n; ++i) {
          ++value;
          await();
          send();
        }
      }));
  row(b.session.rank, "dmapp_put8_memory_polled", ours, raw);
}

dmapp_c_pset_handle_t set_of_all_pes(int npes) {
  dmapp_c_pset_desc_t all{};
  all.type = DMAPP_C_PSET_DELIMITER_STRIDED;
  all.u.stride_type = {.n_pes = npes, .base_pe = 0, .stride_pe = 1};
  dmapp_c_pset_handle_t set = 0;
  BENCH_DMAPP(dmapp_c_pset_create(&all, 1, 0, nullptr, &set));
  PMI_Barrier();
  BENCH_DMAPP(dmapp_c_pset_export(set));
  PMI_Barrier();
  return set;
}

void barrier_of(dmapp_c_pset_handle_t set) {
  dmapp_c_barrier_join(set);
  dmapp_c_pset_wait(set);
}

}  // namespace

void measure_dmapp(int repetitions) {
  Both b;
  pin(b.session.rank);
  const dmapp_c_pset_handle_t set = set_of_all_pes(b.job.npes);
  for (int i = 0; i < repetitions; ++i) {
    single_operations(b);
    put_latency(b);
    const double raw = b.stage.raw_half_round_trip(kRawMs);
    const auto barriers = [&](int n) {
      for (int k = 0; k < n; ++k) barrier_of(set);
    };
    row(b.session.rank, "dmapp_barrier_2_pes", median(b.stage.run(64, kTestMs, 1, barriers, barriers)), raw);
  }
  PMI_Barrier();
}

void measure_dmapp_8(int repetitions) {
  constexpr int kRounds = 300;
  dmapp_rma_attrs_t actual{};
  dmapp_jobinfo_t job{};
  BENCH_DMAPP(dmapp_init(nullptr, &actual));
  BENCH_DMAPP(dmapp_get_jobinfo(&job));
  Stage stage(job.pe);
  const dmapp_c_pset_handle_t set = set_of_all_pes(job.npes);
  const auto time = [&](auto barrier) {
    std::vector<double> samples;
    for (int i = 0; i < kRounds; ++i) {
      const std::uint64_t a = Stopwatch::ticks();
      for (int k = 0; k < 10; ++k) barrier();
      samples.push_back(stage.watch().ns(Stopwatch::ticks() - a) / 10);
    }
    PMI_Barrier();
    return median(samples);
  };
  for (int i = 0; i < repetitions; ++i) {
    const double bare = time([&] { bare_barrier(stage.memory(), job.npes); });
    row(job.pe, "dmapp_barrier_8_pes", time([&] { barrier_of(set); }), bare);
  }
}

}  // namespace bench
