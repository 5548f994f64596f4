// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Half round trip of a DMAPP put: each PE puts into the other's symmetric memory and polls its own for the
// answer.
#include "bench/osu/dmapp/dmapp_pair.hpp"
#include "bench/osu/timed_loop.hpp"

int main(int argc, char** argv) {
  bench::OsuOptions options;
  options.parse("DMAPP put ping-pong between two PEs; run with: orrery run -n 2", argc, argv, 8);
  const std::size_t flag_at = (options.largest + 7) / 8 * 8;
  bench::DmappPair pair(options, flag_at + 8, false);
  std::optional<bench::OsuTable> table;
  if (pair.first) table.emplace(options, "Orrery DMAPP Put Latency Test", "Latency (us)");
  std::uint64_t value = 0;
  for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
    // Of up to a word the data are what is polled; longer ones are a put with a flag.
    const bool flagged = bytes > sizeof value;
    std::byte* const flag = pair.window + (flagged ? flag_at : 0);
    const auto send = [&] {
      if (flagged) {
        BENCH_DMAPP(dmapp_put_flag_nbi(pair.window, pair.heap, pair.partner, pair.local, bytes, DMAPP_BYTE,
                                       flag, value));
      } else {
        BENCH_DMAPP(dmapp_put_nbi(flag, pair.heap, pair.partner, &value, 1, DMAPP_QW));
      }
      BENCH_DMAPP(dmapp_gsync_wait());
    };
    const auto await = [&] {
      for (int spins = 0; *reinterpret_cast<volatile std::uint64_t*>(flag) != value; ++spins) {
        if (spins % 64 == 63) dmapp_progress();
        if (spins > 1000) sched_yield();
      }
    };
    PMI_Barrier();
    const auto samples = bench::timed_loop(options, options.iterations_for(bytes), 0.5, [&] {
      ++value;
      if (pair.first) send();
      await();
      if (!pair.first) send();
    });
    if (!pair.first) continue;
    std::optional<double> expected;
    if (pair.model) {
      using orrery::model::Op;
      const Op op = bytes < DMAPP_OFFLOAD_THRESHOLD || flagged ? Op::fma_put : Op::bte_put;
      expected = (pair.model->data_us(op, {0, 1}, bytes) + pair.model->data_us(op, {1, 0}, bytes)) / 2;
    }
    table->line(bytes, bench::average_of(samples), samples, expected);
  }
  return 0;
}
