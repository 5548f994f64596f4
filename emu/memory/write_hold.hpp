// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/memory/process_state.hpp"
#include "emu/memory/range.hpp"

namespace orrery::memory {

// Holds off the writers of one chunk while it moves. docs/memory.md, "The switch".
//
// Between hold() and let_go() the caller may not take a lock, allocate or log. Threads: the one that holds
// ProcessState::switching. Ownership: none.
// Usage: WriteHold hold(state, chunk, protection, false, false); if (hold.hold().ok()) { copy();
// if (hold.close().ok() && hold.intact()) mapped = map(); hold.let_go(mapped); }
class WriteHold {
 public:
  // `protection`: of the chunk's one mapping. `file_backed`: that mapping is a private one of a file, which
  // userfaultfd does not take; `in_memory_file`: it is ours (on the way out).
  WriteHold(ProcessState& state, Range chunk, int protection, bool file_backed, bool in_memory_file);

  // From its return on, no write reaches the chunk. Errc::no_resource: the kernel's mapping limit;
  // Errc::no_memory; Errc::invalid_state: another userfaultfd has the range. The chunk is then as before.
  Status hold();

  // From its return on, a page that is not there does not come back either: MADV_DONTNEED drops the mark with
  // the page, and a write would make a new one. The caller touches the chunk no more, or hangs. Errc as hold.
  Status close();

  // Whether every page is still held. After close() it stays so.
  bool intact() const;

  // Lets writers go on and holds them off anew; held by mprotect(2), it does nothing. Errc as hold.
  Status hold_again();

  // Lets writers go on. `replaced`: the chunk has a new mapping; else it gets its old one's freedom back.
  void let_go(bool replaced);

  bool by_signal() const { return method_ == Blocker::protect; }

 private:
  Status write_protect();

  ProcessState& state_;
  const Range chunk_;
  const int protection_;
  const bool in_memory_file_;
  const Blocker method_;
};

// The method that WriteHold picks.
Blocker hold_method(const ProcessState& state, bool file_backed, bool in_memory_file);

// Opens a userfaultfd with what it needs and notes it in `state`; leaves Blocker::protect where there is
// none.
void open_userfault(ProcessState& state);

}  // namespace orrery::memory
