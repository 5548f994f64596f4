// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/bgl/bgl_config.hpp"

#include <span>

namespace orrery::sim {

// Parameters that a figure of the paper was made with, where they differ from the machine as built.
struct BglPreset {
  const char* name;
  const char* why;  // which figure, and what of its text says so
  BglConfig config;
  bool as_built = false;  // the machine file's router; only what processors cost is the preset's
};
std::span<const BglPreset> bgl_presets();

}  // namespace orrery::sim
