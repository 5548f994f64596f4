// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace orrery::nic::box {

// ORRERY_LONG_TESTS=1: everything, not the sample of it that fits into every run of the tests.
inline bool long_tests() {
  const char* value = std::getenv("ORRERY_LONG_TESTS");
  return value != nullptr && value[0] == '1';
}

// Runs `world(seed)`, which returns what went wrong or "", for the seeds 1 to `few` (`many` in the long
// mode), or for ORRERY_TEST_SEED alone. Stops at the first that fails.
template <typename RunWorld>
void for_every_seed(std::uint64_t few, std::uint64_t many, RunWorld world) {
  if (const char* asked = std::getenv("ORRERY_TEST_SEED")) {
    const std::uint64_t seed = std::strtoull(asked, nullptr, 0);
    EXPECT_EQ(world(seed), "") << "seed " << seed;
    return;
  }
#ifdef __SANITIZE_THREAD__
  few /= 3;  // a world has one thread: ThreadSanitizer finds in it what the few find
#endif
  const std::uint64_t seeds = long_tests() ? many : few;
  std::printf("seeds 1..%llu\n", static_cast<unsigned long long>(seeds));
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    ASSERT_EQ(world(seed), "") << "replay with ORRERY_TEST_SEED=" << seed;
}

}  // namespace orrery::nic::box
