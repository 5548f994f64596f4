// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "bench/common/clock.hpp"
#include "bench/osu/model.hpp"
#include "bench/osu/table.hpp"

namespace bench {

// Times `step`, which all PEs make together, and prints PE 0's line: one step's time, the mean over the PEs.
// `bytes`: what the line calls its size. `expected`: asked for when the options want the model's word.
template <typename Step, typename Expected>
void time_collective(Session& session, const OsuOptions& options, const char* title, std::size_t bytes,
                     Step step, Expected expected) {
  std::optional<Model> model;
  if (options.model) model.emplace(session);
  const Stopwatch watch;
  std::vector<double> samples;
  double total = 0;
  PMI_Barrier();
  for (int i = -options.warm_up; i < options.iterations; ++i) {
    const std::uint64_t start = Stopwatch::ticks();
    step();
    if (i < 0) continue;
    samples.push_back(watch.ns(Stopwatch::ticks() - start) / 1000);
    total += samples.back();
  }
  double mean = 0;
  for (const double each : all_gather(total / options.iterations, session.rank, session.size)) mean += each;
  mean /= session.size;
  if (session.rank == 0) {
    OsuTable table(options, title, "Latency (us)");
    table.line(bytes, mean, samples, model ? std::optional(expected(*model)) : std::nullopt);
  }
  PMI_Barrier();
}

}  // namespace bench
