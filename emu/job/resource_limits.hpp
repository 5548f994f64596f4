// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// What a process's NIC has only so many of, and how many of them a job may use: registrations, completion
// queues, FMA descriptors, collective engines, block transfers.
namespace orrery::job {

// DO NOT CHANGE THE VALUES: they index the host directory's limits.
enum class Resource : std::uint8_t { mdd = 0, cq = 1, fma = 2, ce = 3, bte = 4 };
inline constexpr std::size_t kResources = 5;
inline constexpr std::array<std::string_view, kResources> kResourceNames{"mdd", "cq", "fma", "ce", "bte"};

// Nothing: as many as the hardware has.
using ResourceLimits = std::array<std::optional<std::uint32_t>, kResources>;

// Reads "mdd=16,cq=8". Empty: no limits.
// Errors: invalid_param; `why` then says what was not accepted, and what is.
Result<ResourceLimits> parse_limits(std::string_view text, std::string* why);

}  // namespace orrery::job
