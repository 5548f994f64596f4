// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/unique_fd.hpp"
#include "emu/memory/range.hpp"

#include <cstdint>

namespace orrery::xpmem {

// Whether `pages` of this process are a shared mapping: of a file (shm_open, memfd, hugetlbfs) or anonymous.
// Such memory may be other processes' too and cannot move into the memory file; a peer maps the same file.
// Then `file` is that file, open for what is asked, and `offset` that of the first page in it; `file` stays
// invalid, and the log says why, when it cannot be had. Threads: any; allocates.
bool find_shared_file(memory::Range pages, bool writes, UniqueFd* file, std::uint64_t* offset);

// The unit of places in a file that may be mapped: a page, of hugetlbfs a huge page.
std::uint64_t mapping_unit(int file);

}  // namespace orrery::xpmem
