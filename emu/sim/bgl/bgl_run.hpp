// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/bgl/bgl_config.hpp"
#include "emu/sim/scene/result.hpp"

#include <vector>

namespace orrery::sim {

// Why `config` cannot be simulated, if so.
Refusal validate_bgl(const BglConfig& config);

struct BglFault {
  Node node = 0;
  int direction = 0;  // as emu/model's Direction
};

struct BglExtras {
  bool keep_link_busy = false;
  std::vector<BglFault> failed_links;
};

// Packets of `payload` bytes that every node can send a tick under uniform load before the first
// dimension's links are full: 8 links share of the longest side.
double bgl_uniform_peak(const BglConfig& config, std::uint32_t payload);
// Ticks that such a packet occupies a link.
std::uint32_t bgl_wire_ticks(const BglConfig& config, std::uint32_t payload);

// Simulates. Blocks; limits.threads threads. REQUIRES: validate_bgl(config) does not refuse.
SimResult run_bgl(const BglConfig& config, Workload& workload, const RunLimits& limits,
                  const BglExtras& extras = {});

}  // namespace orrery::sim
