// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>

namespace orrery {

// How a thread that polls lets others have the processor. A yield costs a microsecond where the others are
// PEs that poll as well. Where a program of another kind has the core, the kernel gives it a whole slice of
// some milliseconds for each yield; but a thread that has slept comes before it. So a yield that took that
// long is followed by a short sleep instead of the next yields. Of one wait, one thread; real time alone.
class PatientYield {
 public:
  void operator()();

 private:
  std::uint32_t naps_left_ = 0;
};

}  // namespace orrery
