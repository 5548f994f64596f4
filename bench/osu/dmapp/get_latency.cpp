// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Time of a blocking DMAPP get from a PE that does nothing.
#include "bench/osu/dmapp/dmapp_pair.hpp"
#include "bench/osu/timed_loop.hpp"

int main(int argc, char** argv) {
  bench::OsuOptions options;
  options.parse("DMAPP get from a passive PE; run with: orrery run -n 2", argc, argv);
  bench::DmappPair pair(options, options.largest, false);
  if (!pair.first) return 0;
  bench::OsuTable table(options, "Orrery DMAPP Get Latency Test", "Latency (us)");
  for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
    const auto samples = bench::timed_loop(options, options.iterations_for(bytes), 1, [&] {
      BENCH_DMAPP(dmapp_get(pair.local, pair.window, pair.heap, pair.partner, bytes, DMAPP_BYTE));
    });
    std::optional<double> expected;
    if (pair.model) {
      using orrery::model::Op;
      const Op op = bytes < DMAPP_OFFLOAD_THRESHOLD ? Op::fma_get : Op::bte_get;
      expected = pair.model->local_event_us(op, {0, 1}, bytes);
    }
    table.line(bytes, bench::average_of(samples), samples, expected);
  }
  return 0;
}
