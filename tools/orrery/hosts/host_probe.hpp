// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <string>
#include <vector>

namespace orrery::tool {

// One thing that the kernel allows here or not, found out by doing it.
struct Feature {
  std::string name;  // "userfaultfd"
  bool available = false;
  std::string detail;  // how far, or why not
  std::string use;     // what it is good for, and what happens without
};

// Tries every feature once. Some milliseconds; leaves nothing behind.
std::vector<Feature> probe_features();

// One limit of this process or machine; "unlimited" or a number with its unit.
struct Limit {
  std::string name;
  std::string value;
  std::string use;
};
std::vector<Limit> probe_limits();

}  // namespace orrery::tool
