// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/record.hpp"
#include "emu/model/machine.hpp"

#include <string>
#include <vector>

namespace orrery::tool {

// One page without other files: what the messages of a run loaded the machine's links with, drawn over its
// topology, and the hot spots: the busiest links, and the nodes that most was sent to. Links that go side by
// side between two routers count as one; of a get it is the data's way. A message that went round a loaded
// link is counted on its minimal route all the same, and the page says how many there were. Pure; records in
// any order.
std::string link_report(const model::Machine& machine, const std::vector<clock::Recorded>& records);

}  // namespace orrery::tool
