// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>

namespace orrery::dmapp {

// Where the program's static variables lie: its last writable segment as loaded, without the part that is
// read-only after relocation. The same offset is the same variable in every process of the program. bytes 0:
// it has none.
struct DataSegment {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};
DataSegment data_segment();

}  // namespace orrery::dmapp
