// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/device/resource_use.hpp"
#include "emu/nic/gate/fault.hpp"
#include "emu/nic/target/amo_cache.hpp"

#include <cstdint>

namespace orrery::nic {

// What a NIC is made with.
struct NicOptions {
  std::uint32_t adopt_after = 16;             // frame or attach operations on a region before it is adopted
  std::uint64_t bte_crossover = 4ull << 20;   // block transfers of at least this many bytes go to the engine
  std::int64_t drain_limit_ns = 100'000'000;  // how long a stalled peer can delay a deregistration
  bool eager_adoption = false;
  bool may_adopt = true;
  std::uint32_t amo_cache_entries = 64;  // the papers give it no size
  AmoCacheMode amo_cache_mode = AmoCacheMode::coherent;
  job::ResourceLimits limits;          // for each domain, beside those of the job's directory
  bool gemini = false;                 // the older device: fewer AMOs, no collective engine
  bool collective_by_packets = false;  // trees of several processes use packets alone, as between hosts
  FaultSpec faults;                    // none: the hooks cost one load of a pointer, the fast path nothing
  std::int32_t fault_pe = -1;          // whose sequence of chances this is
};

}  // namespace orrery::nic
