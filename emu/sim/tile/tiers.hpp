// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The per-operation model (emu/model/quote.hpp, tier i) beside the packet simulator (tier ii): the same
// machine file, the same kind of traffic (full packets, Poisson sources), the network alone: every duration
// of NIC and software is zero in both, rates stay.
#pragma once

#include "emu/model/machine.hpp"
#include "emu/sim/workload/traffic.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace orrery::sim {

struct TierCase {
  const char* machine;
  model::Op op;
  std::array<std::uint32_t, 3> sides;  // nodes; groups, or levels, in the first
  double window_us;                    // of machine time; the first third is not counted
};
// The five machines, at sizes that both tiers run in seconds.
std::span<const TierCase> tier_cases();

// The case's machine with all stages free. Outcomes: nullptr where its file does not compile.
std::unique_ptr<model::Machine> network_alone(const TierCase& tier);

struct TierOutcome {
  double latency_ns = 0;      // mean, call to last byte there, of what comes in what counts of the window
  double accepted = 0;        // bytes a node and ns
  std::uint64_t work = 0;     // calls of quote(), or packet-hops
  std::uint64_t inexact = 0;  // LinkState::merged()
};
struct TierTraffic {
  Pattern pattern = Pattern::uniform;  // uniform; or hot_region: a quarter of the packets into an eighth of
                                       // the machine (half of each side, or the first eighth of the nodes)
  double packets_per_node_ns = 0;
  std::uint64_t seed = 1;
  unsigned threads = 1;  // of the simulator
};
// Packets of a node and ns at which the first resource is full under uniform traffic.
double uniform_peak(const model::Machine& machine);
// Calls in order of time, as the virtual clock makes them.
TierOutcome by_operations(const model::Machine& machine, const TierCase& tier, const TierTraffic& traffic);
// Outcomes: all zero where the simulator does not take the machine (Quadrics: any pattern but uniform).
TierOutcome by_packets(const model::Machine& machine, const TierCase& tier, const TierTraffic& traffic);

}  // namespace orrery::sim
