// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

namespace orrery {

// A process whose first thread has called pthread_exit ends with its last thread, as if that had called
// exit(0). Threads of the runtime's own, whose names begin with "orrery-", would keep it for ever. From now
// on they do not: when no other is left, exit(0) is called within 50 ms. Of no effect off the first thread.
void end_with_the_programs_last_thread();

}  // namespace orrery
