// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Bandwidth of puts in windows of 64, by FMA or, with --bte, by the block transfer engine.
#include "bench/osu/pair.hpp"
#include "bench/osu/table.hpp"

int main(int argc, char** argv) {
  constexpr int kWindow = 64;
  bool bte = false;
  bench::OsuOptions options;
  options.iterations = 200;
  options.parse("put bandwidth between two PEs; run with: orrery run -n 2", argc, argv, 1, 1, &bte);
  bench::OsuPair pair(options.largest);
  if (options.pinned) bench::pin(pair.session.rank);
  if (pair.session.rank == 0) {
    const bench::Stopwatch watch;
    bench::OsuTable table(options,
                          bte ? "Orrery uGNI RDMA Put Bandwidth Test" : "Orrery uGNI FMA Put Bandwidth Test",
                          "Bandwidth (MB/s)");
    for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
      std::vector<gni_post_descriptor_t> window(kWindow);
      for (auto& pd : window) {
        pd = bench::put_descriptor(bte ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT,
                                   pair.local, pair.peer, 0, bytes);
        pd.local_mem_hndl = pair.local_handle;
      }
      const int iterations = options.iterations_for(bytes);
      std::vector<double> samples;
      double seconds = 0;
      for (int i = -options.warm_up / 10; i < iterations; ++i) {
        const std::uint64_t start = bench::Stopwatch::ticks();
        for (auto& pd : window) pair.post(pd);
        for (int k = 0; k < kWindow; ++k) pair.reap();
        const double ns = watch.ns(bench::Stopwatch::ticks() - start);
        if (i < 0) continue;
        seconds += ns * 1e-9;
        samples.push_back(static_cast<double>(bytes) * kWindow / ns * 1000);
      }
      table.line(bytes, static_cast<double>(bytes) * kWindow * iterations / seconds / 1e6, samples);
    }
  }
  PMI_Barrier();
  return 0;
}
