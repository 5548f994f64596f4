// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The simulator's numbers out of a machine file: the same constants that the per-operation model prices with.
// What a file does not say (buffers, cables, latency between NIC and router) stays as the configuration
// structs have it.
#pragma once

#include "emu/model/machine.hpp"
#include "emu/sim/bgl/bgl_config.hpp"
#include "emu/sim/quadrics/quadrics.hpp"
#include "emu/sim/scene/result.hpp"
#include "emu/sim/tile/dragonfly_fabric.hpp"
#include "emu/sim/tile/torus_fabric.hpp"

namespace orrery::sim {

// Each sets `out` from the machine, whose network must be of that kind. A refusal names the constant that the
// router cannot have, and what it can.
Refusal timing_of(const model::Machine& machine, BglConfig* out);
Refusal timing_of(const model::Machine& machine, TorusTiming* out);
Refusal timing_of(const model::Machine& machine, AriesTiming* out);
// Links, switches and cables; what was fitted for the collectives (Elan threads) is left as it is.
Refusal timing_of(const model::Machine& machine, QuadricsConfig* out);

}  // namespace orrery::sim
