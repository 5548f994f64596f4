// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Measures of a machine: what a benchmark on it would print, found by running quote(), and facts of its
// structure, found by counting. The reference table names them as "latency(fma_put, 8, 1)".
#pragma once

#include "emu/model/machine.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace orrery::model {

// Evaluates one measure. Nothing where the text is not a measure or the machine has no such thing.
// Units: microseconds, GB/s, millions a second, or as the reference row says. Allocates; may take
// milliseconds; thread safe.
std::optional<double> measure(const Machine& machine, std::string_view text);

// Names and arguments of all measures, one a line, for help and messages.
std::string_view measure_help();

}  // namespace orrery::model
