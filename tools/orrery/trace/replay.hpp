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

// In what order operations of one time come. A conservative run began them in the order of its turns: that of
// the PEs' numbers, but where one PE wakes another without time passing (a datagram takes none). A PE of an
// optimistic run may be ahead of others: there it is that of the PEs' numbers.
enum class Ties : std::uint8_t { as_begun, by_pe };

// Asks the machine about every operation of a run again, in one process and in the order of virtual time
// (when the PE had its turn), and compares the answers to the picosecond. Of a conservative run none may
// differ. Pure; nothing when there is no memory for the machine's links (61 MB for Aries).
std::optional<Replay> replay(const model::Machine& machine, std::vector<clock::Recorded> records, Ties ties);

}  // namespace orrery::tool
