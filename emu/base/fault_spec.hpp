// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Faults that a user asks for (`orrery run --fault`, ORRERY_FAULT), as words and as values. What they do is
// the NIC's: emu/nic/gate/fault.hpp.
namespace orrery {

// When a fault happens: to each operation with a chance, or to one operation alone.
struct FaultWhen {
  double chance = 0;            // 0..1
  std::uint64_t operation = 0;  // the n-th operation of each PE, from 1; 0: by chance
  bool ever() const { return chance > 0 || operation != 0; }
};

struct DeadNode {
  std::uint32_t nic_address = 0;
  std::uint64_t from = 0;  // from each PE's n-th operation on; 0: from the start
};

struct FaultSpec {
  std::uint64_t seed = 1;
  FaultWhen drop;
  FaultWhen corrupt;
  FaultWhen revoke;
  FaultWhen link;
  FaultWhen delay;
  std::int64_t delay_ns = 0;
  std::vector<DeadNode> dead;
  std::vector<std::int32_t> pes;  // whose operations meet faults; empty: those of all PEs

  bool any() const {
    return drop.ever() || corrupt.ever() || revoke.ever() || link.ever() || delay.ever() || !dead.empty();
  }
};

// What is accepted, in one line.
inline constexpr std::string_view kFaultWords =
    "a list with commas of drop=WHEN, corrupt=WHEN, revoke=WHEN, link=WHEN, delay=WHEN:TIME, "
    "dead=ADDRESS[@N], seed=NUMBER, pe=RANK";

// Reads such a list; an empty one is no faults. nullopt: *why names the word that is not accepted, and what
// would be.
std::optional<FaultSpec> parse_faults(std::string_view text, std::string* why);

}  // namespace orrery
