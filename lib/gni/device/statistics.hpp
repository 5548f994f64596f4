// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/gni/gni_pub.h"

#include <array>
#include <atomic>
#include <cstdint>

// The counters of an attachment. They are counted where a call has something to refuse, never on the short
// way. What this NIC has no equal of stays 0: a mailbox has one kind of credit, its links lose nothing that a
// message would have to be sent again for, and there are no blocks that posts wait in (DLA).
namespace orrery::gni {

// Clients number the last counters in one of two ways, by whether they were compiled with the Aries-only
// block of gni_statistic_t. Both numberings name a place here; 7 is the one place that both use for different
// counters, and both of those are 0.
inline constexpr std::size_t kStatistics = 21;
inline constexpr std::size_t kFmaLaunchCount = 19;  // of the longer numbering
static_assert(GNI_STAT_MR_MULTI_PAGESIZE == 7, "our own flags leave the Aries-only block out");

class Statistics {
 public:
  void count(std::size_t which) { values_[which].fetch_add(1, std::memory_order_relaxed); }
  void add(std::size_t which, std::uint32_t more) {
    values_[which].fetch_add(more, std::memory_order_relaxed);
  }
  std::uint32_t value(std::size_t which) const { return values_[which].load(std::memory_order_relaxed); }
  void reset(std::size_t which) { values_[which].store(0, std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint32_t>, kStatistics> values_{};
};

}  // namespace orrery::gni
