// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/sim/engine/engine.hpp"
#include "emu/sim/failure/losses.hpp"

#include <string>
#include <vector>

namespace orrery::sim {

// An answer that may be an explained refusal: `why` is one line with the value and what is accepted.
struct Refusal {
  std::string why;
  bool refused() const { return !why.empty(); }
};

// What a run of any of the machines came to, in the terms of reports.
struct SimResult {
  std::string machine, workload, preset;
  std::string shape;  // "8x8x8", "8 groups", "4^5"
  Node nodes = 0;
  std::uint64_t links = 0;  // unidirectional, in service
  double tick_ns = 1;
  RunOutcome outcome;
  double wall_seconds = 0;
  unsigned threads = 1;
  std::size_t state_bytes = 0;           // routers and workload
  double offered = 0;                    // packets per node and tick asked for; 0: as fast as possible
  std::vector<std::string> cycle;        // of channels, after a deadlock
  std::vector<std::uint32_t> link_busy;  // ticks by router * ports + port, if asked for
  std::uint32_t ports = 0;               // link slots of a router
  std::vector<std::string> vc_names;
  Quiesce quiesce;  // for new tables in the run
  // Of a replay.
  std::uint64_t records = 0, never_ran = 0;
  // The network is at rest, and processes wait for messages that no process sends.
  bool stuck() const { return outcome.stop == Stop::finished && never_ran > 0; }

  // Counters of the measured interval.
  Counters measured() const;
  Tick measured_ticks() const;
  double link_utilisation() const;     // share of link time occupied
  double accepted() const;             // packets delivered per node and tick
  double payload_gb_per_node() const;  // GB/s of user data delivered per node
  double packet_hops_per_second() const;
  // Offered is more than was accepted, beyond `slack` and beyond what chance does to so many packets.
  bool saturated(double slack = 0.02) const;
  double mean_latency_ns() const { return outcome.latency.mean() * tick_ns; }
};

}  // namespace orrery::sim
