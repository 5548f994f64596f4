// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

namespace orrery::shmem {

// Takes in SHMEM_*, SMA_* and XT_SYMMETRIC_HEAP_SIZE: the heap's size is handed on to DMAPP, which refuses
// what is none; information is printed; a name with the prefix SHMEM_ that is none of the library's is warned
// about.
void read_environment();

}  // namespace orrery::shmem
