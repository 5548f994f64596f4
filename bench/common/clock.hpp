// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <sched.h>
#include <time.h>
#include <x86intrin.h>

namespace bench {

inline double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Whether the program's clock is virtual: then the processor's counter says nothing, and clock_gettime all.
inline bool time_is_virtual() {
  static const bool is = [] {
    const char* const machine = std::getenv("ORRERY_MACHINE");
    const char* const clock = std::getenv("ORRERY_CLOCK");
    return machine != nullptr && *machine != 0 &&
           (clock == nullptr || *clock == 0 || std::string_view(clock) == "virtual");
  }();
  return is;
}

// The time stamp counter in nanoseconds, calibrated once against the monotonic clock: best of seven, so that
// a preemption spoils one try only.
class Stopwatch {
 public:
  Stopwatch() {
    ns_per_tick_ = 1;
    if (time_is_virtual()) return;
    double best = 1e18;
    for (int i = 0; i < 7; ++i) {
      const double a = now_ns();
      const std::uint64_t x = ticks();
      while (now_ns() - a < 3e6) {
      }
      const std::uint64_t y = ticks();
      best = std::min(best, (now_ns() - a) / static_cast<double>(y - x));
    }
    ns_per_tick_ = best;
  }
  static std::uint64_t ticks() {
    if (time_is_virtual()) return static_cast<std::uint64_t>(now_ns());
    unsigned aux = 0;
    return __rdtscp(&aux);
  }
  double ns(std::uint64_t ticks) const { return static_cast<double>(ticks) * ns_per_tick_; }

 private:
  double ns_per_tick_ = 0;
};

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

inline double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<std::size_t>(p * static_cast<double>(values.size())))];
}

// Pins the calling process to one of the cores that it may use: the rank-th, round and round.
inline void pin(int rank) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const int count = CPU_COUNT(&allowed);
  int want = rank % count;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || want-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

}  // namespace bench
