// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/scene/result.hpp"

#include <string>
#include <vector>

namespace orrery::tool {

// One page without scripts or other files: of each run its numbers, throughput and packets in flight over
// time, how busy each link was (a row a router, a column a port; where there are more routers than rows,
// means of neighbours) and the busiest ones, how full the virtual channels' buffers were over time; of
// several runs their latency and throughput by load.
std::string sim_html(const std::vector<sim::SimResult>& results);

}  // namespace orrery::tool
