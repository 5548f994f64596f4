// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// DMAPP additions a second, of all pairs together, in windows of 64 that a gsync ends; or with results. Each
// takes another word of the target.
#include "bench/osu/dmapp/dmapp_pair.hpp"

int main(int argc, char** argv) {
  constexpr int kWindow = 64;
  bool fetching = false;
  bench::OsuOptions options;
  options.iterations = 1000;
  options.has_sizes = false;
  options.extra_flags = {{"--fetch", &fetching, "with the result"}};
  options.parse("DMAPP AMOs a second between pairs of PEs; run with: orrery run -n 2 (or any even number)",
                argc, argv);
  bench::DmappPair pair(options, kWindow * 8, true);
  std::optional<bench::OsuTable> table;
  if (pair.first) table.emplace(options, "Orrery DMAPP AMO Rate Test", "Rate (M/s)");
  std::vector<double> samples;
  int next = 0;
  const double rate = bench::rate_of(pair, options, options.iterations, kWindow, &samples, [&] {
    const std::size_t at = static_cast<std::size_t>(next++ % kWindow) * 8;
    if (fetching) {
      BENCH_DMAPP(dmapp_afadd_qw_nbi(pair.local + at, pair.window + at, pair.heap, pair.partner, 1));
    } else {
      BENCH_DMAPP(dmapp_aadd_qw_nbi(pair.window + at, pair.heap, pair.partner, 1));
    }
  });
  if (!pair.first) return 0;
  std::optional<double> expected;
  if (pair.model) {
    using orrery::model::Op;
    const Op op = fetching ? Op::fetch_amo_miss : Op::amo_miss;
    expected = kWindow * pair.half / pair.model->window_ns(op, pair.flows(), 8, kWindow) * 1000;
  }
  table->line(8, rate, samples, expected);
  return 0;
}
