// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What `orrery sim` was asked to lose of a Cray network: links, pairs of neighbours, routers; when; and how
// long new tables take.
#pragma once

#include "emu/model/pricing.hpp"
#include "emu/sim/failure/losses.hpp"
#include "emu/sim/scene/simulate.hpp"
#include "emu/sim/tile/dragonfly_detours.hpp"
#include "emu/sim/tile/torus_detours.hpp"
#include "emu/sim/workload/workload.hpp"

#include <memory>

namespace orrery::sim {

// From an empty network to one with new tables, where nothing else is asked for. The papers give no time
// ("applications pause briefly"); this one is an assumption, long enough to be seen beside packets.
inline constexpr double kRerouteUs = 20;

// Outcomes: refused where the kind of machine does not lose that, or what is asked does not go together.
Refusal check_losses(const RunSpec& spec, model::Network network);
// The losses that `spec` asks for, and the tables without them; with failed routers `workload` keeps off
// their nodes. Refused where too much is lost. REQUIRES: check_losses() did not refuse.
Refusal losses_of(const RunSpec& spec, const model::Torus& torus, double tick_ns, Losses* losses,
                  TorusDetours* detours, std::unique_ptr<Workload>* workload);
Refusal losses_of(const RunSpec& spec, const model::Dragonfly& dragonfly, double tick_ns, Losses* losses,
                  DragonflyDetours* detours, std::unique_ptr<Workload>* workload);

}  // namespace orrery::sim
