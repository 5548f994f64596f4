// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The times of single calls of some tens of nanoseconds, by the time stamp counter, less what reading it
// costs (the median of empty readings); kept as a histogram of ticks, since a list of them would be one more
// stream through the caches that the calls are measured in. Calls come in batches of 256, some 20 us; a batch
// counts if the core was whole before and after it (bench/common/core_share.hpp): else a percentile over
// single calls is one of the strangers on the core's other hardware thread. The first batch after a
// stranger's stay does not count either: it finds the stranger's lines in the caches. One process, one
// thread.
//   TimedCalls calls;  { const auto before = ticks(); call(); calls.add(before, ticks()); }  calls.at(0.99)
#pragma once

#include "bench/common/clock.hpp"
#include "bench/common/core_share.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

class TimedCalls {
 public:
  TimedCalls() : cost_(empty_reading()), fastest_(fastest_probe()) { batch_.reserve(kBatch); }

  void add(std::uint64_t before, std::uint64_t after) {
    const std::uint64_t took = after - before;
    batch_.push_back(static_cast<std::uint32_t>(took > cost_ ? took - cost_ : 0));
    if (batch_.size() == kBatch) end_batch();
  }

  // A p99 of fewer calls says little.
  static constexpr std::size_t kEnough = 20'000;
  // How many of all calls counted, 0..1. All of them where the core was never whole for long.
  double share() const {
    return all_.calls == 0 ? 0 : static_cast<double>(counted().calls) / static_cast<double>(all_.calls);
  }
  bool only_whole() const { return whole_.calls >= kEnough; }

  // Nanoseconds that the given part of the calls, 0..1, took at most.
  double at(double part) const {
    const Histogram& calls = counted();
    if (calls.calls == 0) return 0;
    const auto rank = static_cast<std::uint64_t>(part * static_cast<double>(calls.calls - 1));
    std::uint64_t seen = 0;
    std::size_t ticks = 0;
    while (ticks + 1 < kTicks && (seen += calls.of[ticks]) <= rank) ++ticks;
    return watch().ns(ticks);
  }

 private:
  static constexpr std::size_t kBatch = 256;
  static constexpr int kPatience = 10'000;        // probes, about 3 ms
  static constexpr std::size_t kTicks = 1 << 14;  // some microseconds; what takes longer counts as that

  struct Histogram {
    std::vector<std::uint32_t> of = std::vector<std::uint32_t>(kTicks);  // calls, by ticks
    std::size_t calls = 0;
    void add(const std::vector<std::uint32_t>& batch) {
      for (const std::uint32_t took : batch) ++of[std::min<std::size_t>(took, kTicks - 1)];
      calls += batch.size();
    }
  };

  static const Stopwatch& watch() {
    static const Stopwatch instance;
    return instance;
  }
  static std::uint64_t empty_reading() {
    static const std::uint64_t value = [] {
      std::vector<std::uint64_t> empty(10'001);
      for (auto& e : empty) {
        const std::uint64_t a = Stopwatch::ticks();
        e = Stopwatch::ticks() - a;
      }
      std::nth_element(empty.begin(), empty.begin() + 5000, empty.end());
      return empty[5000];
    }();
    return value;
  }
  // A core that is shared for a millisecond at a time is whole at some moment of these 30.
  static std::uint64_t fastest_probe() {
    static const std::uint64_t value = [] {
      std::uint64_t fastest = issue_probe();
      for (int i = 0; i < 100'000; ++i) fastest = std::min(fastest, issue_probe());
      return fastest;
    }();
    return value;
  }

  const Histogram& counted() const { return only_whole() ? whole_ : all_; }

  void end_batch() {
    const std::uint64_t probe = issue_probe();
    const bool whole = !after_stranger_ && std::max(probe, probe_before_) * 10 <= fastest_ * 11;
    after_stranger_ = probe * 10 > fastest_ * 11;
    if (whole) whole_.add(batch_);
    all_.add(batch_);
    batch_.clear();
    probe_before_ = probe;
    // Rather wait than measure what does not count; at most as long as strangers usually stay, some times.
    for (int i = 0; i < kPatience && probe_before_ * 10 > fastest_ * 11; ++i) probe_before_ = issue_probe();
  }

  const std::uint64_t cost_, fastest_;
  std::uint64_t probe_before_ = UINT64_MAX / 16;  // nothing is known of the core before the first batch
  bool after_stranger_ = true;
  Histogram whole_, all_;
  std::vector<std::uint32_t> batch_;
};

}  // namespace bench
