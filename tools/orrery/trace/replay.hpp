// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/record.hpp"
#include "emu/model/machine.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace orrery::tool {

struct Replay {
  std::uint64_t operations = 0;
  std::uint64_t conflicts = 0;  // of these, the machine's answer is another one in the order of time
};

// Asks the machine about every operation of a run again, in one process and in the order of virtual time
// (when the PE had its turn, then its number), and compares the answers to the picosecond. Of a conservative
// run none may differ. Pure; nothing when there is no memory for the machine's links (61 MB for
// Aries).
std::optional<Replay> replay(const model::Machine& machine, std::vector<clock::Recorded> records);

}  // namespace orrery::tool
