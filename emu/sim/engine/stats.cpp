// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/engine/stats.hpp"

#include <cmath>
#include <utility>

namespace orrery::sim {

void LatencyHistogram::grow(std::size_t index) {
  // To the end of its power of two, not further.
  const std::size_t size = ((index >> kSubBits) + 1) << kSubBits;
  buckets_.reserve(size);
  buckets_.resize(size);
}

void LatencyHistogram::add(const LatencyHistogram& other) {
  if (other.buckets_.size() > buckets_.size()) grow(other.buckets_.size() - 1);
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  if (other.max_ > max_) max_ = other.max_;
}

void join_pairs(std::vector<Sample>* samples) {
  std::vector<Sample>& all = *samples;
  for (std::size_t i = 0; i < all.size() / 2; ++i) {
    const Sample first = std::move(all[2 * i]);
    Sample joined = std::move(all[2 * i + 1]);
    if (joined.vcs.size() < first.vcs.size()) joined.vcs.resize(first.vcs.size());
    for (std::size_t v = 0; v < first.vcs.size(); ++v) joined.vcs[v].add(first.vcs[v]);
    all[i] = std::move(joined);
  }
  all.resize(all.size() / 2);
}

Tick LatencyHistogram::upper(std::size_t index) {
  const std::size_t whole = std::size_t{1} << kSubBits;
  if (index < 2 * whole) return index;
  const std::size_t shift = (index >> kSubBits) - 1;
  return ((whole + (index & (whole - 1)) + 1) << shift) - 1;
}

Tick LatencyHistogram::percentile(double fraction) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= wanted && seen > 0) return upper(i) < max_ ? upper(i) : max_;
  }
  return max_;
}

void Counters::add(const Counters& o) {
  injected += o.injected;
  delivered += o.delivered;
  delivered_bytes += o.delivered_bytes;
  delivered_hops += o.delivered_hops;
  link_hops += o.link_hops;
  link_ticks += o.link_ticks;
  copies += o.copies;
  escape_hops += o.escape_hops;
  credits += o.credits;
  unblocking += o.unblocking;
  blocked_credits += o.blocked_credits;
  retries += o.retries;
  dropped += o.dropped;
  resent += o.resent;
  events += o.events;
  responses += o.responses;
  responses_back += o.responses_back;
  nonminimal += o.nonminimal;
  receive_stalls += o.receive_stalls;
  receive_stall_ticks += o.receive_stall_ticks;
  for (std::size_t i = 0; i < vc_hops.size(); ++i) vc_hops[i] += o.vc_hops[i];
}

const char* stop_name(Stop stop) {
  switch (stop) {
    case Stop::finished:
      return "finished";
    case Stop::time_limit:
      return "time limit";
    case Stop::steady:
      return "steady";
    case Stop::deadlock:
      return "deadlock";
    case Stop::interrupted:
      return "interrupted";
    case Stop::drained:
      return "drained";
  }
  return "?";
}

}  // namespace orrery::sim
