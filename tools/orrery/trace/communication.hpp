// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/record.hpp"
#include "emu/sim/workload/trace.hpp"

#include <string>
#include <vector>

namespace orrery::tool {

// What a run under virtual time asked of the network, for the packet simulator. Process n of the trace is the
// machine's node n. Before each operation stands a wait for all that had come to its node by then: what a
// program waited for is not recorded, and it cannot have waited for anything else. Operations inside a node
// and collectives of the machine's own are not traffic. `records`: of a whole job, in any order.
// Nothing went over the network: a trace of one process without a record.
// The line to show when the run does not fit into a trace goes to `*problem`.
sim::Trace communication(const std::vector<clock::Recorded>& records, std::string* problem);

}  // namespace orrery::tool
