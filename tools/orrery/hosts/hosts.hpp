// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::tool {

// A host of `orrery run --hosts` and the PEs that it gets: first .. first + count - 1.
struct HostShare {
  std::string name;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// Reads "a,b" or "a:2,b:4": hosts in the order of ranks. Without counts `pes` PEs are dealt out in blocks;
// with counts on all of them their sum must be `pes`, or is the number of PEs when `pes` is 0 (then without
// counts each host gets one). Sets `shares`; returns the line to show when something is not accepted, else
// empty. A name is letters, digits, '.', '-', '_' and, for ssh, "user@"; it does not begin with '-'; an IPv6
// address stands in brackets.
std::string parse_hosts(std::string_view text, std::uint32_t pes, std::vector<HostShare>* shares);

}  // namespace orrery::tool
