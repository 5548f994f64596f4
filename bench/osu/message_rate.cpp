// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Puts a second, of all pairs together, each with 64 under way. Any even number of PEs: PE n puts to PE
// n + half.
#include "bench/common/clock.hpp"
#include "bench/osu/model.hpp"
#include "bench/osu/pair.hpp"
#include "bench/osu/table.hpp"

int main(int argc, char** argv) {
  constexpr int kWindow = 64;
  bool bte = false;
  bench::OsuOptions options;
  options.iterations = 1000;
  options.largest = 4096;
  options.extra_flags = {{"--bte", &bte, "by the block transfer engine instead of FMA"}};
  options.parse("puts a second between pairs of PEs; run with: orrery run -n 2 (or any even number)", argc,
                argv);
  bench::OsuPair pair(options.largest, true);
  if (options.pinned) bench::pin(pair.session.rank);
  std::optional<bench::Model> model;
  if (options.model) model.emplace(pair.session);
  const int half = pair.session.size / 2;
  const bool sender = pair.session.rank < half, first = pair.session.rank == 0;
  std::vector<bench::Model::Flow> flows;
  for (int i = 0; i < half; ++i) flows.emplace_back(i, i + half);
  const bench::Stopwatch watch;
  std::optional<bench::OsuTable> table;
  if (first) table.emplace(options, "Orrery uGNI Put Rate Test", "Rate (M/s)");
  for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
    const int iterations = options.iterations_for(bytes);
    std::vector<double> samples;
    double ns = 0;
    PMI_Barrier();
    if (sender) {
      std::vector<gni_post_descriptor_t> window(kWindow);
      for (auto& pd : window) {
        pd = bench::put_descriptor(bte ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT,
                                   pair.local, pair.peer, 0, bytes);
        pd.local_mem_hndl = pair.local_handle;
      }
      for (int i = -options.warm_up / 10; i < iterations; ++i) {
        const std::uint64_t start = bench::Stopwatch::ticks();
        for (auto& pd : window) pair.post(pd);
        for (int k = 0; k < kWindow; ++k) pair.reap();
        if (i < 0) continue;
        const double took = watch.ns(bench::Stopwatch::ticks() - start);
        ns += took;
        samples.push_back(kWindow / took * 1000);
      }
    }
    const double mine = sender ? static_cast<double>(kWindow) * iterations / ns * 1000 : 0;
    double rate = 0;
    for (const double each : bench::all_gather(mine, pair.session.rank, pair.session.size)) rate += each;
    if (!first) continue;
    for (double& sample : samples) sample *= half;
    std::optional<double> expected;
    if (model) {
      const auto op = bte ? orrery::model::Op::bte_put : orrery::model::Op::fma_put;
      expected = static_cast<double>(kWindow) * half / model->window_ns(op, flows, bytes, kWindow) * 1000;
    }
    table->line(bytes, rate, samples, expected);
  }
  table.reset();
  PMI_Barrier();
  return 0;
}
