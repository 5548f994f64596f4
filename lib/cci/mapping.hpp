// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/memory/range.hpp"

#include <cstdint>
#include <functional>

// The process's memory file (emu/memory), as far as CCI has it: registered memory that peers of this user use
// often is moved into it, and they copy to and from it without the kernel.
//
// CCI makes it when the first memory is to be moved, and gives it up for good when a NIC of this process
// makes one. A child of fork(2) has none.
//
// Locks, in their order: the file's own, the list of endpoints, an endpoint's. Nothing of this is called with
// an endpoint's lock held, but is_moving().
namespace orrery::cci {
class Endpoint;
}

namespace orrery::cci::mapping {

// Every endpoint, from its creation on until nothing of it is registered.
void add(Endpoint* endpoint);
void remove(Endpoint* endpoint);

// Whether copies by memory::run_guarded() are possible in this process: makes the file if there is none yet.
bool can_guard();

// Moves the memory into the file, on an endpoint's thread, and tells the endpoints. `goes_on` is asked before
// each part. True: all of it is there. It may take 1 ms for each 2 MiB.
bool move(memory::Range range, const std::function<bool()>& goes_on);

// Keeps the file as it is while `body` runs, which is told whether all of the range lies in it; false too
// where memory is being moved at this moment.
void look_while(memory::Range range, const std::function<void(bool in_file)>& body);

// Whether part of the range is being moved.
bool is_moving(memory::Range range);

// No part of the range, which is no longer registered, is being moved when this returns. `stalled`: a peer
// may still write to it by the file, and from now on writes to no memory of this process.
void end(memory::Range range, bool stalled);

// Runs `body` with the file's descriptor, or -1, which stays valid meanwhile.
void with_file(const std::function<void(int)>& body);

// Around fork(2), outside of the endpoints' locks.
void lock_for_fork();
void unlock_after_fork(bool is_child);

}  // namespace orrery::cci::mapping
