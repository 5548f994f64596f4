// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// DMAPP puts a second, of all pairs together, in windows of 64 that a gsync ends; with --bandwidth, what they
// move. PE n puts to PE n + half.
#include "bench/osu/dmapp/dmapp_pair.hpp"

int main(int argc, char** argv) {
  constexpr int kWindow = 64;
  bool bandwidth = false;
  bench::OsuOptions options;
  options.iterations = 1000;
  options.largest = 65536;
  options.extra_flags = {{"--bandwidth", &bandwidth, "print MB/s"}};
  options.parse("DMAPP puts a second between pairs of PEs; run with: orrery run -n 2 (or any even number)",
                argc, argv);
  bench::DmappPair pair(options, options.largest, true);
  std::optional<bench::OsuTable> table;
  if (pair.first)
    table.emplace(options, bandwidth ? "Orrery DMAPP Put Bandwidth Test" : "Orrery DMAPP Put Rate Test",
                  bandwidth ? "Bandwidth (MB/s)" : "Rate (M/s)");
  for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
    const double scale = bandwidth ? static_cast<double>(bytes) : 1;
    std::vector<double> samples;
    const double rate = bench::rate_of(pair, options, options.iterations_for(bytes), kWindow, &samples, [&] {
      BENCH_DMAPP(dmapp_put_nbi(pair.window, pair.heap, pair.partner, pair.local, bytes, DMAPP_BYTE));
    });
    if (!pair.first) continue;
    for (double& sample : samples) sample *= scale;
    std::optional<double> expected;
    if (pair.model) {
      using orrery::model::Op;
      const Op op = bytes < DMAPP_OFFLOAD_THRESHOLD ? Op::fma_put : Op::bte_put;
      expected = kWindow * pair.half * scale / pair.model->window_ns(op, pair.flows(), bytes, kWindow) * 1000;
    }
    table->line(bytes, rate * scale, samples, expected);
  }
  return 0;
}
