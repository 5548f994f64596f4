// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// Ends a test because the machine lacks something, by its name: skipped, but failed where the variable
// ORRERY_TESTS_REQUIRE, a list with commas, has the name (docs/testing.md). So no suite passes without the
// tests that need what it lists. For test bodies and fixtures, as GTEST_SKIP().
// Usage: if (getuid() != 0) ORRERY_SKIP("root") << "only root can become another user";
namespace orrery::test {

// tests/skip.sh has the same names.
inline constexpr std::array<std::string_view, 21> kCauses = {
    "ptrace",   "root",   "namespaces", "mounts",  "membarrier", "rseq",        "stores16",
    "provider", "attach", "mlock",      "hugetlb", "memory",     "userfaultfd", "seccomp",
    "cores",    "hydra",  "mpirun",     "ssh",     "slurm",      "browser",     "encryption"};

inline bool is_cause(std::string_view name) {
  return std::find(kCauses.begin(), kCauses.end(), name) != kCauses.end();
}

// Whether `list` has the name. A name in it that is none, or a cause that is none, counts as required.
inline bool is_required(std::string_view cause, std::string_view list) {
  bool found = !is_cause(cause);
  if (found) std::fprintf(stderr, "%.*s is no cause to skip a test\n", int(cause.size()), cause.data());
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view name = list.substr(0, comma);
    if (!name.empty() && !is_cause(name)) {
      std::fprintf(stderr, "ORRERY_TESTS_REQUIRE: '%.*s' is none of the names of tests/require.hpp\n",
                   int(name.size()), name.data());
      found = true;
    }
    found = found || name == cause;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return found;
}

inline bool is_required(std::string_view cause) {
  const char* const list = std::getenv("ORRERY_TESTS_REQUIRE");
  return is_required(cause, list == nullptr ? "" : list);
}

}  // namespace orrery::test

#define ORRERY_SKIP(cause)                                                                            \
  return GTEST_MESSAGE_(::orrery::test::is_required(cause) ? "required, and not here: " cause : "",   \
                        ::orrery::test::is_required(cause) ? ::testing::TestPartResult::kFatalFailure \
                                                           : ::testing::TestPartResult::kSkip)
