// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/engine/types.hpp"

#include <cstdint>
#include <vector>

namespace orrery::sim {

// A link out of service, and with it the one that leads back.
struct FailedLink {
  Node router = 0;
  std::uint32_t port = 0;
};

// What a Cray network loses, and when.
struct Losses {
  std::vector<FailedLink> links;  // the same one more than once is lost once
  std::vector<Node> routers;      // with their nodes and what they hold; `links` has all of theirs
  Tick at = 0;                    // 0: before the run
  Tick reroute = 0;               // from an empty network to one with new tables
};

// When new tables were brought into service; all 0 if they were not in the run.
struct Quiesce {
  Tick began = 0;     // requests were held back
  Tick drained = 0;   // the network was empty
  Tick released = 0;  // requests went on
};

}  // namespace orrery::sim
