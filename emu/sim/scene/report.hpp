// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/scene/result.hpp"

#include <string>

namespace orrery::sim {

// One run as a JSON object, without a trailing newline.
std::string to_json(const SimResult& result);
// A few lines for people; says SATURATED and the deadlock's cycle.
std::string to_text(const SimResult& result);
// The columns of to_csv.
std::string csv_header();
std::string to_csv(const SimResult& result);

}  // namespace orrery::sim
