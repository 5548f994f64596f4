// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/scene/result.hpp"
#include "emu/sim/tile/dragonfly_fabric.hpp"
#include "emu/sim/tile/torus_fabric.hpp"

namespace orrery::sim {

// Tenths of a nanosecond are the tick of these machines.
inline constexpr double kTileTickNs = 0.1;

// Packets of `payload` bytes that every node can send a tick under uniform load before the narrowest
// bisection (tori) or injection or the global links (dragonfly) are full.
double torus_uniform_peak(const model::Torus& torus, const TorusTiming& timing, std::uint32_t payload);
double aries_uniform_peak(const model::Dragonfly& dragonfly, const AriesTiming& timing,
                          std::uint32_t payload);

// Simulates; blocks. Responses are packets of their own where the machine has them.
// REQUIRES: `losses` has links of the machine, and `detours` are made for them; what needs no new tables may
// do without.
SimResult run_torus(const model::Torus& torus, const TorusTiming& timing, Workload& workload,
                    const RunLimits& limits, std::uint64_t seed, bool keep_link_busy = false,
                    const Losses& losses = {}, TorusDetours detours = {});
SimResult run_aries(const model::Dragonfly& dragonfly, const AriesTiming& timing, Workload& workload,
                    const RunLimits& limits, std::uint64_t seed, bool keep_link_busy = false,
                    const Losses& losses = {}, DragonflyDetours detours = {});

}  // namespace orrery::sim
