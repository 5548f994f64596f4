// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The keys of a machine file's fixed sections: kind, range, and for which networks a key is required or
// allowed. Part of the loader (machine_file.cpp); included nowhere else.
#pragma once

#include "emu/model/description.hpp"

#include <cstdint>
#include <string_view>

namespace orrery::model {

// Bits for the networks: dragonfly, Gemini, SeaStar, Blue Gene, fat tree, crossbar.
inline constexpr unsigned kD = 1, kG = 2, kS = 4, kB = 8, kF = 16, kC = 32;
inline constexpr unsigned kAll = 63;

constexpr unsigned mask_of(Network network) { return 1u << static_cast<unsigned>(network); }

struct KeyRule {
  std::string_view section, key;
  ConstantKind kind;
  std::int64_t low, high;
  unsigned required, optional;
};

inline constexpr std::int64_t kAny = INT64_MAX;
using enum ConstantKind;
inline constexpr KeyRule kRules[] = {
    {"topology", "groups", count, 1, 241, kD, 0},
    {"topology", "cables", count, 0, 240, kD, 0},
    {"topology", "own_blue_first", flag, 0, 1, kD, 0},
    {"topology", "last_group_chassis", count, 1, 6, kD, 0},
    {"topology", "class", count, 0, 3, 0, kG | kS},
    {"topology", "cabinets", count, 1, 1000, 0, kG | kS},
    {"topology", "rows", count, 1, 1000, 0, kG | kS},
    {"topology", "x", count, 1, 4096, kB, kG | kS},
    {"topology", "y", count, 1, 4096, kB, kG | kS},
    {"topology", "z", count, 1, 4096, kB, kG | kS},
    {"topology", "y_closed", flag, 0, 1, kG | kS, 0},
    {"topology", "levels", count, 1, 8, kF, 0},
    {"topology", "nodes", count, 1, 1 << 20, kC, 0},
    {"link", "lane_rate", rate, 0, kAny, kAll, 0},
    {"link", "global_lane_rate", rate, 1, kAny, kD, 0},
    {"link", "lanes", count, 1, 64, kAll, 0},
    {"link", "efficiency", fraction, 1, 1'000'000, kAll, 0},
    {"link", "hop", duration, 0, 1'000'000'000, kAll, 0},
    {"link", "global_cable", duration, 0, 1'000'000'000, kD, 0},
    {"link", "cable_near", duration, 0, 1'000'000'000, kF, 0},
    {"link", "cable_far", duration, 0, 1'000'000'000, kF, 0},
    {"link", "far_boundary", count, 1, 8, kF, 0},
    {"packet", "payload", bytes, 1, 512, kAll, 0},
    {"packet", "phit_bits", count, 1, 1024, kAll, 0},
    {"packet", "word", bytes, 1, 512, kAll, 0},
    {"packet", "phits_per_word", count, 0, 512, kAll, 0},
    {"packet", "extra", bytes, 0, 512, kAll, 0},
    {"packet", "put_request", count, 0, 512, kAll, 0},
    {"packet", "put_response", count, 0, 512, kAll, 0},
    {"packet", "get_request", count, 0, 512, kAll, 0},
    {"packet", "get_response", count, 0, 512, kAll, 0},
    {"host", "rate", rate, 0, kAny, kAll, 0},
    {"host", "put_overhead", bytes, 0, 4096, kAll, 0},
    {"host", "shared_overhead", bytes, 0, 4096, kAll, 0},
    {"nic", "clock", clock, 1, kAny, kAll, 0},
    {"nic", "cycles_per_packet", count, 0, 1'000'000, kAll, 0},
    {"nic", "window", count, 0, 1'000'000, kAll, 0},
};
// Sections in which the file names its own constants, all of one kind.
inline constexpr std::string_view kSections[] = {"topology", "link",      "packet",     "host",
                                                 "nic",      "stage",     "limit",      "count",
                                                 "share",    "operation", "collective", "layer"};

}  // namespace orrery::model
