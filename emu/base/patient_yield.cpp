// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/patient_yield.hpp"

#include "emu/base/wait.hpp"

namespace orrery {

namespace {

constexpr std::int64_t kSliceNs = 1'000'000;  // a yield that took longer gave a stranger its slice
constexpr std::int64_t kNapNs = 20'000;
constexpr std::uint32_t kNaps = 64;  // before the next yield

}  // namespace

void PatientYield::operator()() {
  if (naps_left_ != 0) {
    --naps_left_;
    FutexWord never{0};
    (void)futex_wait_for(never, 0, kNapNs);
    return;
  }
  const std::int64_t begin = monotonic_ns();
  yield_cpu();
  if (monotonic_ns() - begin > kSliceNs) naps_left_ = kNaps;
}

}  // namespace orrery
