// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <array>
#include <cstdint>

// Identities: of jobs, processes and hosts.
namespace orrery::job {

// A number from the kernel's generator, never 0.
std::uint64_t random_nonzero();

// The running kernel's boot id: the same for all processes of this host until it restarts. All zeros when
// /proc does not tell.
std::array<std::uint8_t, 16> boot_id();

}  // namespace orrery::job
