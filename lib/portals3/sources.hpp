// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/short_lock.hpp"
#include "emu/nic/target/match_classic.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include <portals3.h>

namespace orrery::portals3 {

// A descriptor, or a part of it.
struct Part {
  ptl_handle_md_t md;
  bool whole = true;
  ptl_size_t offset = 0;
  ptl_size_t length = 0;
};

// The bound descriptors that count no operations and have no queue and no pieces: their program hears
// nothing of a put, so that none of them is held for one. What the match unit says of them, again, under a
// lock of this process alone: peers that deliver here hold the unit's.
// Threads: any. Each call that binds, changes or takes away a descriptor says so before it lets go of the
// unit.
class Sources {
 public:
  // The descriptor is bound, or has changed: now it has this memory.
  void keep(ptl_handle_md_t md, const nic::match::classic::Memory& memory);
  void forget(ptl_handle_md_t md);
  void forget_all();
  // Copies the part's bytes; their number. False: it is not one of these, is not whole in it, or is longer
  // than `room` bytes; nothing was copied.
  bool copy(const Part& part, std::byte* to, ptl_size_t room, ptl_size_t* length);

 private:
  struct Source {
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
    std::uint64_t start = 0;
    ptl_size_t length = 0;
  };
  ShortLock lock_;
  std::vector<Source> by_index_;  // guarded by lock_
};

}  // namespace orrery::portals3
