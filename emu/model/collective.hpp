// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What a collective costs among the first `nodes` nodes of a machine, entered by all at once. More than the
// machine has are several participants on a node: their number makes the levels, and paths are those of its
// nodes. Two forms, chosen by the machine file:
// - closed: base + (levels - from_level) * per_level + once, levels = ceil(log_radix nodes); where there
//   are fewer levels than from_level, base shrinks in proportion.
// - rounds of an operation: passes * levels * its quiet latency over a mean path + once.
// A broadcast's time is that of one packet; longer data takes as many packets one after the other, since
// a packet is held until all have acknowledged it (Petrini et al., section 5).
//
// Sources: Petrini et al. 2003 sections 4 and 5. LIMITATIONS: no skew between the participants' arrivals;
// no back-off of the test-and-set; other traffic is not seen.
#pragma once

#include "emu/model/machine.hpp"

namespace orrery::model {

struct CollectiveQuote {
  Picos time;
  std::uint32_t levels = 0;
  std::uint32_t rounds = 1;  // packets one after the other (broadcast)
};

// `nodes` from 1, also more than the machine's; `bytes` of payload. Pure, thread safe.
CollectiveQuote quote_collective(const Machine& machine, Collective collective, std::uint32_t nodes,
                                 std::uint64_t bytes);

// Payload rate that a hot node receives from all of the first `nodes` nodes of a fat tree: each packet
// occupies it for its own time or for the circuit's round trip, whichever is longer.
Rate hot_spot_rate(const Machine& machine, std::uint32_t nodes);

}  // namespace orrery::model
