// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The times of single calls of some tens of nanoseconds, by the time stamp counter, less what reading it
// costs (the median of empty readings). Calls come in batches of 256, some 20 us; a batch counts if the core
// was whole before and after it (bench/common/core_share.hpp): else a percentile over single calls is one of
// the strangers on the core's other hardware thread. The first batch after a stranger's stay does not count
// either: it finds the stranger's lines in the caches. One process, one thread.
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
  TimedCalls() : cost_(empty_reading()), fastest_(fastest_probe()) {
    whole_.reserve(1 << 22);
    all_.reserve(1 << 22);
    batch_.reserve(kBatch);
  }

  void add(std::uint64_t before, std::uint64_t after) {
    const std::uint64_t took = after - before;
    batch_.push_back(static_cast<std::uint32_t>(took > cost_ ? took - cost_ : 0));
    if (batch_.size() == kBatch) end_batch();
  }

  // A p99 of fewer calls says little.
  static constexpr std::size_t kEnough = 20'000;
  // How many of all calls counted, 0..1. All of them where the core was never whole for long.
  double share() const {
    return all_.empty() ? 0 : static_cast<double>(counted().size()) / static_cast<double>(all_.size());
  }
  bool only_whole() const { return whole_.size() >= kEnough; }

  // Nanoseconds that the given part of the calls, 0..1, took at most.
  double at(double part) {
    std::vector<std::uint32_t>& calls = only_whole() ? whole_ : all_;
    if (calls.empty()) return 0;
    const auto i = static_cast<std::ptrdiff_t>(part * static_cast<double>(calls.size() - 1));
    std::nth_element(calls.begin(), calls.begin() + i, calls.end());
    return watch().ns(calls[static_cast<std::size_t>(i)]);
  }

 private:
  static constexpr std::size_t kBatch = 256;
  static constexpr int kPatience = 10'000;  // probes, about 3 ms

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

  const std::vector<std::uint32_t>& counted() const { return only_whole() ? whole_ : all_; }

  void end_batch() {
    const std::uint64_t probe = issue_probe();
    const bool whole = !after_stranger_ && std::max(probe, probe_before_) * 10 <= fastest_ * 11;
    after_stranger_ = probe * 10 > fastest_ * 11;
    if (whole && whole_.size() + kBatch <= whole_.capacity())
      whole_.insert(whole_.end(), batch_.begin(), batch_.end());
    if (all_.size() + kBatch <= all_.capacity()) all_.insert(all_.end(), batch_.begin(), batch_.end());
    batch_.clear();
    probe_before_ = probe;
    // Rather wait than measure what does not count; at most as long as strangers usually stay, some times.
    for (int i = 0; i < kPatience && probe_before_ * 10 > fastest_ * 11; ++i) probe_before_ = issue_probe();
  }

  const std::uint64_t cost_, fastest_;
  std::uint64_t probe_before_ = UINT64_MAX / 16;  // nothing is known of the core before the first batch
  bool after_stranger_ = true;
  std::vector<std::uint32_t> whole_, all_, batch_;
};

}  // namespace bench
