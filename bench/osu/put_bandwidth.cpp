// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Bandwidth of puts in windows of 64, by FMA or, with --bte, by the block transfer engine; with --both, of
// both PEs at once, which is the sum of the two directions.
#include "bench/common/clock.hpp"
#include "bench/osu/model.hpp"
#include "bench/osu/pair.hpp"
#include "bench/osu/table.hpp"

int main(int argc, char** argv) {
  constexpr int kWindow = 64;
  bool bte = false, both = false;
  bench::OsuOptions options;
  options.iterations = 200;
  options.extra_flags = {{"--bte", &bte, "by the block transfer engine instead of FMA"},
                         {"--both", &both, "both PEs put at once: the sum of both directions"}};
  options.parse("put bandwidth between two PEs; run with: orrery run -n 2", argc, argv);
  bench::OsuPair pair(options.largest);
  if (options.pinned) bench::pin(pair.session.rank);
  std::optional<bench::Model> model;
  if (options.model) model.emplace(pair.session);
  const bool first = pair.session.rank == 0;
  using Flows = std::vector<bench::Model::Flow>;
  const Flows flows = both ? Flows{{0, 1}, {1, 0}} : Flows{{0, 1}};
  const bench::Stopwatch watch;
  std::optional<bench::OsuTable> table;
  const std::string title = std::string("Orrery uGNI ") + (bte ? "RDMA" : "FMA") + " Put " +
                            (both ? "Bidirectional " : "") + "Bandwidth Test";
  if (first) table.emplace(options, title.c_str(), "Bandwidth (MB/s)");
  for (std::size_t bytes = options.smallest; bytes <= options.largest && (first || both); bytes *= 2) {
    std::vector<gni_post_descriptor_t> window(kWindow);
    for (auto& pd : window) {
      pd = bench::put_descriptor(bte ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT,
                                 pair.local, pair.peer, 0, bytes);
      pd.local_mem_hndl = pair.local_handle;
    }
    const int iterations = options.iterations_for(bytes);
    const double moved = static_cast<double>(bytes) * kWindow;
    std::vector<double> samples;
    double seconds = 0;
    if (both) PMI_Barrier();
    for (int i = -options.warm_up / 10; i < iterations; ++i) {
      const std::uint64_t start = bench::Stopwatch::ticks();
      for (auto& pd : window) pair.post(pd);
      for (int k = 0; k < kWindow; ++k) pair.reap();
      const double ns = watch.ns(bench::Stopwatch::ticks() - start);
      if (i < 0) continue;
      seconds += ns * 1e-9;
      samples.push_back(moved / ns * 1000);
    }
    double rate = moved * iterations / seconds / 1e6;
    if (both) {
      const std::vector<double> rates = bench::all_gather(rate, pair.session.rank, pair.session.size);
      for (double& sample : samples) sample *= 2;
      rate = rates[0] + rates[1];
    }
    if (!first) continue;
    std::optional<double> expected;
    if (model) {
      const auto op = bte ? orrery::model::Op::bte_put : orrery::model::Op::fma_put;
      expected =
          moved * static_cast<double>(flows.size()) / model->window_ns(op, flows, bytes, kWindow) * 1000;
    }
    table->line(bytes, rate, samples, expected);
  }
  table.reset();
  PMI_Barrier();
  return 0;
}
