// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/common/reduction.hpp"
#include "bench/common/session.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"

#include <climits>
#include <cstdio>
#include <cstring>
#include <vector>

namespace bench {

namespace {

constexpr int kTreeRounds = 200;

std::uint64_t bits_of(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

void measure_collective(int repetitions) {
  Session session;
  pin(session.rank);
  Stage stage(session.rank);
  Reduction reduction(session, INT_MAX);
  const auto barrier = [&](int n) {
    for (int i = 0; i < n; ++i) reduction.run(GNI_FMA_CE_AND, 0);
  };
  const auto sum = [&](int n) {
    for (int i = 0; i < n; ++i) reduction.run(GNI_FMA_CE_FPADD, bits_of(1.5));
  };
  for (int i = 0; i < repetitions; ++i) {
    const double raw = stage.raw_half_round_trip(kRawMs);
    const double barriers = median(stage.run(64, kTestMs, 1, barrier, barrier));
    const double sums = median(stage.run(64, kTestMs, 1, sum, sum));
    row(session.rank, "ce_barrier_2_pes", barriers, raw);
    row(session.rank, "ce_allreduce8_2_pes", sums, raw);
  }
}

void measure_collective_8(int repetitions) {
  Session session;
  Stage stage(session.rank);
  Reduction reduction(session, 0);
  const auto time = [&](auto step) {
    std::vector<double> samples;
    for (int i = 0; i < kTreeRounds; ++i) {
      const std::uint64_t a = Stopwatch::ticks();
      for (int k = 0; k < 10; ++k) step();
      samples.push_back(stage.watch().ns(Stopwatch::ticks() - a) / 10);
    }
    return median(samples);
  };
  for (int i = 0; i < repetitions; ++i) {
    const double bare = time([&] { bare_barrier(stage.memory(), session.size); });
    PMI_Barrier();
    const double ours = time([&] { reduction.run(GNI_FMA_CE_FPADD, bits_of(1.5)); });
    PMI_Barrier();
    row(session.rank, "ce_allreduce8_8_pes", ours, bare);
  }
}

}  // namespace bench
