// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/engine/types.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace orrery::sim {

// Latencies in a histogram of relative precision 1/32: small, exact to add up, independent of order.
class LatencyHistogram {
 public:
  static constexpr int kSubBits = 5;
  void add(Tick t) {
    const std::size_t at = index(t);
    if (at >= buckets_.size()) [[unlikely]]
      grow(at);
    ++buckets_[at];
    ++count_;
    sum_ += t;
    if (t > max_) max_ = t;
  }
  void add(const LatencyHistogram& other);
  std::uint64_t count() const { return count_; }
  double mean() const { return count_ ? static_cast<double>(sum_) / static_cast<double>(count_) : 0; }
  Tick max() const { return max_; }
  // The smallest latency that `fraction` (0..1) of the packets did not exceed, to the bucket's upper end.
  Tick percentile(double fraction) const;
  std::size_t bytes() const { return buckets_.capacity() * sizeof(buckets_[0]); }

 private:
  static std::size_t index(Tick t) {
    if (t < (Tick{1} << kSubBits)) return static_cast<std::size_t>(t);
    const int shift = 63 - std::countl_zero(t) - kSubBits;
    return (static_cast<std::size_t>(shift) << kSubBits) + static_cast<std::size_t>(t >> shift);
  }
  static Tick upper(std::size_t index);
  void grow(std::size_t index);
  std::vector<std::uint64_t> buckets_;  // up to the largest latency that came
  std::uint64_t count_ = 0, sum_ = 0;
  Tick max_ = 0;
};

// Totals since the start of a run. Integers that add up, so that partitions can be summed in any order.
struct Counters {
  std::uint64_t injected = 0;         // packets that entered the network
  std::uint64_t delivered = 0;        // packets handed to their destination
  std::uint64_t delivered_bytes = 0;  // user data in them
  std::uint64_t delivered_hops = 0;   // links that the delivered packets crossed
  std::uint64_t link_hops = 0;        // transfers that links began
  std::uint64_t link_ticks = 0;       // time that links were occupied
  std::uint64_t copies = 0;           // deposited on the way (row broadcast, multicast)
  std::uint64_t escape_hops = 0;      // transfers into an escape channel
  std::uint64_t credits = 0;          // returns of buffer space
  std::uint64_t unblocking = 0;       // ... that free a blocked packet, where that is counted,
  std::uint64_t blocked_credits = 0;  // ... of those that return to where one waits
  std::uint64_t retries = 0;          // link-level retransmissions
  std::uint64_t dropped = 0;          // packets that the network gave up
  std::uint64_t resent = 0;  // packets that a lost link or router held, sent again by their interface
  std::uint64_t events = 0;
  std::uint64_t responses = 0;       // the network's own packets: sent ...
  std::uint64_t responses_back = 0;  // ... and received
  std::uint64_t nonminimal = 0;      // packets sent by way of a random root, or by tables round lost links
  std::uint64_t receive_stalls =
      0;  // times that a receiver stood still until its firmware had acted (SeaStar),
  std::uint64_t receive_stall_ticks = 0;  // ... and how long in all
  std::array<std::uint64_t, 8> vc_hops{};
  void add(const Counters& other);
};

// How full the buffers of one virtual channel are, over all links in service and the looks of an interval.
// A buffer is taken as its sender sees it: by what lies there, what is on its way there, and what has left
// but is not yet reported free.
struct VcUse {
  std::uint64_t taken = 0, room = 0;  // sums, in units of the router's flow control
  double fullest = 0;                 // largest share of one buffer
  void add(std::uint32_t units, std::uint32_t capacity) {
    taken += units;
    room += capacity;
    if (units > fullest * capacity) fullest = static_cast<double>(units) / capacity;
  }
  void add(const VcUse& other) {
    taken += other.taken;
    room += other.room;
    if (other.fullest > fullest) fullest = other.fullest;
  }
  double mean() const { return room ? static_cast<double>(taken) / static_cast<double>(room) : 0; }
};

// One interval's end: the totals there.
struct Sample {
  Tick at = 0;
  Counters totals;
  std::uint64_t buffered = 0;  // packets in the network
  std::vector<VcUse> vcs;      // over the interval, by VC; empty if not asked for
};
// Makes one interval of every two. REQUIRES: an even number of samples.
void join_pairs(std::vector<Sample>* samples);

// Why a run ended.
enum class Stop : std::uint8_t { finished, time_limit, steady, deadlock, interrupted, drained };
const char* stop_name(Stop stop);

}  // namespace orrery::sim
