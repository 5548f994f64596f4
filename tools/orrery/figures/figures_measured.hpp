// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/model/route.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace orrery::tool {

struct MeasuredPoints {
  std::vector<std::pair<double, double>> points;  // hops, microseconds
  std::string problem;                            // empty: all of them
};

// Runs `program` (orrery_put_latency) once for each number of hops, with two PEs under virtual time: one on
// node 0, one on the node that stands with the hops. `machine_text`: a machine file's. Blocking, about half a
// second for each.
MeasuredPoints measure_latency(const std::string& program, const std::string& machine_text,
                               const std::map<int, model::NodeId>& nodes);

}  // namespace orrery::tool
