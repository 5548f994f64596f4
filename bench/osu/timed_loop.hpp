// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "bench/common/clock.hpp"
#include "bench/osu/table.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

namespace bench {

// Does `one` `iterations` times, after a warm-up that does not count: how long each took in us, times `share`
// (0.5: of a round trip, the way there). The loop allocates nothing.
template <typename One>
std::vector<double> timed_loop(const OsuOptions& options, int iterations, double share, One one) {
  const Stopwatch watch;
  std::vector<double> samples;
  samples.reserve(static_cast<std::size_t>(iterations));
  for (int i = -options.warm_up; i < iterations; ++i) {
    const std::uint64_t start = Stopwatch::ticks();
    one();
    const std::uint64_t end = Stopwatch::ticks();
    if (i >= 0) samples.push_back(watch.ns(end - start) / 1000 * share);
  }
  return samples;
}

inline double average_of(const std::vector<double>& samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

}  // namespace bench
