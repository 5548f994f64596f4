// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/patient_wait.hpp"

namespace orrery {

bool yield_briefly() {
  constexpr std::uint64_t kSliceTicks = 2'000'000;  // 0.5 to 2 ms
  const std::uint64_t begin = rough_ticks();
  yield_cpu();
  return rough_ticks() - begin < kSliceTicks;
}

}  // namespace orrery
