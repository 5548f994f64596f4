// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

namespace orrery::clock {

class VirtualClock;

// From now on the program's own calls about time (clock_gettime, nanosleep, poll and so on, all of
// program_time.cpp) are answered by `clock`, which must live until the process ends. Threads of the runtime
// and calls out of libraries that launchers and networks bring along keep real time; a forked child too.
void serve_program(VirtualClock* clock);

}  // namespace orrery::clock
