// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Runs the Quadrics network with the workloads and reports of the other machines: a node has one packet under
// way, the next one follows when its circuit is released.
#pragma once

#include "emu/sim/quadrics/quadrics.hpp"
#include "emu/sim/scene/result.hpp"

#include <string>

namespace orrery::sim {

// Tenths of a nanosecond.
inline constexpr double kQuadricsTickNs = 0.1;

// Simulates the first `nodes` nodes; blocks. One thread, whatever the limits say: circuits know no distance
// between parts of the tree. In the result: ports are the four links up and the four down of a boundary's
// switch; a buffer of a virtual channel is taken while a circuit holds it; a packet's hops are its links.
// `failed_links`: out of service, drawn by config.seed; refused as fail_links() does.
// REQUIRES: config.levels covers `nodes`; the workload sends packets of at most config.packet bytes.
Refusal run_quadrics(const QuadricsConfig& config, Node nodes, std::uint32_t failed_links, Workload& workload,
                     const RunLimits& limits, SimResult* out);
// Packets of `payload` bytes that a node's link carries in a tick.
double quadrics_uniform_peak(const QuadricsConfig& config, std::uint32_t payload);

// The collectives that hardware and thread processors do, `repeat` times in a row. The result counts each
// one's latency, and its packets to every node they reach (copies of a multicast as of a row broadcast).
//   broadcast         `bytes` from node 0 in packets, each sent when the last one's acknowledgment is back
//   barrier           hardware: test-and-set, then the token that wakes all nodes; all arrive together
//   software-barrier  a tree of messages between thread processors, up and down
//   allreduce         8 bytes: up a tree with the hosts' arithmetic, down by multicast
// A refusal names what is accepted. REQUIRES: as run_quadrics; is_collective(name).
Refusal run_collective(const QuadricsConfig& config, Node nodes, const std::string& name, std::uint64_t bytes,
                       std::uint64_t repeat, SimResult* out);
bool is_collective(const std::string& name);

}  // namespace orrery::sim
