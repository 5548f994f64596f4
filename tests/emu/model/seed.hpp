// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace orrery::model {

// The seed of a random test: ORRERY_TEST_SEED, else a fixed one. Printed, so that a failure repeats.
inline std::uint64_t test_seed() {
  const char* text = std::getenv("ORRERY_TEST_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : 20120117u;
  std::printf("ORRERY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace orrery::model
