// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A DMAPP barrier of all PEs, or with --reduce a sum of one 8-byte word. The size in its line is the PEs,
// and the model's figure that of a dissemination barrier of puts.
#include "bench/osu/dmapp/dmapp_pair.hpp"
#include "bench/osu/timed_loop.hpp"

int main(int argc, char** argv) {
  bool reduce = false;
  bench::OsuOptions options;
  options.iterations = 1000;
  options.has_sizes = false;
  options.extra_flags = {{"--reduce", &reduce, "a sum of one word instead"}};
  options.parse("DMAPP barrier of all PEs; run with: orrery run -n 2 (or any even number)", argc, argv);
  bench::DmappPair pair(options, 64, true);
  dmapp_c_pset_desc_t all{};
  all.type = DMAPP_C_PSET_DELIMITER_STRIDED;
  all.u.stride_type = {.n_pes = pair.job.npes, .base_pe = 0, .stride_pe = 1};
  dmapp_c_pset_handle_t set = 0;
  BENCH_DMAPP(dmapp_c_pset_create(&all, 1, 0, nullptr, &set));
  PMI_Barrier();
  BENCH_DMAPP(dmapp_c_pset_export(set));
  PMI_Barrier();
  std::int64_t in = 1, out = 0;
  const auto samples = bench::timed_loop(options, options.iterations, 1, [&] {
    if (reduce) {
      BENCH_DMAPP(dmapp_c_greduce_start(set, &in, &out, 1, DMAPP_C_INT64, DMAPP_C_SUM));
    } else {
      BENCH_DMAPP(dmapp_c_barrier_join(set));
    }
    BENCH_DMAPP(dmapp_c_pset_wait(set));
  });
  double mean = 0;
  for (const double each : bench::all_gather(bench::average_of(samples), pair.job.pe, pair.job.npes))
    mean += each / pair.job.npes;
  if (pair.first) {
    bench::OsuTable table(options, reduce ? "Orrery DMAPP Reduction Test" : "Orrery DMAPP Barrier Test",
                          "Latency (us)");
    std::optional<double> expected;
    using orrery::model::Collective;
    if (pair.model) expected = pair.model->collective_us(Collective::software_barrier, pair.job.npes, 8);
    table.line(static_cast<std::size_t>(pair.job.npes), mean, samples, expected);
  }
  BENCH_DMAPP(dmapp_c_pset_destroy(set));
  return 0;
}
