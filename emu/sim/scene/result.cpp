// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/scene/result.hpp"

#include <cmath>

namespace orrery::sim {

Counters SimResult::measured() const {
  Counters c = outcome.total;
  const Counters& from = outcome.at_measure;
  c.injected -= from.injected;
  c.delivered -= from.delivered;
  c.delivered_bytes -= from.delivered_bytes;
  c.delivered_hops -= from.delivered_hops;
  c.link_hops -= from.link_hops;
  c.link_ticks -= from.link_ticks;
  c.copies -= from.copies;
  c.escape_hops -= from.escape_hops;
  c.credits -= from.credits;
  c.unblocking -= from.unblocking;
  c.blocked_credits -= from.blocked_credits;
  c.retries -= from.retries;
  c.dropped -= from.dropped;
  c.resent -= from.resent;
  c.events -= from.events;
  c.responses -= from.responses;
  c.responses_back -= from.responses_back;
  c.nonminimal -= from.nonminimal;
  c.receive_stalls -= from.receive_stalls;
  c.receive_stall_ticks -= from.receive_stall_ticks;
  for (std::size_t i = 0; i < c.vc_hops.size(); ++i) c.vc_hops[i] -= from.vc_hops[i];
  return c;
}

Tick SimResult::measured_ticks() const {
  return outcome.end > outcome.measured_from ? outcome.end - outcome.measured_from : 0;
}

double SimResult::link_utilisation() const {
  const double time = static_cast<double>(links) * static_cast<double>(measured_ticks());
  return time > 0 ? static_cast<double>(measured().link_ticks) / time : 0;
}

double SimResult::accepted() const {
  const double time = static_cast<double>(nodes) * static_cast<double>(measured_ticks());
  return time > 0 ? static_cast<double>(measured().delivered) / time : 0;
}

bool SimResult::saturated(double slack) const {
  const double expected = offered * static_cast<double>(nodes) * static_cast<double>(measured_ticks());
  const double missing = expected - static_cast<double>(measured().delivered);
  return missing > expected * slack && missing > 3 * std::sqrt(expected);
}

double SimResult::payload_gb_per_node() const {
  const double ns = static_cast<double>(measured_ticks()) * tick_ns * static_cast<double>(nodes);
  return ns > 0 ? static_cast<double>(measured().delivered_bytes) / ns : 0;
}

double SimResult::packet_hops_per_second() const {
  return wall_seconds > 0 ? static_cast<double>(outcome.total.link_hops) / wall_seconds : 0;
}

}  // namespace orrery::sim
