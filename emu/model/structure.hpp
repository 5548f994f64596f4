// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Facts of a machine that follow from its wiring, packets and rates by counting, without running
// anything: what the papers print as formulas and structure.
#pragma once

#include "emu/model/machine.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace orrery::model {

// `arguments[0]` names the fact, the rest are whole numbers. Nothing where the machine has no such fact.
std::optional<double> structure(const Machine& machine, std::span<const std::string_view> arguments);

}  // namespace orrery::model
