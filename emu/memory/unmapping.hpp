// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/memory/range.hpp"

#include <cstdint>

// Memory that comes and goes while peers may reach all of a process's addresses: what the program's own calls
// map, and a warning before they take it away. libc's own calls are not seen: what its allocator maps for
// one large block, and a thread's stack, are never adoptable here.
namespace orrery::memory {

// Hears of pages that the program is about to take away, or their right to be written. Called on the thread
// that does it, which may hold locks of an allocator: neither may allocate.
class UnmapListener {
 public:
  // Returns when no peer touches the pages, and none will until after(), which gets what this returned.
  virtual int before(Range range) = 0;
  virtual void after(int token) = 0;

 protected:
  ~UnmapListener() = default;
};

// From now on, for good. It hears of pages that are in the memory file, and of those of announce_move().
void set_unmap_listener(UnmapListener* listener);

// Pages are about to be moved into the memory file (empty: none any more): from its return on each call that
// takes some of them away tells the listener first. False: calls that do were under way all the time; try
// again later. The service thread.
bool announce_move(Range range);

// One call that takes `range` away, or its right to be written, from before to after it.
class Unmapping {
 public:
  explicit Unmapping(Range range);
  ~Unmapping();
  Unmapping(const Unmapping&) = delete;
  Unmapping& operator=(const Unmapping&) = delete;

 private:
  UnmapListener* told_ = nullptr;
  bool shared_ = false;
  int token_ = 0;
};

// What the program's own calls have mapped and not unmapped; more than there is room for is not noted.
void note_mapped(Range range);
void note_unmapped(Range range);

// The stretch around `address` that can go away only by calls that tell the listener: a mapping of the
// program's own, the main program's data, its heap (brk). Empty: there is none. Any thread.
Range told_around(std::uint64_t address);

}  // namespace orrery::memory
