// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// OpenSHMEM beside DMAPP, which it stands on: the same operations to the same word of the symmetric heap.
#include "bench/common/dmapp_calls.hpp"
#include "bench/common/session.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"

#include <cstdlib>
#include <vector>

#include <shmem.h>

namespace bench {

namespace {

// A PE of OpenSHMEM; DMAPP's own calls reach the same heap.
struct ShmemPe {
  int pe = 0;
  int npes = 0;
  int partner = 0;
  dmapp_jobinfo_t job{};
  dmapp_seg_desc_t* heap = &job.sheap_seg;
  std::uint64_t* words = nullptr;

  ShmemPe() {
    shmem_init();
    pe = shmem_my_pe();
    npes = shmem_n_pes();
    partner = pe ^ 1;
    BENCH_DMAPP(dmapp_get_jobinfo(&job));
    words = static_cast<std::uint64_t*>(shmem_calloc(512, sizeof *words));
    if (words == nullptr) std::abort();
  }
  ~ShmemPe() { shmem_finalize(); }
  ShmemPe(const ShmemPe&) = delete;
  ShmemPe& operator=(const ShmemPe&) = delete;
};

// A step of ours in turns with one of DMAPP's; prints the row.
template <typename Ours, typename Other>
void compare(const ShmemPe& p, Stage& stage, const char* name, Ours ours, Other other) {
  constexpr int kTurns = 5;
  const auto time = [&](auto step) {
    return median(stage.run(
        256, kTestMs / kTurns, 1,
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
  row(p.pe, name, median(mine), median(limits));
}

void single_operations(const ShmemPe& p, Stage& stage) {
  static std::uint64_t value = 5;
  std::uint64_t* const there = p.words + 256;
  compare(
      p, stage, "shmem_put_nbi_quiet",
      [&] {
        shmem_put64_nbi(there, &value, 1, p.partner);
        shmem_quiet();
      },
      [&] {
        dmapp_put_nbi(there, p.heap, p.partner, &value, 1, DMAPP_QW);
        dmapp_gsync_wait();
      });
  compare(
      p, stage, "shmem_g", [&] { value = shmem_ulong_g(there, p.partner); },
      [&] { dmapp_get(&value, there, p.heap, p.partner, 1, DMAPP_QW); });
  std::int64_t found = 0;
  compare(
      p, stage, "shmem_fetch_add", [&] { value = shmem_ulong_atomic_fetch_add(there, 1, p.partner); },
      [&] { dmapp_afadd_qw(&found, there, p.heap, p.partner, 1); });
}

void put_latency(const ShmemPe& p, Stage& stage, double raw) {
  static std::uint64_t value = 0;
  const auto* flag = static_cast<volatile std::uint64_t*>(p.words);
  const auto send = [&] { shmem_put64(p.words, &value, 1, p.partner); };
  const auto await = [&] {
    while (*flag != value) {
    }
  };
  row(p.pe, "shmem_put64_memory_polled",
      median(stage.run(
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
          })),
      raw);
}

}  // namespace

void measure_shmem(int repetitions) {
  ShmemPe p;
  pin(p.pe);
  Stage stage(p.pe);
  for (int i = 0; i < repetitions; ++i) {
    single_operations(p, stage);
    const double raw = stage.raw_half_round_trip(kRawMs);
    put_latency(p, stage, raw);
    const auto barriers = [](int n) {
      for (int k = 0; k < n; ++k) shmem_barrier_all();
    };
    row(p.pe, "shmem_barrier_2_pes", median(stage.run(64, kTestMs, 1, barriers, barriers)), raw);
    auto* const sum = reinterpret_cast<long*>(p.words + 128);
    const auto reduce = [sum](int n) {
      for (int k = 0; k < n; ++k) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, sum, sum + 1, 1);
    };
    row(p.pe, "shmem_reduce_2_pes", median(stage.run(64, kTestMs, 1, reduce, reduce)), raw);
  }
  shmem_barrier_all();
}

void measure_shmem_8(int repetitions) {
  constexpr int kRounds = 300;
  constexpr int kBatch = 10;
  const ShmemPe p;
  Stage stage(p.pe);
  // In turns with the bare one, so that a stranger that takes the cores slows both.
  const auto time = [&](auto barrier) {
    const std::uint64_t a = Stopwatch::ticks();
    for (int k = 0; k < kBatch; ++k) barrier();
    return stage.watch().ns(Stopwatch::ticks() - a) / kBatch;
  };
  for (int i = 0; i < repetitions; ++i) {
    std::vector<double> bare, ours;
    for (int round = 0; round < kRounds; ++round) {
      bare.push_back(time([&] { bare_barrier(stage.memory(), p.npes); }));
      ours.push_back(time([] { shmem_barrier_all(); }));
    }
    row(p.pe, "shmem_barrier_8_pes", median(ours), median(bare));
  }
}

}  // namespace bench
