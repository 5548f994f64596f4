// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "bench/common/clock.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

// Whether a core was ours alone. A virtual machine's core is often one of two hardware threads, and while a
// stranger works on the other, the issue slots of the core are shared: code that fills them takes up to twice
// as long, for a millisecond or so at a time, whereas a chain of dependent steps (a line that travels, a load
// that waits) hardly notices. A measurement that does not tell the two apart reports either, by chance.
namespace bench {

// The ticks that a fixed number of independent additions take right now. They need nothing but issue slots.
inline std::uint64_t issue_probe() {
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
  const std::uint64_t start = Stopwatch::ticks();
  for (int i = 0; i < 512; ++i) {
    asm volatile(
        "add $1, %0\n\tadd $1, %1\n\tadd $1, %2\n\tadd $1, %3\n\t"
        "add $1, %0\n\tadd $1, %1\n\tadd $1, %2\n\tadd $1, %3\n\t"
        : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
  }
  return Stopwatch::ticks() - start;
}

// What a process learnt about its cores, kept from one measurement to the next.
struct CoreShare {
  std::uint64_t fastest_probe = UINT64_MAX;
  std::size_t kept = 0;   // samples that count
  std::size_t taken = 0;  // and all samples
};

// Samples of one measurement, those apart that were taken on whole cores.
class WholeCoreSamples {
 public:
  explicit WholeCoreSamples(CoreShare& share) : share_(share) {}

  // probe: the slowest issue_probe() beside this sample. A core is whole within a tenth of the fastest probe.
  void add(double value, std::uint64_t probe) {
    share_.fastest_probe = std::min(share_.fastest_probe, probe);
    all_.push_back(value);
    if (probe * 10 <= share_.fastest_probe * 11) whole_.push_back(value);
  }

  // Fewer say little about a median.
  static constexpr std::size_t kEnough = 24;
  bool enough() const { return whole_.size() >= kEnough; }

  // The values taken on whole cores; all of them when the cores were never whole for long.
  const std::vector<double>& take() {
    const std::vector<double>& values = enough() ? whole_ : all_;
    share_.kept += values.size();
    share_.taken += all_.size();
    return values;
  }

 private:
  CoreShare& share_;
  std::vector<double> all_;
  std::vector<double> whole_;
};

}  // namespace bench
